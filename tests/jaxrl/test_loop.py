"""The loop: what it gathers and counts, on gymnax's own environments and on toys."""

import chex
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import environment, spaces

import jaxrl
from jaxrl import loop
from jaxrl.agents import dqn, ppo, pqn, recurrent_ppo
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP, ActorCritic, GaussianActorCritic
from jaxrl.networks.recurrent import RecurrentActorCritic
from jaxrl.types import Agent
from jaxrl.wrappers import normalisation
from tests.jaxrl import toy_environments as toy


def counting_agent(num_actions):
    """Acts at random, counts its own steps within an episode and returns the whole rollout."""

    def act(state, memory, obs, key):
        return jax.random.randint(key, (), 0, num_actions), memory + 1, memory

    return Agent(
        init=lambda key, obs: (),
        memory=lambda: jnp.zeros((), jnp.int32),
        act=act,
        update=lambda state, rollout, key: (state, {"rollout": rollout}),  # pyright: ignore
    )


def run(env, params, num_envs=3, num_steps=70, num_updates=2):
    train_loop = loop.make_loop(
        env, params, counting_agent(env.num_actions), loop.Config(num_envs, num_steps)
    )
    state, metrics = jax.jit(loop.make_chunk(train_loop.update, num_updates))(
        train_loop.init(jax.random.key(0))
    )
    return state, metrics, metrics.agent["rollout"]


def test_gymnax_rollout_is_one_unbroken_story():
    env, params = gymnax.make("CartPole-v1")
    params = params.replace(max_steps_in_episode=20)  # so that both endings occur
    state, metrics, rollout = run(env, params)
    rollout = jax.tree.map(lambda x: np.asarray(x).reshape(140, 3, *x.shape[3:]), rollout)
    done = rollout.terminated | rollout.truncated
    assert rollout.terminated.any()
    assert rollout.truncated.any()
    steps, returned, lengths = np.zeros(3, int), [], []
    for t in range(140):
        np.testing.assert_array_equal(rollout.extras[t], steps)  # memory begins anew
        steps = steps + 1
        for n in range(3):
            if done[t, n]:
                returned.append(float(steps[n]))  # CartPole pays 1 a step
                lengths.append(steps[n])
                assert np.all(np.abs(rollout.obs[t + 1, n]) <= 0.05) if t < 139 else True
            elif t < 139:
                follows = rollout.next_obs[t, n], rollout.obs[t + 1, n]
                np.testing.assert_allclose(*follows, rtol=1e-6, atol=1e-6)  # compiled twice
        steps = np.where(done[t], 0, steps)
    assert np.asarray(metrics.episodes).sum() == len(lengths)
    assert np.asarray(metrics.finished["length"]).sum() == sum(lengths)
    np.testing.assert_allclose(np.asarray(metrics.finished["return"]).sum(), sum(returned))
    assert int(state.updates) == 2


def test_terminal_observation_is_never_the_reset_one():
    _, _, rollout = run(toy.TruncatedClimb(), ())
    last = np.asarray(rollout.truncated)
    assert np.all(np.asarray(rollout.next_obs)[last] == [0.0, 1.0])  # the rich place
    following = np.asarray(rollout.obs)[:, 1:][last[:, :-1]]
    assert np.all(following == [1.0, 0.0])  # the poor place, where an episode starts


def test_components_of_any_kind_of_number_are_float32():
    """Rewards are, too. In integers a discount of 0.99 would be 0 (`wrappers.normalisation`)."""

    class InParts(toy.DelayedReward):
        def step(self, key, state, action, params):
            *step, info = super().step(key, state, action, params)
            parts = jnp.stack([step[2] > 0, step[2] > 2]).astype(jnp.int8)
            return *step, info | {"components": parts}

    _, _, rollout = run(InParts(), (), num_steps=4, num_updates=1)
    assert rollout.reward.dtype == jnp.float32
    expected = np.array([[0, 0], [1, 0]] * 2)[:, None].repeat(3, axis=1)
    np.testing.assert_array_equal(rollout.reward[0], expected)


