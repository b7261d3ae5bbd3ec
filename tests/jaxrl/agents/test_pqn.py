"""PQN: known optimal values, targets by hand, and what falls over the updates."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import loop
from jaxrl.agents import dqn, pqn
from jaxrl.blocks import flatten
from jaxrl.networks.continuous import QFunctions
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.types import Transition
from tests.jaxrl import toy_environments as toys

NETWORK = QNetwork(MLP((16,), layer_norm=True), 2)
TINY = pqn.Config(minibatches=2, learning_rate=0.1, anneal_updates=4.0, epsilon_updates=2.0)


def make_loop(env, config) -> loop.Loop:
    return loop.make_loop(env, (), pqn.make(NETWORK, config), loop.Config(16, 8))


def test_values_are_the_closed_forms():
    env = toys.ActionObservationReward()
    config = pqn.Config(
        learning_rate=1e-2,
        anneal_updates=200.0,
        discount=0.8,
        epsilon_start=1.0,
        epsilon_end=0.5,
        epsilon_updates=50.0,
    )
    train = make_loop(env, config)
    chunk = loop.make_chunk(train.update, 200)
    state, _ = jax.jit(lambda key: chunk(train.init(key)))(jax.random.key(0))
    q = NETWORK.apply(state.agent.params, env.observations())
    np.testing.assert_allclose(np.asarray(q), env.optimal_q(0.8), atol=0.05)
    greedy = pqn.make(NETWORK, replace(config, epsilon_end=1.0), greedy=True)
    for obs, values in zip(env.observations(), env.optimal_q(0.8), strict=True):
        action, _, _ = greedy.act(state.agent, (), obs, jax.random.key(0))
        assert values[action] == values.max()


class Numbers:
    """Q(obs, ·) = (obs, obs - 1), so that V(obs) = obs."""

    def init(self, key, obs):
        return jnp.ones(())

    def apply(self, params, obs):
        return params * jnp.concatenate([obs, obs - 1.0], axis=-1)


def hand_made() -> Transition:
    """Three steps: on to 2, truncated before a true 5, then on to 7."""
    no, action = jnp.zeros((3, 1), bool), jnp.array([[0], [1], [1]])
    return Transition(
        obs=jnp.array([[[1.0]], [[2.0]], [[3.0]]]),
        action=action,
        reward=jnp.array([[10.0], [20.0], [30.0]]),
        next_obs=jnp.array([[[2.0]], [[5.0]], [[7.0]]]),  # 3 came after the reset
        terminated=no,
        truncated=no.at[1, 0].set(True),
        extras=pqn.Extras(jnp.array([[1.0], [2.0], [3.0]])),
    )


def test_targets_and_loss_by_hand():
    network: Any = Numbers()
    config = pqn.Config(discount=0.5, lambda_=0.8, minibatches=1)
    batch = pqn.make_batch(network, jnp.ones(()), hand_made(), config)
    second = 20 + 0.5 * 5
    first = 10 + 0.5 * (0.2 * 2 + 0.8 * second)
    third = 30 + 0.5 * 7
    np.testing.assert_allclose(batch.target, np.c_[[first, second, third]], rtol=1e-6)
    total, metrics = pqn.loss(jnp.ones(()), network, flatten(batch, 1).data)
    scaled = replace(config, reward_scale=3.0)  # of rewards, not of the values they end in
    batch = pqn.make_batch(network, jnp.ones(()), hand_made(), scaled)
    scaled_second = 60 + 0.5 * 5
    expected = [30 + 0.5 * (0.2 * 2 + 0.8 * scaled_second), scaled_second, 90 + 0.5 * 7]
    np.testing.assert_allclose(batch.target, np.c_[expected], rtol=1e-6)
    errors = np.array([1.0 - first, 1.0 - second, 2.0 - third])  # of actions 0, 1, 1
    np.testing.assert_allclose(total, 0.5 * np.mean(errors**2), rtol=1e-6)
    np.testing.assert_allclose(metrics["q"], 4 / 3, rtol=1e-6)


def test_minibatches_must_divide_the_rollout(key):
    network: Any = Numbers()
    agent = pqn.make(network, pqn.Config())
    state = pqn.State(jnp.ones(()), (), jnp.zeros((), jnp.int32))
    with pytest.raises(ValueError, match="3 transitions cannot be split into 8 equal minibatches"):
        agent.update(state, hand_made(), key)


@pytest.mark.slow
def test_learning_rate_and_epsilon_fall_and_every_number_may_be_traced():
    numbers, structure = jax.tree.flatten(TINY)
    assert len(numbers) == 9

    def run(numbers):
        train = make_loop(toys.ActionReward(), jax.tree.unflatten(structure, numbers))

        def update(state, _):
            state, metrics = train.update(state)
            return state, (state.agent.params, metrics.agent)

        return jax.lax.scan(update, train.init(jax.random.key(0)), length=5)[1]

    params, metrics = jax.jit(run)(numbers)
    np.testing.assert_allclose(metrics["learning_rate"], [0.1, 0.075, 0.05, 0.025, 0], rtol=1e-5)
    np.testing.assert_allclose(metrics["epsilon"], [0.1, 0.055, 0.01, 0.01, 0.01], rtol=1e-5)
    for param in jax.tree.leaves(params):
        assert not np.array_equal(param[2], param[3])
        np.testing.assert_array_equal(param[3], param[4])  # the learning rate has come to 0
    assert np.all(metrics["grad_norm"] > 0)


def test_a_network_of_boards_is_refused(key):
    """A dense network would take the last axis for the features and give values for each cell."""
    agent = pqn.make(QNetwork(MLP((4,)), 2), pqn.Config())
    with pytest.raises(ValueError, match=r"returns \[5, 6, 2\] for one observation"):
        agent.init(key, jnp.zeros((5, 6, 3)))


MAKES = [lambda x: pqn.make(x, pqn.Config()), lambda x: dqn.make(x, dqn.Config())]


@pytest.mark.parametrize("make", MAKES)
def test_what_is_no_network_of_observations_is_refused(make):
    with pytest.raises(ValueError, match=r"network is the class QNetwork, .*: give an instance of"):
        make(QNetwork)
    with pytest.raises(ValueError, match=r"takes \(obs, action\), expected \(obs\): .*QNetwork"):
        make(QFunctions(MLP((4,))))


@pytest.mark.parametrize("make", MAKES)
def test_a_network_of_policies_is_refused(make, key):
    agent = make(ActorCritic(MLP((4,)), 2))
    message = r"\(Categorical\(logits=\[2\]\), \[\]\) for .*, expected \[A\]: use .*QNetwork"
    with pytest.raises(ValueError, match=message):
        agent.init(key, jnp.zeros(3))
