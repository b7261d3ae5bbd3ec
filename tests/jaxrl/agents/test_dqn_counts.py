"""DQN: what is counted, and in which unit."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxrl.agents import dqn
from jaxrl.losses import q_learning
from jaxrl.losses.n_step import Batch
from tests.jaxrl.agents.dqn_parts import Mlp, N, arrays, assert_equal, init_state, random_rollout


def random_batches(seed: int, updates: int, batch: int = 5) -> Batch:
    """Minibatches `[M, B]` with random everything."""
    steps = random_rollout(seed, updates, batch)
    discount = jnp.where(steps.terminated, 0.0, 0.9)
    return Batch(steps.obs, steps.action, steps.reward, discount, steps.next_obs)


@pytest.mark.slow
def test_target_network_follows_every_period_of_gradient_updates():
    """Updates 7, 14 and 21 of 25 copy, whether a rollout has one update or five."""
    config = dqn.Config(target_period=7)
    network, key = Mlp(), jax.random.key(0)
    learner = init_state(dqn.make(network, config)).learner
    batches = random_batches(0, 25)
    learn = jax.jit(partial(dqn.learn, network, config))

    target_after = {0: learner.params}
    for update in range(1, 26):  # the reference: one minibatch at a time
        one = jax.tree.map(lambda x, m=update: x[m - 1 : m], batches)
        learner, _ = learn(learner, one, key)
        if update % 7 == 0:
            target_after[update] = learner.params
        assert_equal(learner.target_params, target_after[update - update % 7])

    learner = init_state(dqn.make(network, config)).learner
    for done in range(5, 26, 5):
        learner, _ = learn(learner, jax.tree.map(lambda x, m=done: x[m - 5 : m], batches), key)
        assert int(learner.updates) == done
        chex.assert_trees_all_close(
            learner.target_params, target_after[done - done % 7], rtol=1e-5, atol=1e-6
        )


def test_a_soft_target_is_a_running_mean_of_the_parameters():
    """θ⁻ ← θ⁻ + τ (θ - θ⁻) after every gradient update (Lillicrap et al. 2016, algorithm 1)."""
    config = dqn.Config(target_period=1, target_step=0.3)
    network, key = Mlp(), jax.random.key(0)
    learner = init_state(dqn.make(network, config)).learner
    learn, batches = jax.jit(partial(dqn.learn, network, config)), random_batches(0, 6)
    expected = [np.float64(x) for x in jax.tree.leaves(learner.target_params)]
    for m in range(6):
        learner, _ = learn(learner, jax.tree.map(lambda x, m=m: x[m : m + 1], batches), key)
        new = [np.float64(x) for x in jax.tree.leaves(learner.params)]
        expected = [old + 0.3 * (x - old) for old, x in zip(expected, new, strict=True)]
        for param, expected_param in zip(
            jax.tree.leaves(learner.target_params), expected, strict=True
        ):
            np.testing.assert_allclose(param, expected_param, rtol=1e-5, atol=1e-6)


def test_learning_rate_falls_linearly_in_gradient_updates():
    """Steps are Adam's under optax's schedule of four updates; the fifth changes nothing."""
    config = dqn.Config(learning_rate=0.1, anneal_updates=4.0, max_grad_norm=10.0)
    network, key = Mlp(), jax.random.key(0)
    learner = init_state(dqn.make(network, config)).learner
    reference = optax.chain(
        optax.clip_by_global_norm(10.0),
        optax.adam(optax.linear_schedule(0.1, 0.0, 4)),
    )
    params, state = learner.params, reference.init(learner.params)
    step = jax.jit(partial(dqn.gradient_step, network, config))

    @jax.jit
    def expected_step(learner, params, state, batch):
        noise = jax.random.split(jax.random.key(0))  # which this network does not have
        target = q_learning.td_target(
            network.apply, learner.params, learner.target_params, batch, noise[0], True, None
        )
        error = lambda x: q_learning.loss(x, network.apply, batch, target, noise[1], 1.0, None)[0]
        changes, state = reference.update(jax.grad(error)(params), state, params)
        return optax.apply_updates(params, changes), state

    batches = random_batches(0, 5)
    for update in range(5):
        batch = jax.tree.map(lambda x, m=update: x[m], batches)
        before = learner.params
        params, state = expected_step(learner, params, state, batch)
        learner, _, _ = step(learner, batch, key)
        chex.assert_trees_all_close(learner.params, params, rtol=1e-4, atol=1e-6)
    assert_equal(learner.params, before)


@pytest.mark.slow
def test_epsilon_falls_linearly_in_transitions():
    """6 environments x 2 steps: 12 transitions an update, from 1 to 0.2 over 60."""
    config = dqn.Config(epsilon_start=1.0, epsilon_end=0.2, epsilon_transitions=60)
    agent = dqn.make(Mlp(), config, num_envs=6)
    state = init_state(agent)
    update = jax.jit(agent.update)
    epsilons = [float(state.epsilon)]
    for seed in range(7):
        state, metrics = update(state, random_rollout(seed, 2, 6), jax.random.key(seed))
        assert int(state.transitions) == 12 * (seed + 1)
        epsilons.append(float(metrics["epsilon"]))
    np.testing.assert_allclose(epsilons, [1.0, 0.84, 0.68, 0.52, 0.36, 0.2, 0.2, 0.2], rtol=1e-6)


def test_transitions_rest_at_the_largest_integer():
    largest = jnp.iinfo(jnp.int32).max
    assert int(dqn.count(jnp.int32(largest - 5), 3)) == largest - 2
    assert int(dqn.count(jnp.int32(largest - 5), 30)) == largest


def test_learning_starts_with_the_warmup():
    """8 transitions a rollout, warm-up 16: cold after the first, learning from the second on."""
    config = dqn.Config(warmup=16, updates_per_rollout=3, batch_size=4, target_period=2)
    agent = dqn.make(Mlp(), config, num_envs=N)
    first = init_state(agent)
    update = jax.jit(agent.update)
    cold, cold_metrics = update(first, random_rollout(0), jax.random.key(0))
    assert_equal(cold.learner, first.learner)
    assert int(cold.replay.size) == 2
    warm, warm_metrics = update(cold, random_rollout(1), jax.random.key(1))
    assert (int(cold_metrics["updates"]), int(warm_metrics["updates"])) == (0, 3)
    assert all(np.any(a != b) for a, b in zip(*map(arrays, (cold, warm)), strict=True) if a.ndim)
    assert set(warm_metrics) == {"loss", "q", "grad_norm", "epsilon", "updates"}
    chex.assert_trees_all_equal_shapes_and_dtypes(cold_metrics, warm_metrics)
    assert warm_metrics["grad_norm"] > 0
    assert all(np.all(np.isfinite(x)) for x in arrays((cold_metrics, warm_metrics)))


def test_learning_waits_for_n_rows():
    config = dqn.Config(warmup=0, n_step=3, updates_per_rollout=1)
    agent = dqn.make(Mlp(), config, num_envs=N)
    state, update = init_state(agent), jax.jit(agent.update)
    for seed in range(4):
        state, metrics = update(state, random_rollout(seed, 1), jax.random.key(seed))
        assert int(metrics["updates"]) == max(0, seed - 1)
