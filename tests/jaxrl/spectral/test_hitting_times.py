"""Hitting times against linear systems, closed forms, simulation and SciPy's rank correlation."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.spectral import directed, hitting_times
from tests.jaxrl.spectral.test_directed import GAMMA, chain, law


def solve_linear_systems(P: np.ndarray) -> np.ndarray:
    """h(., j) = 1 + P h(., j) off j, one system for each goal."""
    times = np.zeros_like(P)
    for j in range(len(P)):
        others = np.arange(len(P)) != j
        system = np.eye(len(P) - 1) - P[np.ix_(others, others)]
        times[others, j] = np.linalg.solve(system, np.ones(len(P) - 1))
    return times


def times_from_first(P: np.ndarray, w: np.ndarray, count: int) -> np.ndarray:
    eigenpairs = directed.eigenpairs(P, w, GAMMA)
    columns = [jnp.asarray(x[..., :count], jnp.complex64) for x in eigenpairs[:3]]
    return np.asarray(jax.jit(hitting_times.from_eigenpairs)(*columns, jnp.asarray(w, jnp.float32)))


def test_exact_times_solve_the_linear_systems():
    np.testing.assert_allclose(hitting_times.exact_times(chain()), solve_linear_systems(chain()))


def test_exact_times_on_a_ring_walked_one_way_count_steps():
    """Each cell is left with probability ½: twice the number of steps ahead."""
    size = 6
    P = (np.eye(size) + np.roll(np.eye(size), 1, axis=1)) / 2
    i, j = np.indices((size, size))
    np.testing.assert_allclose(hitting_times.exact_times(P), 2 * ((j - i) % size), atol=1e-9)


def test_times_from_all_eigenpairs_are_exact():
    np.testing.assert_allclose(
        times_from_first(chain(), law(), 12), solve_linear_systems(chain()), rtol=1e-3
    )


def test_times_in_a_long_corridor_are_those_of_its_closed_form():
    """1 - |μ| is below 0.0001 there: from i up to j it takes 2 (j (j + 1) - i (i + 1)) steps."""
    size = 300
    cells = np.arange(size)
    waves = np.sqrt(2) * np.cos(np.pi * np.outer(cells + 0.5, cells) / size)
    waves[:, 0] = 1
    values = (1 + np.cos(np.pi * cells / size)) / 2
    vectors, weight = jnp.asarray(waves, jnp.complex64), jnp.full(size, 1 / size)
    times = hitting_times.from_eigenpairs(
        jnp.asarray(values, jnp.complex64), vectors, vectors, weight
    )
    up = lambda i, j: 2.0 * (j * (j + 1) - i * (i + 1))
    i, j = np.indices((size, size))
    exact = np.where(i < j, up(i, j), up(size - 1 - i, size - 1 - j))
    np.testing.assert_allclose(times, exact, atol=1e-3 * exact.max())


def test_times_do_not_depend_on_the_law_that_densities_refer_to():
    one, other = (times_from_first(chain(), law(seed=seed), 5) for seed in (1, 2))
    np.testing.assert_allclose(one, other, rtol=1e-3)


def test_times_from_the_first_eigenpairs_are_those_of_a_walk_that_forgets_the_rest():
    """The same Z from the spectral projector in float64; and more pairs come nearer."""
    P, w, count = chain(), law(), 5
    eigenpairs = directed.eigenpairs(P, w, GAMMA)
    projector = np.real(
        eigenpairs.right[:, :count] @ (eigenpairs.left[:, :count].conj() * w[:, None]).T
    )
    stationary = w * np.real(eigenpairs.left[:, 0]) * np.real(eigenpairs.right[0, 0])
    projected_P = projector @ P @ projector
    Z = np.linalg.inv(np.eye(12) - projected_P + stationary[None, :])
    expected = (np.diag(Z)[None, :] - Z) / stationary[None, :]
    expected = np.maximum(expected, 1) * (1 - np.eye(12))
    np.testing.assert_allclose(times_from_first(P, w, count), expected, rtol=1e-3)
    exact = hitting_times.exact_times(P)
    errors = [np.abs(times_from_first(P, w, count) - exact).max() for count in (1, 5, 9, 12)]
    assert sorted(errors, reverse=True) == errors


def test_rank_correlations_are_those_of_scipy():
    rng = np.random.default_rng(8)
    estimated, true = rng.integers(0, 6, (2, 9, 9))  # with ties
    goals, sources = hitting_times.rank_correlations(estimated, true)
    for k in range(9):
        others = np.arange(9) != k
        by_goal: Any = stats.spearmanr(estimated[others, k], true[others, k])[0]
        by_source: Any = stats.spearmanr(estimated[k, others], true[k, others])[0]
        np.testing.assert_allclose([goals[k], sources[k]], [by_goal, by_source])
    np.testing.assert_allclose(hitting_times.rank_correlations(true, true), 1)


def test_rank_correlation_of_equal_times_is_nan():
    goals, _ = hitting_times.rank_correlations(np.ones((4, 4)), np.arange(16.0).reshape(4, 4))
    assert np.isnan(goals).all()


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 3), (4, 4)), ((2, 2), (2, 2))])
def test_rank_correlations_of_other_shapes_are_refused(shapes):
    with pytest.raises(ValueError, match="expected \\[S, S\\]"):
        hitting_times.rank_correlations(*map(np.ones, shapes))


def test_walks_that_cannot_return_are_refused():
    apart = np.kron(np.eye(2), np.random.default_rng(1).dirichlet(np.ones(5), 5))
    for P in (np.array([[0.5, 0.5], [0, 1.0]]), np.eye(3), apart):
        with pytest.raises(ValueError, match="hitting times are infinite"):
            hitting_times.exact_times(P)