def test_same_key_same_run_and_other_key_other_run():
    env, params = gymnax.make("CartPole-v1")
    first, second = run(env, params), run(env, params)
    chex.assert_trees_all_equal(first[2], second[2])
    train_loop = loop.make_loop(env, params, counting_agent(2), loop.Config(3, 5))
    states = jax.vmap(train_loop.init)(jax.random.split(jax.random.key(3), 2))
    _, metrics = jax.vmap(train_loop.update)(states)
    actions = np.asarray(metrics.agent["rollout"].action)  # pyright: ignore
    assert np.any(actions[0] != actions[1])


def test_chunk_of_two_is_two_chunks_of_one():
    env, params = gymnax.make("CartPole-v1")
    train_loop = loop.make_loop(env, params, counting_agent(2), loop.Config(3, 5))
    two_updates, _ = jax.jit(loop.make_chunk(train_loop.update, 2))(
        train_loop.init(jax.random.key(0))
    )
    one = jax.jit(loop.make_chunk(train_loop.update, 1))
    chex.assert_trees_all_equal(two_updates, one(one(train_loop.init(jax.random.key(0)))[0])[0])


def test_chunk_is_traced_once():
    env, params = gymnax.make("CartPole-v1")
    train_loop = loop.make_loop(env, params, counting_agent(2), loop.Config(3, 5))
    chunk = jax.jit(chex.assert_max_traces(loop.make_chunk(train_loop.update, 2), n=1))
    state = train_loop.init(jax.random.key(0))
    for _ in range(3):
        state, _ = chunk(state)


def test_the_front_door_is_a_loop_and_a_chunk():
    env, params = gymnax.make("CartPole-v1")
    agent, sizes = counting_agent(2), loop.Config(num_envs=3, num_steps=7)
    _, metrics, _ = run(env, params, sizes.num_envs, sizes.num_steps)
    _, by_steps = jaxrl.train(env, params, agent, sizes, steps=22)  # rounded up to 42
    chex.assert_trees_all_equal(by_steps, metrics)
    by_seed = jax.vmap(lambda seed: jaxrl.train(env, params, agent, sizes, 42, seed)[1])
    first = jax.tree.map(lambda x: x[0], by_seed(jnp.arange(2)))
    chex.assert_trees_all_close(first, metrics, rtol=1e-6)


GYM = gymnax.make("CartPole-v1")
SIZES = loop.Config(num_envs=2, num_steps=3)
TWO_BLOCKS = loop.Config(2, 3, blocks=2)
NETWORK = QNetwork(MLP((4,)), 2)
HEADS = ActorCritic(MLP(()), 2)
LEARNER = ppo.make(HEADS, ppo.Config())
RECURRENT_LEARNER = recurrent_ppo.make(
    RecurrentActorCritic(MLP((4,)), HEADS), recurrent_ppo.Config()
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps is 0, expected a number at least 1"),
        ({"steps": float("nan")}, "steps is nan, expected a number"),
        ({"steps": "1000"}, "steps is '1000', expected a number"),
        ({"seed": 2**40}, "seed is 1099511627776, expected .* at most 4294967295"),
        ({"seed": np.array(2**40)}, "seed is 1099511627776, expected .* at most 4294967295"),
        ({"seed": 1.5}, "seed is 1.5, expected an integer"),
        ({"config": ppo.Config()}, "config is a jaxrl.agents.ppo.Config, .*: give a jaxrl.loop.C"),
        ({"env": toy.ActionReward}, "environment is the class ActionReward, .*: give an instance"),
        ({"params": loop.Config}, r"params are the class Config, expected .* give Config\(\)"),
        ({"env": GYM}, "environment is a tuple, expected an object with reset, step"),
        ({"agent": dqn.Config()}, "agent is a jaxrl.agents.dqn.Config, expected .*what `make`"),
        (
            {"agent": dqn.make(NETWORK, dqn.Config(), num_envs=2), "config": TWO_BLOCKS},
            "made for 1 blocks, the loop has 2, expected the same: make the agent with blocks=2",
        ),
        (
            {"agent": pqn.make(NETWORK, pqn.Config(), blocks=2)},
            "made for 2 blocks, the loop has 1, expected the same: make the agent with blocks=1",
        ),
        (
            {"agent": normalisation.make(LEARNER, normalisation.Config(), 2), "config": TWO_BLOCKS},
            "made for 1 blocks, the loop has 2",
        ),
        ({"agent": RECURRENT_LEARNER, "config": TWO_BLOCKS}, "for 1 blocks, the loop has 2"),
    ],
)
def test_the_front_door_refuses_what_is_no_training_in_one_line(changes, message):
    agent = counting_agent(2)
    training = {"env": toy.ActionReward(), "agent": agent, "config": SIZES, "steps": 6, "seed": 0}
    with pytest.raises(ValueError, match=message) as error:
        jaxrl.train(**{"params": (), **training, **changes})
    assert "\n" not in str(error.value)


