"""PPO's loss and updates against calculations by hand."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxrl.agents import dqn, ppo
from jaxrl.blocks import BlockBatch
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.networks.heads import DiscreteHead
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.networks.recurrent import RecurrentActorCritic
from jaxrl.types import Transition
from tests.jaxrl import toy_environments as toy
from tests.jaxrl.agents.ppo_parts import NETWORK, batch_of, rollout_of


def test_loss_equals_a_calculation_in_numpy(key):
    params, batch = batch_of(key, 16)
    config = ppo.Config(clip=0.2, value_weight=0.7, entropy_weight=0.3)
    policy, value = NETWORK.apply(params, batch.obs)
    logits, value = np.asarray(policy.logits, np.float64), np.asarray(value, np.float64)
    prob = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    advantage = np.asarray(batch.advantage, np.float64)
    advantage = (advantage - advantage.mean()) / advantage.std()
    policy_loss = value_loss = entropy = 0.0
    for i in range(16):
        ratio = prob[i, batch.action[i]] / np.exp(np.float64(batch.log_prob[i]))
        clipped = min(max(ratio, 0.8), 1.2)
        policy_loss -= min(ratio * advantage[i], clipped * advantage[i]) / 16
        value_loss += 0.5 * (value[i] - batch.target[i]) ** 2 / 16
        entropy -= sum(p * np.log(p) for p in prob[i]) / 16
    total, metrics = ppo.loss(NETWORK, params, batch, config)
    np.testing.assert_allclose(metrics["policy_loss"], policy_loss, rtol=1e-4)
    np.testing.assert_allclose(metrics["value_loss"], value_loss, rtol=1e-4)
    np.testing.assert_allclose(metrics["entropy"], entropy, rtol=1e-4)
    expected = policy_loss + 0.7 * value_loss - 0.3 * entropy
    np.testing.assert_allclose(total, expected, rtol=1e-4)


@pytest.mark.slow
def test_the_weight_of_the_entropy_adapts_to_a_target(key):
    """The gradient of the loss is that with the adapted number as a fixed weight."""
    params, batch = batch_of(key, 16)
    policy, _ = NETWORK.apply(params, batch.obs)
    prob = np.exp(np.asarray(jax.nn.log_softmax(policy.logits), np.float64))
    entropy = -(prob * np.log(prob)).sum(1).mean()
    for target, gain in ((entropy + 0.4, 2.0), (entropy - 0.1, 2.0), (entropy + 0.25, 0.5)):
        weight = 0.3 + gain * max(0.0, target - entropy)
        config = ppo.Config(entropy_weight=0.3, target_entropy=target, entropy_gain=gain)
        fixed = ppo.Config(entropy_weight=weight)
        gradient = jax.grad(ppo.loss, argnums=1, has_aux=True)
        grads, metrics = gradient(NETWORK, params, batch, config)
        np.testing.assert_allclose(metrics["entropy_weight"], weight, rtol=1e-4)
        expected, plain = gradient(NETWORK, params, batch, fixed)
        assert "entropy_weight" not in plain
        chex.assert_trees_all_close(grads, expected, rtol=1e-3, atol=1e-6)


def test_entropy_and_value_are_in_the_gradient(key):
    params, batch = batch_of(key, 16)

    @jax.jit
    def gradient(value_weight, entropy_weight):
        config = ppo.Config(value_weight=value_weight, entropy_weight=entropy_weight)
        return jax.grad(lambda p: ppo.loss(NETWORK, p, batch, config)[0])(params)

    def difference(a, b):
        return jax.tree.map(jnp.subtract, a, b)

    only_policy = gradient(0.0, 0.0)
    entropy_of = lambda p: jnp.mean(NETWORK.apply(p, batch.obs)[0].entropy())
    value_of = lambda p: jnp.mean(0.5 * (NETWORK.apply(p, batch.obs)[1] - batch.target) ** 2)
    from_entropy = jax.tree.map(jnp.negative, jax.jit(jax.grad(entropy_of))(params))
    chex.assert_trees_all_close(
        difference(gradient(0.0, 1.0), only_policy), from_entropy, atol=1e-5
    )
    chex.assert_trees_all_close(
        difference(gradient(1.0, 0.0), only_policy), jax.jit(jax.grad(value_of))(params), atol=1e-5
    )
    assert optax.tree.norm(from_entropy) > 1e-3


def test_advantages_are_standardised_within_each_minibatch(key):
    params, batch = batch_of(key, 8)
    shifted = batch._replace(advantage=100.0 * batch.advantage + 7.0)
    expected, _ = ppo.loss(NETWORK, params, batch, ppo.Config())
    np.testing.assert_allclose(
        ppo.loss(NETWORK, params, shifted, ppo.Config())[0], expected, rtol=1e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("standardise", [True, False])
def test_gradients_of_microbatches_add_up_to_that_of_the_minibatch(key, blocks, standardise):
    params, batch = batch_of(key, 24)
    config = ppo.Config(value_clip=0.1, standardise=standardise)
    minibatch = BlockBatch(batch, blocks)
    full_gradient, metrics = ppo.gradient_of(NETWORK, params, minibatch, config)
    parts, parts_metrics = ppo.gradient_of(
        NETWORK, params, minibatch, replace(config, microbatch_size=4)
    )
    assert optax.tree.norm(full_gradient) > 0.1
    chex.assert_trees_all_close(parts, full_gradient, rtol=1e-4, atol=1e-6)
    chex.assert_trees_all_close(parts_metrics, metrics, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("blocks", "size"), [(1, 5), (2, 8), (5, 4)])
def test_microbatches_must_divide_a_block_of_a_minibatch(key, blocks, size):
    params, batch = batch_of(key, 24)
    config = ppo.Config(microbatch_size=size)
    with pytest.raises(ValueError, match=f"24 transitions in {blocks} blocks cannot be split"):
        ppo.gradient_of(NETWORK, params, BlockBatch(batch, blocks), config)


def test_a_target_of_the_entropy_needs_whole_minibatches():
    with pytest.raises(ValueError, match="target_entropy needs the entropy of a whole minibatch"):
        ppo.make(NETWORK, ppo.Config(target_entropy=0.5, microbatch_size=4))


@pytest.mark.slow
def test_target_kl_skips_the_rest_of_an_update():
    network = ActorCritic(MLP((8,)), 2)

    @jax.jit
    def learn(config):
        keys = jax.random.split(jax.random.key(0), 3)
        agent = ppo.make(network, config)
        state = agent.init(keys[0], jnp.ones(1))
        return agent.update(state, rollout_of(agent, state, keys[1]), keys[2])

    config = ppo.Config(learning_rate=0.3, minibatches=3, epochs=4, entropy_weight=0.0)
    stopped, metrics = learn(replace(config, target_kl=1e-4))
    one_step, _ = learn(replace(config, target_kl=-1.0))  # stops behind the first minibatch
    free, free_metrics = learn(config)
    adam = lambda state: state.opt_state[1].count
    assert metrics["stopped"] == 1.0
    assert free_metrics["stopped"] == 0.0
    assert adam(one_step) == 1
    assert 1 <= adam(stopped) < adam(free) == 12


@pytest.mark.slow
def test_learning_rate_and_entropy_weight_fall_to_zero(key):
    network = ActorCritic(MLP((8,)), 2)
    agent = ppo.make(network, ppo.Config(learning_rate=0.1, anneal_updates=4.0, minibatches=2))
    init_key, *keys = jax.random.split(key, 6)
    state = agent.init(init_key, jnp.ones(1))
    rates = []

    @jax.jit
    def learn(state, key):
        rollout_key, update_key = jax.random.split(key)
        return agent.update(state, rollout_of(agent, state, rollout_key), update_key)

    for update_key in keys:
        before = state.params
        state, metrics = learn(state, update_key)
        rates.append(float(metrics["learning_rate"]))
    np.testing.assert_allclose(rates, [0.1, 0.075, 0.05, 0.025, 0.0], atol=1e-7)
    chex.assert_trees_all_equal(before, state.params)


@pytest.mark.slow
def test_the_horizon_grows_by_one_factor_per_update():
    """From 10 steps to 100 within four updates; each learns as if its discount were a constant."""

    @jax.jit
    def value_loss(config, updates):
        keys = jax.random.split(jax.random.key(0), 3)
        agent = ppo.make(ActorCritic(MLP((8,)), 2), config)
        state = agent.init(keys[0], jnp.ones(1))._replace(updates=updates)
        rollout = rollout_of(agent, state, keys[1], env=toy.TruncatedStream())
        return agent.update(state, rollout, keys[2])[1]["value_loss"]

    config = ppo.Config(minibatches=1, epochs=1)
    growing_config = replace(config, discount=0.9, final_discount=0.99, anneal_updates=4.0)
    for updates, horizon in [(0, 10.0), (2, 1000.0**0.5), (4, 100.0), (9, 100.0)]:
        actual = float(value_loss(growing_config, updates))
        constant, shorter = (
            float(value_loss(replace(config, discount=1 - x / horizon), updates)) for x in (1, 2)
        )
        assert actual == pytest.approx(constant, rel=1e-4)
        assert actual != pytest.approx(shorter, rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"minibatches": 0}, "^minibatches is 0, expected a number at least 1"),
        ({"clip": 0.0}, "^clip is 0.0, expected a number above 0.0"),
        ({"gae_lambda": 1.1}, "^gae_lambda is 1.1, expected a number at least 0.0 and at most 1"),
        ({"final_discount": 1.0}, "^final_discount is 1.0, .* below 1.0"),
        ({"discount": 1.0, "final_discount": 0.9}, "^discount is 1.0, .* below 1.0"),
        ({"component_weights": (1.0, -1.0)}, r"^component_weights\[1\] is -1.0, .* at least 0.0"),
        ({"adam_epsilon": float("nan")}, "^adam_epsilon is nan, expected a number above 0.0"),
        ({"anneal_updates": 0.0}, "^anneal_updates is 0.0, expected a number above 0.0"),
        ({"entropy_weight": -0.1}, "^entropy_weight is -0.1, expected a number at least 0.0"),
    ],
)
def test_numbers_that_nothing_can_be_learned_with_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        ppo.make(ActorCritic(MLP((8,)), 2), ppo.Config(**wrong))


RECURRENT = RecurrentActorCritic(MLP((4,)), ActorCritic(MLP(()), 2))


@pytest.mark.parametrize(
    ("network", "config", "message"),
    [
        (NETWORK, dqn.Config(), "config is a jaxrl.agents.dqn.Config, .* give a jaxrl.agents.ppo."),
        (NETWORK, ppo.Config, "config is the class jaxrl.agents.ppo.Config, expected the setting"),
        (ActorCritic, ppo.Config(), "network is the class ActorCritic, .* init, apply: give an in"),
        (RECURRENT, ppo.Config(), r"takes \(obs, memory\), expected \(obs\): .* to recurrent_ppo"),
    ],
)
def test_what_is_for_another_agent_is_refused_in_one_line(network, config, message):
    with pytest.raises(ValueError, match=message) as error:
        ppo.make(network, config)
    assert "\n" not in str(error.value)


class Logits:
    """A policy that is no distribution yet."""

    init = lambda self, key, obs: ()
    apply = lambda self, params, obs: (obs, obs[0])


@pytest.mark.parametrize(
    ("network", "shapes"),
    [
        (MLP((4,)), "[4]"),
        (DiscreteHead(2), "Categorical(logits=[2])"),
        (Logits(), "([3], [])"),
    ],
)
def test_a_network_without_heads_is_refused_in_one_line(network, shapes: str, key):
    with pytest.raises(
        ValueError, match="expected \\(policy, value\\), the policy one of"
    ) as error:
        ppo.make(network, ppo.Config()).init(key, jnp.zeros(3))
    assert f"the network returns {shapes} for one observation of shape [3]" in str(error.value)
    assert "\n" not in str(error.value)


def test_minibatches_must_divide_the_rollout(key):
    agent = ppo.make(ActorCritic(MLP((8,)), 2), ppo.Config(minibatches=7))
    state = agent.init(key, jnp.ones(1))
    with pytest.raises(ValueError, match="24 transitions cannot be split into 7"):
        agent.update(state, rollout_of(agent, state, jax.random.key(1)), jax.random.key(2))


def test_truncated_steps_bootstrap_from_the_true_successor():
    """Two steps, one environment: what the target is made of, by hand."""

    class Table:
        """V(obs) = obs, and a policy that does not care."""

        def apply(self, params, obs):
            return Categorical(jnp.zeros((*obs.shape[:-1], 2))), obs[..., 0]

    rollout = Transition(
        obs=jnp.array([[[1.0]], [[2.0]]]),
        action=jnp.zeros((2, 1), jnp.int32),
        reward=jnp.array([[10.0], [20.0]]),
        next_obs=jnp.array([[[5.0]], [[7.0]]]),  # 5 followed truly; 2 came after the reset
        terminated=jnp.array([[False], [False]]),
        truncated=jnp.array([[True], [False]]),
        extras=ppo.Extras(jnp.zeros((2, 1)), jnp.array([[1.0], [2.0]])),
    )
    config = ppo.Config(discount=0.5, gae_lambda=0.9, minibatches=1)
    make_batch = jax.jit(partial(ppo.make_batch, Table(), None))  # pyright: ignore
    batch = make_batch(rollout, config)
    np.testing.assert_allclose(batch.target, [[10 + 0.5 * 5], [20 + 0.5 * 7]])
