"""SAC's formulas against plain NumPy and finite differences, and how it acts and remembers."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.agent_checker import agent_checker
from jaxrl.agents import sac
from jaxrl.losses.distributions.continuous import Normal, SquashedNormal
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.mlp import MLP
from jaxrl.replay import uniform
from tests.jaxrl import toy_environments as toys
from tests.jaxrl.agents.sac_parts import (
    HIGH,
    LOW,
    NETWORKS,
    A,
    B,
    D,
    N,
    agent,
    as64,
    init_learner,
    random_batch,
    random_rollout,
    slopes,
    to_numpy,
)

WARM = sac.Config(warmup=0, batch_size=5, updates_per_rollout=2, capacity=40)


def noise_of(key: jax.Array) -> np.ndarray:
    return as64(jax.random.normal(jax.random.clone(key), (B, A)))


# Targets, losses and gradients.


def test_soft_target_equals_a_calculation_in_numpy(key):
    """r + γ (min Q⁻ - α log π); where terminated r alone."""
    learner, batch = init_learner(replace(WARM, initial_temperature=0.7)), random_batch(0)
    slow = to_numpy(learner.params.actor, learner.target_params.critic)
    expected = []
    for i, noise in enumerate(noise_of(key)):
        obs = as64(batch.next_obs[i])
        action, log_prob = slow.draw(obs, noise)
        value = slow.q(obs, action).min() - 0.7 * log_prob
        expected.append(float(batch.return_[i]) + float(batch.discount[i]) * value)
    soft_target = jax.jit(partial(sac.soft_target, NETWORKS))
    target = soft_target(learner, batch, key)
    np.testing.assert_allclose(target, expected, rtol=1e-4, atol=1e-5)
    has_ended = np.asarray(batch.discount) == 0
    assert 0 < has_ended.sum() < B
    np.testing.assert_allclose(target[has_ended], batch.return_[has_ended])
    next_obs = jnp.where(has_ended[:, None], jnp.nan, batch.next_obs)  # which nothing follows
    again = soft_target(learner, batch._replace(next_obs=next_obs), jax.random.clone(key))
    np.testing.assert_array_equal(again, target)


def test_critic_loss_and_its_gradient_equal_numpy():
    learner, batch = init_learner(WARM), random_batch(0)
    target = np.random.default_rng(1).normal(size=B)
    numpy = to_numpy(learner.params.actor, learner.params.critic)
    (loss, q), grads = jax.value_and_grad(sac.critic_loss, has_aux=True)(
        learner.params.critic, NETWORKS, batch, jnp.asarray(target, jnp.float32)
    )
    np.testing.assert_allclose(loss, numpy.critic_loss(batch, target), rtol=1e-5)
    by_hand = [numpy.q(*x) for x in zip(as64(batch.obs), as64(batch.action), strict=True)]
    np.testing.assert_allclose(q, by_hand, rtol=1e-4, atol=1e-5)
    for name in ("v", "u"):
        loss_of = lambda x, name=name: numpy._replace(**{name: x}).critic_loss(batch, target)
        expected = slopes(loss_of, getattr(numpy, name))
        np.testing.assert_allclose(grads[name], expected, rtol=1e-3, atol=1e-4)


def test_actor_loss_and_its_gradient_equal_numpy(key):
    """The gradient passes through the sample and through log π, with noise held fixed."""
    learner, batch = init_learner(replace(WARM, initial_temperature=0.7)), random_batch(0)
    numpy = to_numpy(learner.params.actor, learner.params.critic)
    obs, noise = as64(batch.obs), noise_of(key)
    (loss, log_prob), grads = jax.value_and_grad(sac.actor_loss, has_aux=True)(
        learner.params.actor, NETWORKS, learner.params, batch.obs, key
    )
    np.testing.assert_allclose(loss, numpy.actor_loss(obs, noise, 0.7), rtol=1e-4)
    by_hand = [numpy.draw(*x)[1] for x in zip(obs, noise, strict=True)]
    np.testing.assert_allclose(log_prob, by_hand, rtol=1e-4, atol=1e-5)
    expected = slopes(lambda w: numpy._replace(w=w).actor_loss(obs, noise, 0.7), numpy.w)
    np.testing.assert_allclose(grads["w"], expected, rtol=1e-3, atol=1e-4)


def test_temperature_rises_where_the_entropy_is_too_low():
    """d/d log α of E[-log α (log π + H̄)] is the entropy less the target."""
    slope = jax.grad(sac.temperature_loss)
    log_prob = jnp.array([0.5, 2.0, -1.0])  # an entropy of -1/2
    for target_entropy in (-2.0, 1.0):
        for log_temperature in (-5.0, 3.0):
            gradient = slope(jnp.float32(log_temperature), log_prob, target_entropy)
            np.testing.assert_allclose(gradient, -0.5 - target_entropy, rtol=1e-6)


# One gradient update.


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("target_entropy", [None, -0.3])
@pytest.mark.parametrize("max_norm", [float("inf"), 0.01])
def test_a_gradient_step_is_one_of_adam_for_each_part(key, target_entropy, max_norm):
    """All three at the old parameters; the first step of Adam is rate * g / (|g| + ε)."""
    config = replace(WARM, target_entropy=target_entropy, max_grad_norm=max_norm)
    config = replace(config, actor_learning_rate=0.1, critic_learning_rate=0.2, tau=0.25)
    learner, batch = init_learner(config), random_batch(0)
    target_key, actor_key = jax.random.split(jax.random.clone(key))
    params = learner.params
    target = sac.soft_target(NETWORKS, learner, batch, target_key)
    critic, _ = jax.grad(sac.critic_loss, has_aux=True)(params.critic, NETWORKS, batch, target)
    actor, log_prob = jax.grad(sac.actor_loss, has_aux=True)(
        params.actor, NETWORKS, params, batch.obs, actor_key
    )
    entropy = -np.mean(log_prob)
    grads = sac.Parts(actor, critic, entropy - (-A if target_entropy is None else target_entropy))

    after, metrics = jax.jit(partial(sac.gradient_step, NETWORKS, config))(learner, batch, key)
    for rate, old, new, grad in zip((0.1, 0.2, 3e-3), params, after.params, grads, strict=True):
        norm = np.sqrt(sum(np.sum(np.square(x)) for x in jax.tree.leaves(grad)))
        for a, b, g in zip(*map(jax.tree.leaves, (old, new, grad)), strict=True):
            g = np.asarray(g) * min(1.0, max_norm / norm)
            np.testing.assert_allclose(a - b, rate * g / (np.abs(g) + 1e-8), rtol=1e-2, atol=1e-5)
    targets = jax.tree.map(
        lambda old, new: 0.75 * old + 0.25 * new, learner.target_params.critic, after.params.critic
    )
    chex.assert_trees_all_close(after.target_params.critic, targets, rtol=1e-5)
    assert int(after.updates) == 1
    np.testing.assert_allclose(metrics["entropy"], entropy, rtol=1e-5)
    for name, grad in (("actor_grad_norm", actor), ("critic_grad_norm", critic)):
        norm = np.linalg.norm(np.concatenate([np.ravel(x) for x in jax.tree.leaves(grad)]))
        np.testing.assert_allclose(metrics[name], norm, rtol=1e-4)  # before it is clipped


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_targets_average_the_critics_exponentially(tau):
    """θ⁻ after M updates: (1 - τ)^M θ⁻₀ + Σ τ (1 - τ)^(M - m) θₘ."""
    config = replace(WARM, tau=tau, critic_learning_rate=0.1)
    learner = init_learner(config)
    gradient_step = jax.jit(partial(sac.gradient_step, NETWORKS, config))
    expected = as64(learner.target_params.critic["v"])
    for m, key in enumerate(jax.random.split(jax.random.key(0), 4)):
        learner, _ = gradient_step(learner, random_batch(m), key)
        expected = (1 - tau) * expected + tau * as64(learner.params.critic["v"])
        np.testing.assert_allclose(learner.target_params.critic["v"], expected, rtol=1e-5)


@pytest.mark.slow
def test_a_fixed_temperature_stays():
    config = replace(WARM, learn_temperature=False, initial_temperature=0.3)
    one = agent(config, num_envs=N)
    state = jax.jit(one.init)(jax.random.key(0), jnp.zeros(D))
    after, metrics = jax.jit(one.update)(state, random_rollout(0), jax.random.key(1))
    np.testing.assert_array_equal(
        after.learner.params.log_temperature, state.learner.params.log_temperature
    )
    np.testing.assert_allclose(metrics["temperature"], 0.3, rtol=1e-6)
    assert int(after.learner.updates) == 2


# The box, and samples close to its ends.


def test_the_entropy_is_that_of_scaled_actions(key):
    """The same in every box; that of the action has Σ log((high - low) / 2) more."""
    raw = Normal(jnp.array([0.3, -0.5]), jnp.array([0.5, 0.8]))
    boxes = [SquashedNormal(raw, jnp.array(low), jnp.array(high)) for low, high in BOXES]
    draws = [sac.draw(policy, jax.random.clone(key)) for policy in boxes]
    for policy, (scaled, log_prob) in zip(boxes, draws, strict=True):
        np.testing.assert_array_equal(scaled, draws[0][0])
        np.testing.assert_array_equal(log_prob, draws[0][1])
        half = (policy.high - policy.low) / 2
        action = policy.low + half * (1 + scaled)
        density = policy.log_prob(action)  # of the action itself
        np.testing.assert_allclose(density, log_prob - np.sum(np.log(half)), rtol=1e-4)


BOXES = [([-1.0, -1.0], [1.0, 1.0]), ([-2.0, 0.0], [6.0, 0.5]), ([10.0, -0.1], [30.0, 0.1])]


@pytest.mark.parametrize("mean", [-12.0, 12.0])
def test_log_probabilities_are_exact_at_the_ends_of_the_box(mean, key):
    """Where tanh is ±1 in float32, and 1 - tanh² is 0."""
    policy = SquashedNormal(
        Normal(jnp.full(A, mean), jnp.ones(A)), jnp.asarray(LOW), jnp.asarray(HIGH)
    )
    raw = mean + as64(jax.random.normal(jax.random.clone(key), (A,)))
    expected = np.sum(stats.norm.logpdf(raw, mean) + 2 * np.log(np.cosh(raw)))
    log_prob, slope = jax.value_and_grad(lambda x: sac.draw(replace(policy, raw=x), key)[1])(
        policy.raw
    )
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5)
    np.testing.assert_allclose(slope.mean, 2 * np.tanh(raw), rtol=1e-5)


# Acting and remembering.


def actions_of(one, state, number: int = 2_000):
    """`[number, A]` of one observation, the same scaled to [-1, 1], and the policy."""
    obs = jnp.array([0.4, -0.2, 0.1])
    act = jax.jit(jax.vmap(one.act, in_axes=(None, None, None, 0)))
    action, _, scaled = act(state, (), obs, jax.random.split(jax.random.key(3), number))
    return (
        np.asarray(action),
        np.asarray(scaled),
        NETWORKS.actor.apply(state.learner.params.actor, obs),
    )


def test_actions_are_uniform_until_the_end_of_the_warm_up():
    one = agent(replace(WARM, warmup=2 * N + 1), num_envs=N)
    state = jax.jit(one.init)(jax.random.key(0), jnp.zeros(D))
    update = jax.jit(one.update)
    for seed in range(2):
        action, scaled, policy = actions_of(one, state)
        if seed == 0:
            for i in range(A):
                box = (LOW[i], HIGH[i] - LOW[i])
                assert stats.kstest(action[:, i], stats.uniform(*box).cdf).pvalue > 0.01
        np.testing.assert_allclose(action, LOW + (HIGH - LOW) * (1 + scaled) / 2, atol=1e-5)
        assert np.all((action >= LOW) & (action <= HIGH))
        state, _ = update(state, random_rollout(seed), jax.random.key(seed))
    raw = np.arctanh(actions_of(one, state)[1])
    policy = actions_of(one, state)[2].raw
    for i in range(A):
        expected = stats.norm(float(policy.mean[i]), float(policy.scale[i]))
        assert stats.kstest(raw[:, i], expected.cdf).pvalue > 0.01


def test_greedy_acts_by_the_mode_at_all_times():
    config = replace(WARM, warmup=1_000)
    state = jax.jit(agent(config).init)(jax.random.key(0), jnp.zeros(D))
    action, scaled, policy = actions_of(agent(config, greedy=True), state, 3)
    np.testing.assert_array_equal(action, np.broadcast_to(policy.mode(), (3, A)))
    np.testing.assert_allclose(scaled, np.broadcast_to(np.tanh(policy.raw.mean), (3, A)), rtol=1e-5)


def test_nothing_is_learned_before_the_end_of_the_warm_up():
    sac_agent = agent(replace(WARM, warmup=2 * 2 * N), num_envs=N)
    state = jax.jit(sac_agent.init)(jax.random.key(0), jnp.zeros(D))
    update = jax.jit(sac_agent.update)
    before, metrics = update(state, random_rollout(0), jax.random.key(1))
    chex.assert_trees_all_equal(before.learner, state.learner)
    assert {name for name, x in metrics.items() if x != 0} == {"temperature"}
    after, later_metrics = update(before, random_rollout(1), jax.random.key(2))
    assert int(after.learner.updates) == 2
    chex.assert_trees_all_equal_shapes_and_dtypes(metrics, later_metrics)
    assert all(x != 0 for x in later_metrics.values())


def test_a_full_replay_ends_the_warm_up():
    one = agent(replace(WARM, warmup=1_000, capacity=4 * N), num_envs=N)
    state = jax.jit(one.init)(jax.random.key(0), jnp.zeros(D))
    update = jax.jit(one.update)
    for seed, expected in enumerate((0, 2)):
        state, metrics = update(state, random_rollout(seed), jax.random.key(seed))
        assert int(metrics["updates"]) == expected


@pytest.mark.slow
def test_the_replay_holds_scaled_actions_and_true_successors():
    one = agent(WARM, num_envs=N)
    state = jax.jit(one.init)(jax.random.key(0), jnp.zeros(D))
    rollout = random_rollout(0)
    state, _ = jax.jit(one.update)(state, rollout, jax.random.key(1))
    row, ring = jnp.array([[0] * N, [1] * N]), state.replay
    stored = uniform.take(ring, ring.data, row, jnp.arange(N))
    chex.assert_trees_all_equal(stored, rollout._replace(action=rollout.extras, extras=()))


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [None, 0.9])
def test_it_keeps_the_contract(correlation):
    networks = (GaussianActor(MLP((8,)), 1, -1.0, 2.0), QFunctions(MLP((8,))))
    config = replace(WARM, capacity=100, noise_correlation=correlation)
    one, greedy = (sac.make(*networks, config, x, num_envs=4) for x in (False, True))
    agent_checker(one, toys.TargetAction(), (), greedy)
