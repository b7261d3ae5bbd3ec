"""Distances from eigenvectors against hitting times, and what becomes of bad features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid.layouts import from_free
from envs.grid.mazes import layout_by_name
from envs.grid.tables import dynamics, transition_matrix
from jaxrl.spectral.control import potentials
from jaxrl.spectral.laplacian import published_eigensystem


def embedding(P: np.ndarray, count: int | None = None) -> tuple[jax.Array, jax.Array]:
    """True features `[S, d]`, E[φ²] = 1, and 1 - μ `[d]`."""
    discount = 0.9
    truth = published_eigensystem(P, discount)
    mu = (discount - truth.values) / (discount * (1 - truth.values))  # from successor_lambda
    gaps = 1 - mu
    return jnp.asarray(truth.vectors[:, :count], jnp.float32), jnp.asarray(gaps[:count], "float32")


def hitting_times(P: np.ndarray) -> np.ndarray:
    """Expected steps from i to j, `[S, S]`, for uniform visits (Kemeny & Snell 1960).

    S (Zⱼⱼ - Zᵢⱼ) with Z the inverse of I - P + 1 / S: no eigenvectors.
    """
    size = len(P)
    Z = np.linalg.inv(np.eye(size) - P + 1 / size)
    return size * (np.diag(Z)[None, :] - Z)


def test_the_commute_time_of_a_path_is_proportional_to_its_length():
    """4 S a hop: of all steps a share of 1 / 4S crosses a given edge to the right."""
    size = 12
    P = transition_matrix(dynamics(from_free(np.ones((1, size), bool))))
    time = potentials.commute_time(*embedding(P), 3)
    hops = np.abs(np.arange(size) - 3)
    np.testing.assert_allclose(time, 4 * size * hops, rtol=1e-4, atol=1e-2)
    distance = potentials.commute_distance(*embedding(P), 3)
    np.testing.assert_allclose(distance, np.sqrt(4 * size * hops), rtol=1e-4, atol=0.1)


def test_commute_times_of_a_maze_are_its_hitting_times_to_and_fro():
    P = transition_matrix(dynamics(layout_by_name("GridMaze-9")))
    expected = hitting_times(P) + hitting_times(P).T
    times = jax.vmap(potentials.commute_time, (None, None, 0))(*embedding(P), jnp.arange(len(P)))
    np.testing.assert_allclose(times, expected, rtol=1e-3, atol=1e-2)


def test_few_eigenvectors_already_order_the_states():
    P = transition_matrix(dynamics(layout_by_name("GridRoom-4")))
    goal, features = 0, embedding(P, 11)
    exact = (hitting_times(P) + hitting_times(P).T)[:, goal]
    rank = lambda x: np.argsort(np.argsort(x))
    distance = potentials.commute_distance(*features, goal)
    assert np.corrcoef(rank(distance), rank(exact))[0, 1] > 0.95


def test_a_potential_is_zero_at_the_goal_and_minus_one_far_away():
    potential = potentials.from_distance(jnp.array([0.0, 3.0, 6.0, 1.5]))
    np.testing.assert_allclose(potential, [0, -0.5, -1, -0.25])
    np.testing.assert_array_equal(potentials.from_distance(jnp.zeros(3)), np.zeros(3))


def test_the_floor_is_the_second_eigenvalue_of_a_path():
    """True eigenvalues, even the least possible ones, are left as they are; others are raised."""
    size = 40
    P = transition_matrix(dynamics(from_free(np.ones((1, size), bool))))
    features, gaps = embedding(P)
    exact = potentials.commute_time(features[:, :2], gaps[:2], 0)
    for learned in (0.0, -0.1, 1e-9):
        raised = potentials.commute_time(features[:, :2], jnp.array([0.0, learned]), 0)
        np.testing.assert_allclose(raised, exact, rtol=1e-3, atol=1e-3)
    doubled = potentials.commute_time(features[:, :2], 2 * gaps[:2], 0)
    np.testing.assert_allclose(doubled, exact / 2, rtol=1e-3, atol=1e-3)


def test_what_does_not_suit_is_refused():
    with pytest.raises(ValueError, match="d >= 2"):
        potentials.commute_time(jnp.zeros((5, 1)), jnp.zeros(1), 0)
    with pytest.raises(ValueError, match="eigenvalues have shape"):
        potentials.commute_time(jnp.zeros((5, 3)), jnp.zeros(2), 0)
