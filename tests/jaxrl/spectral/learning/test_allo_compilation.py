"""One compilation of ALLO serves mazes of equal size, seeds and other numbers."""

from dataclasses import replace
from functools import cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid.layouts import parse
from jaxrl.spectral.learning import allo, allo_walks
from tests.jaxrl.spectral.learning.allo_parts import SMALL, random_walks, training

MAZES = (parse("....\n.##.\n...."), parse(".....\n#.#.#\n..#.#"))


@cache
def compiled_functions():
    """`learn(config, state, key)` and `record(config, state, rollout)`, each traced only once."""
    network = training(SMALL, MAZES[0], (16,), 20, 10).network

    def learn(config, state, key):
        return allo.learn(network, config, state, key)

    traced_once = chex.assert_max_traces(n=1)
    return jax.jit(traced_once(learn)), jax.jit(traced_once(allo_walks.record_rollout))


@pytest.mark.slow
def test_one_trace_learns_in_two_mazes_as_their_own_agents_do():
    """And serves other numbers in the configuration."""
    learners = [training(SMALL, maze, (16,), 20, 10) for maze in MAZES]
    assert {len(learner.inputs) for learner in learners} == {10}

    learn, record = compiled_functions()
    for seed, learner in enumerate(learners):
        state = jax.jit(learner.agent.init)(jax.random.key(seed), jnp.int32(0))
        rollout = random_walks(seed, 10, 20, 10)
        recorded = record(SMALL, state, rollout)
        chex.assert_trees_all_equal(recorded.learner, state.learner)
        outputs = learn(SMALL, recorded, jax.random.key(9))
        assert int(outputs[0].learner.steps) == 20
    own_outputs = jax.jit(learner.agent.update)(
        state, rollout, jax.random.key(9)
    )  # of the second maze
    chex.assert_trees_all_close(outputs, own_outputs, rtol=1e-3, atol=1e-4)
    still_config = replace(SMALL, learning_rate=0.0)
    idle = learn(still_config, recorded, jax.random.key(9))[0].learner
    chex.assert_trees_all_equal(
        idle.params["params"]["torso"], recorded.learner.params["params"]["torso"]
    )
    nearest = record(replace(SMALL, discount=0.0), state, rollout)
    steps = np.asarray(nearest.walk.steps, float)  # pairs of neighbours in time, at discount 0
    np.testing.assert_allclose(nearest.law.weight, steps.sum(axis=1) / steps.sum(), atol=1e-6)
    off_diagonal = ~np.eye(10, dtype=bool)
    expected = -(steps + steps.T) / steps.sum()
    np.testing.assert_allclose(nearest.law.graph[off_diagonal], expected[off_diagonal], atol=1e-6)


@pytest.mark.slow
def test_three_seeds_at_once_as_one_by_one():
    """Each has its own maze, too, and its own experience."""
    learners = [training(SMALL, MAZES[seed % 2], (16,), 20, 10) for seed in range(3)]
    learn, record = compiled_functions()
    states = [
        record(
            SMALL,
            jax.jit(learner.agent.init)(jax.random.key(seed), jnp.int32(0)),
            random_walks(seed, 10, 20, 10),
        )
        for seed, learner in enumerate(learners)
    ]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    keys = jax.vmap(jax.random.key)(np.arange(3))
    network = learners[0].network
    batched_state, _ = jax.jit(jax.vmap(partial(allo.learn, network, SMALL)))(stacked, keys)
    for seed, state in enumerate(states):
        single_state, _ = learn(SMALL, state, jax.random.key(seed))
        same = jax.tree.map(lambda x, seed=seed: x[seed], batched_state)
        chex.assert_trees_all_close(same, single_state, rtol=1e-2, atol=1e-3)