class Broken(toy.ActionReward):
    """What its step returns is changed before anything is made of it."""

    def __init__(self, change):
        self.change = change

    def step(self, key, state, action, params):
        return self.change(super().step(key, state, action, params))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:4] + x[5:], r"step returns 5 values; expected \(observation, "),
        (lambda x: (x[0][:0], *x[1:]), r"observation is float32\[2, 0\] after the env"),
        (lambda x: (x[0], x[1]._replace(time=1.0), *x[2:]), r"state.time is float32\[2\] aft"),
        (lambda x: (*x[:2], x[2][None], *x[3:]), r"float32\[1\] as reward; expected a number"),
        (lambda x: (*x[:2], None, *x[3:]), "a NoneType as reward; expected a number"),
        (lambda x: (*x[:3], 1, *x[4:]), r"int32\[\] as terminated; expected a bool"),
        (lambda x: (*x[:5], {}), "info has no final_observation, the true successor"),
        (lambda x: (*x[:5], x[5] | {"outcome": jnp.zeros(2)}), "outcome'] is .*; expected a dict"),
        (
            lambda x: (*x[:5], x[5] | {"outcome": {"place": jnp.zeros(2)}}),
            r"outcome'\] has 'place' of shape \[2\]; expected scalars",
        ),
    ],
)
def test_a_step_that_breaks_the_contract_is_told_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as error:
        jaxrl.train(Broken(change), (), counting_agent(2), SIZES, 6)
    assert "\n" not in str(error.value)


class Choosing(toy.ActionReward):
    """An environment that says which actions it takes."""

    def action_space(self, params):
        return spaces.Box(-1, 1, (2,)) if params == "box" else spaces.Discrete(2)


class SaysNothingOfActions(toy.ActionReward):
    """Has the function of gymnax's base class, which is there to be replaced."""

    action_space = environment.Environment.action_space


ACTORS = {
    "choices": ActorCritic(MLP((4,)), 2),
    "too many": ActorCritic(MLP((4,)), 7),
    "too few": ActorCritic(MLP((4,)), 1),
    "one number": GaussianActorCritic(MLP((4,)), MLP((4,)), 1),
}


@pytest.mark.parametrize(
    ("params", "agent", "message"),
    [
        ("box", ppo.make(ACTORS["choices"], ppo.Config()), r"int32\[\], .*array \[2\] of float32"),
        ("box", ppo.make(ACTORS["one number"], ppo.Config()), r"float32\[1\], .* takes an array"),
        ((), ppo.make(ACTORS["one number"], ppo.Config()), r"float32\[1\], .*integer from 0 to 1"),
        ((), ppo.make(ACTORS["too many"], ppo.Config()), "among 7 actions, .* from 0 to 1: make"),
        (
            (),
            ppo.make(ACTORS["too few"], ppo.Config()),
            "among 1 actions, .* network with 2 actions",
        ),
        ((), pqn.make(QNetwork(MLP((4,)), 7), pqn.Config()), "among 7 actions, .* from 0 to 1"),
    ],
)
def test_actions_that_the_environment_does_not_have_are_refused(params, agent, message):
    with pytest.raises(ValueError, match=message) as error:
        jaxrl.train(Choosing(), params, agent, SIZES, 6)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_an_environment_may_leave_out_which_actions_it_takes():
    agent = ppo.make(ACTORS["choices"], ppo.Config(minibatches=2))
    state, _ = jaxrl.train(SaysNothingOfActions(), (), agent, SIZES, 6)
    assert int(state.updates) == 1
