"""ALLO trained in small mazes, against the exact eigenvectors of the pairs it learned from."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import loop
from jaxrl.spectral import pairs, subspace
from jaxrl.spectral.learning import allo, allo_state, allo_walks
from tests.jaxrl.spectral.learning.allo_parts import (
    SMALL,
    N,
    T,
    Training,
    similarity,
    training,
    truth_of,
)


def numbers_of(obs: jax.Array, inputs: jax.Array) -> jax.Array:
    """Which of the states each observation `[T, N, 2]` shows, int32 `[T, N]`."""
    same = np.all(np.asarray(obs)[:, :, None] == np.asarray(inputs), axis=-1)
    assert (same.sum(axis=-1) == 1).all()
    return jnp.asarray(same.argmax(axis=-1), jnp.int32)


EXACT = replace(
    SMALL, optimizer="muon", spare_features=3, gradient_steps=1000, steps_per_update=100
)


@cache
def trained_learner() -> tuple[Training, Any, loop.TrainState, loop.LoopMetrics]:
    """`(training, run, state, metrics)` with exact expectations in a maze of 13 states."""
    learner = training(EXACT, "GridMaze-9", (64, 64))
    chunk = loop.make_chunk(learner.train.update, 10)
    run = jax.jit(lambda key: chunk(learner.train.init(key)))
    return learner, run, *run(jax.random.key(0))


@pytest.mark.slow
def test_exact_training_reaches_eigenvectors_and_eigenvalues():
    learner, _, state, metrics = trained_learner()
    truth = truth_of(EXACT, state.agent)
    features = allo_state.features(learner.network, EXACT, state.agent)
    assert features.shape == (13, 4)
    assert similarity(features, truth) > 0.99
    values = allo_state.eigenvalues(EXACT, state.agent)
    assert subspace.is_close(values, jnp.asarray(truth.values[:4], jnp.float32)).all()
    weight = jnp.asarray(truth.weight, jnp.float32)
    np.testing.assert_allclose((features**2 * weight[:, None]).sum(axis=0), 1, atol=0.05)
    one = allo_state.features(learner.network, EXACT, state.agent, learner.inputs[3])
    np.testing.assert_allclose(one, features[3], rtol=1e-4, atol=1e-5)
    names = {"loss", "spread", "constraint_error", "barrier", "grad_norm", "angle"}
    assert set(metrics.agent) == names
    for metric in metrics.agent.values():
        assert metric.shape == (10,)
        assert np.isfinite(metric).all()
    assert int(state.agent.learner.steps) == 1000
    # Σ E[(u - u')²] = 2 Σ λ, of the spare features too.
    np.testing.assert_allclose(metrics.agent["spread"][-1], 2 * truth.values[:7].sum(), rtol=0.05)


def test_what_an_exact_training_remembers():
    """Ten rollouts: every transition is counted, and the law is that of the chain they make."""
    _, _, state, _ = trained_learner()
    walk, law = state.agent.walk, state.agent.law
    assert int(walk.steps.sum()) == int(walk.begins.sum()) == 10 * N * T
    np.testing.assert_array_equal(allo_walks.visits(EXACT, state.agent), walk.begins.sum(axis=1))
    M = np.asarray(pairs.pair_distribution(walk, 0.9), float)
    np.testing.assert_allclose(allo_walks.pair_law(EXACT, state.agent), M, atol=1e-7)
    np.testing.assert_allclose(law.weight, M.sum(axis=1), atol=1e-6)
    graph = np.diag(M.sum(axis=0) + M.sum(axis=1)) - M - M.T
    np.testing.assert_allclose(law.graph, graph, atol=1e-6)


def test_the_same_key_gives_the_same_bits():
    _, run, state, metrics = trained_learner()
    rerun, same_metrics = run(jax.random.key(0))
    chex.assert_trees_all_equal(rerun.agent, state.agent)
    chex.assert_trees_all_equal(same_metrics, metrics)
    other, _ = run(jax.random.key(1))
    assert not np.array_equal(other.agent.walk.steps, state.agent.walk.steps)


@pytest.mark.slow
@pytest.mark.parametrize("numbered", [True, False])
def test_sampled_training_reaches_eigenvectors(numbered):
    """Pairs from the ring are looked up by index, or are coordinates alone, none of them known."""
    config = replace(
        SMALL,
        expectation="sampled",
        gradient_steps=600,
        steps_per_update=100,
        turn_every=100,
        batch_size=256,
        turn_pairs=4096,
        learning_rate=1e-2,
        capacity=6 * N * T,
    )
    learner = training(config, "GridMaze-9", numbered=numbered)
    chunk = loop.make_chunk(learner.train.update, 6)
    end, metrics = jax.jit(lambda key: chunk(learner.train.init(key)))(jax.random.key(0))
    agent = end.agent
    features = allo_state.features(learner.network, config, agent, learner.inputs)
    if not numbered:  # the law of pairs is told by numbers
        data = agent.walk.data
        state, next_state = (
            numbers_of(obs, learner.inputs) for obs in (data.state, data.next_state)
        )
        numbered_walk = agent.walk.replace(data=data._replace(state=state, next_state=next_state))
        agent = agent._replace(walk=numbered_walk, inputs=learner.inputs)
    assert similarity(features, truth_of(config, agent)) > 0.98
    assert all(np.isfinite(metric).all() for metric in metrics.agent.values())
    np.testing.assert_allclose(allo_walks.visits(config, agent).sum(), 6 * N * T)


PAPER = replace(
    SMALL,
    num_features=11,
    spare_features=0,
    turn_every=0,
    dual_step=0.01,
    learning_rate=3e-3,
    gradient_steps=8_000,
    steps_per_update=1_000,
)


def eight_updates(config: allo.Config):
    """`(training, run, state)`, all 11 vectors of 11 states, without turns."""
    learner = training(config, "GridMaze-7")
    run = jax.jit(loop.make_chunk(learner.train.update, 8))
    return learner, run, run(jax.jit(learner.train.init)(jax.random.key(0)))[0]


def score_of(config: allo.Config, network: Any, state: allo_state.State) -> float:
    return similarity(allo_state.features(network, config, state), truth_of(config, state))


@pytest.mark.slow
def test_without_turns_the_order_is_stable_and_the_duals_are_exact():
    """After a permutation of the outputs, the same training sorts them again."""
    learner, run, end = eight_updates(PAPER)
    score = partial(score_of, PAPER, learner.network)
    assert score(end.agent) > 0.99
    values = jnp.asarray(truth_of(PAPER, end.agent).values, jnp.float32)
    assert subspace.is_close(allo_state.eigenvalues(PAPER, end.agent), values).all()
    mixed = allo.permute_outputs(end.agent.learner, jax.random.key(1), jnp.array(True))
    fresh = jax.tree.map(jnp.zeros_like, mixed.opt_state)  # with the first, large step size again
    mixed = mixed._replace(opt_state=fresh, steps=jnp.int32(0))
    mixed = end.agent._replace(learner=mixed)
    assert score(mixed) < 0.5
    sorted_again, _ = run(end._replace(agent=mixed))
    assert score(sorted_again.agent) > 0.99


@pytest.mark.slow
def test_graph_drawing_does_not_reach_them():
    """Its weights let features of large eigenvalues collapse, see the tabular case."""
    config = replace(PAPER, method="ggdo", barrier_step=0.0)
    learner, _, end = eight_updates(config)
    assert score_of(config, learner.network, end.agent) < 0.9


@pytest.mark.slow
def test_training_settles_as_soon_as_eigenvectors_are_found():
    """Long before its budget ends, and nothing changes any more."""
    config = replace(EXACT, schedule="measured", gradient_steps=10_000, fall_steps=200)
    learner = training(config, "GridMaze-9", (64, 64))
    chunk = jax.jit(loop.make_chunk(learner.train.update, 1))
    state, angles = jax.jit(learner.train.init)(jax.random.key(0)), []
    while not allo_state.is_settled(config, state.agent):
        state, metrics = chunk(state)
        angles.append(float(metrics.agent["angle"][0]))
        assert len(angles) <= 20
    features = allo_state.features(learner.network, config, state.agent)
    truth = truth_of(config, state.agent)
    assert similarity(features, truth) > 0.999
    values = jnp.asarray(truth.values[:4], jnp.float32)
    assert subspace.is_close(allo_state.eigenvalues(config, state.agent), values).all()
    found_at, steps = state.agent.learner[-2:]
    assert float(allo.step_size(config, steps, found_at)) == 0
    assert angles[-1] < config.found_within
