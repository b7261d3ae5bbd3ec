"""Experiments side by side: the same beginnings for all policies, and scores in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.vector_field import VectorField
from jaxrl.dynamics import rbf
from jaxrl.dynamics.learners import field_learner
from jaxrl.dynamics.planning import stimulation
from train.vector_field.experiment import reach
from train.vector_field.experiment.laboratory import make as make_laboratory
from train.vector_field.learners.bayesian import bayesian

BOX = 2.0
FIELDS = ("limit_cycle", "duffing")
ENV = VectorField(FIELDS, "identity", "none", 2)
POLICIES = {  # two of them choose inputs in one way, and are not neighbours
    "bang3": stimulation.Config(kind="hold", hold_steps=3, at_edge=True),
    "myopic": stimulation.Config(kind="myopic", lookahead=2),
    "off": stimulation.Config(kind="hold", strength=0.0),
}
CONFIG = field_learner.Config(grid=rbf.Grid(per_axis=5), process_noise=0.02)
LEARNER = bayesian(ENV, CONFIG)


def worlds(key: jax.Array) -> Any:
    make = lambda key, field: ENV.params(key, field=field, process_noise=0.02)
    return jax.vmap(make)(jax.random.split(key, 2), jnp.arange(2))


@pytest.fixture(scope="module")
def stages():
    return run_stages(in_turns=False)


def run_stages(in_turns: bool) -> tuple[Any, Any, Any]:
    """`(agents, progress)` of one seed, and `(agents, progress, scores)` 4 and 8 samples later."""
    laboratory = make_laboratory(ENV, worlds, LEARNER, POLICIES, BOX, samples=4, in_turns=in_turns)
    advance = jax.jit(laboratory.advance)
    begin = jax.jit(laboratory.init)(jax.random.key(0))
    initial_state = as_numbers(begin)
    first = advance(*begin)
    later_state = as_numbers(first)
    return initial_state, later_state, as_numbers(advance(*first[:2]))


def as_numbers(tree: Any) -> Any:
    """A copy of the tree in which keys are their numbers."""
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    data = lambda x: jax.random.key_data(jax.random.clone(x)) if is_key(x) else x
    return jax.tree.map(data, tree)


def select_policy(agents: dict, experiments_: dict, name: str) -> tuple[Any, Any]:
    """`(agent, experiment)` of a policy, `[F, ...]`."""
    place = [*POLICIES].index(name)
    return jax.tree.map(lambda x: x[place], (agents["bang3"], experiments_["bang3"]))


@pytest.mark.slow
def test_in_turns_all_is_as_at_once(stages):
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4),
        run_stages(in_turns=True),
        stages,
    )


@pytest.mark.slow
def test_all_policies_begin_alike_and_have_the_same_chance(stages):
    (agents, (initial_experiments, _)), (_, (later_experiments, _), _), _ = stages
    assert set(agents) == set(initial_experiments) == {"bang3"}
    worlds_, starts, keys, noises = [], [], [], []
    for name in POLICIES:
        agent, experiment = select_policy(agents, initial_experiments, name)
        worlds_.append(agent.known.numbers)
        starts.append(experiment.train.env.z)
        keys.append(experiment.train.key)
    for other in (1, 2):
        for trees in (worlds_, starts, keys):
            jax.tree.map(np.testing.assert_array_equal, trees[0], trees[other])
    assert np.abs(starts[0][0] - starts[0][1]).max() > 0.01  # but each field has its own
    for name in POLICIES:
        agent, experiment = select_policy(agents, later_experiments, name)
        before, after = experiment.trail[:, -5], experiment.trail[:, -4]
        np.testing.assert_array_equal(before, starts[0][:, 0])
        drift = jax.vmap(ENV.velocity)(before, worlds_[0])
        noises.append(after - before - 0.1 * drift)
    np.testing.assert_array_equal(agents["bang3"].known.numbers.field, [[0, 1]] * 3)
    bound = np.asarray(worlds_[0].action_bound)[:, None]
    off = noises[2]  # no input: nothing but chance
    assert 0 < np.abs(off).max() < 5 * np.sqrt(0.02 * 0.1)
    for displacement in noises[:2]:
        push_sizes = np.abs(displacement - off) / (0.1 * bound)
        for largest in push_sizes.max(axis=1):
            assert np.abs(largest - np.array([0.0, 0.5, 1.0])).min() < 1e-3
    np.testing.assert_allclose((np.abs(noises[0] - off) / (0.1 * bound)).max(axis=1), 1, atol=1e-3)


@pytest.mark.slow
def test_scores_are_those_of_each_policy_and_field(stages):
    """In the order of the policies, from what was learned and where each has been."""
    _, (_, (_, _), _), (agents, (later_experiments, within), scores) = stages
    axis = np.linspace(-BOX, BOX, 25)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    centres, width = np.asarray(CONFIG.grid.centres()), CONFIG.grid.width
    squares = ((points[:, :, None] - centres) ** 2).sum(axis=-1)
    bumps = np.exp(-squares / (2 * width**2))
    for p, name in enumerate(POLICIES):
        agent, experiment = select_policy(agents, later_experiments, name)
        for f in range(2):
            params = jax.tree.map(lambda x, f=f: x[f], agent.known.numbers)
            true = np.asarray(ENV.velocity(jnp.asarray(points, jnp.float32), params))
            miss = ((bumps @ np.asarray(agent.posterior.mean[f]) - true) ** 2).sum(axis=-1)
            size, inside = (true**2).sum(axis=-1), np.asarray(within[f])
            expected = np.sqrt(miss.sum() / size.sum())
            np.testing.assert_allclose(scores["error"][f, p], expected, rtol=1e-3)
            expected = np.sqrt(miss[inside].sum() / size[inside].sum())
            np.testing.assert_allclose(scores["reachable_error"][f, p], expected, rtol=1e-3)
            visited_cells = cells_of(np.asarray(experiment.trail[f, -8:]))
            np.testing.assert_array_equal(experiment.visited[f], visited_cells)
            coverage = (visited_cells & inside).sum() / inside.sum()
            np.testing.assert_allclose(scores["coverage"][f, p], coverage, rtol=1e-5)
            np.testing.assert_allclose(scores["information"][f, p], agent.posterior.information[f])
    assert len(np.unique(np.asarray(scores["error"]))) == 6


def cells_of(states: np.ndarray) -> np.ndarray:
    """The cells around the grid's points in which states lie, one by one."""
    visited, half = np.zeros((25, 25), bool), BOX / 24
    axis = np.linspace(-BOX, BOX, 25)
    for x, y in states:
        i, j = np.argmin(np.abs(axis - x)), np.argmin(np.abs(axis - y))
        visited[i, j] |= abs(axis[i] - x) <= half and abs(axis[j] - y) <= half
    return visited


def test_cells_are_those_around_the_points_of_the_grid():
    states = np.random.default_rng(0).uniform(-2.4, 2.4, (300, 2)).astype(np.float32)
    visited = jax.jit(lambda z: reach.cells(z, BOX))(states)
    np.testing.assert_array_equal(visited, cells_of(states))


@pytest.mark.slow
def test_nearly_all_that_random_inputs_come_to_is_reachable(stages):
    """Inputs at the edge of the box, held for 30 steps, from 20 starts; in NumPy."""
    (agents, (_, within)), *_ = stages
    rng, scale = np.random.default_rng(1), np.sqrt(0.02 * 0.1)
    fields = (
        lambda x, y, r: 0.1 * np.stack([x * (1 - r) - y, y * (1 - r) + x], axis=-1),
        lambda x, y, r: 0.5 * np.stack([y, -0.5 * y + x - 0.5 * x**3], axis=-1),
    )
    for f, field in enumerate(fields):
        bound = float(agents["bang3"].known.numbers.action_bound[0, f])
        z, visited = rng.uniform(-1, 1, (20, 2)), []
        for t in range(600):
            if t % 30 == 0:
                u = rng.normal(size=(20, 2))
                u = bound * u / np.abs(u).max(axis=1, keepdims=True)
            drift = field(z[:, 0], z[:, 1], (z**2).sum(axis=1))
            z = np.clip(z + 0.1 * (drift + u) + scale * rng.normal(size=z.shape), -5, 5)
            visited.append(z)
        visited_cells = cells_of(np.concatenate(visited))
        assert visited_cells.sum() > 60
        assert (visited_cells & np.asarray(within[f])).sum() > 0.95 * visited_cells.sum()
        assert 0.3 < within[f].mean() <= 1
