"""Left and right eigenvectors against SciPy's, and what two-sided Rayleigh-Ritz finds of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxrl.spectral import directed, laplacian
from jaxrl.spectral.directed import Ritz
from jaxrl.spectral.learning import objectives

GAMMA = 0.9
ritz = jax.jit(directed.ritz)


def chain(size: int = 12, seed: int = 0) -> np.ndarray:
    """A walk that mostly goes round a ring, one way, and sometimes anywhere."""
    rng = np.random.default_rng(seed)
    ring = 0.6 * np.roll(np.eye(size), 1, axis=1) + 0.2 * np.eye(size)
    return ring + 0.2 * rng.dirichlet(np.ones(size), size)


def law(size: int = 12, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(5 * np.ones(size))


def test_exact_pairs_are_those_of_scipy_and_biorthonormal():
    P, w = chain(), law()
    eigenpairs = directed.eigenpairs(P, w, GAMMA)
    scipy_solution: Any = scipy.linalg.eig(P, left=True)
    values, left, _ = scipy_solution
    for k, mu in enumerate(eigenpairs.values):
        nearest = np.argmin(np.abs(values - mu))
        assert abs(values[nearest] - mu) < 1e-12
        measure = w * eigenpairs.left[:, k]  # equal to SciPy's left vector up to a factor
        cosine = np.abs(np.vdot(measure, left[:, nearest])) / np.linalg.norm(measure)
        assert cosine == pytest.approx(1, abs=1e-10)
    np.testing.assert_allclose(
        P @ eigenpairs.right, eigenpairs.right * eigenpairs.values, atol=1e-12
    )
    np.testing.assert_allclose(
        eigenpairs.left.conj().T @ np.diag(w) @ eigenpairs.right, np.eye(12), atol=1e-10
    )
    np.testing.assert_allclose(w @ np.abs(eigenpairs.right) ** 2, 1)
    stationary = w * np.real(eigenpairs.left[:, 0])
    np.testing.assert_allclose(stationary @ P, stationary, atol=1e-12)
    assert np.all(stationary > 0)
    assert np.abs(np.imag(eigenpairs.values)).max() > 0.1  # it goes round


def test_a_ring_walked_one_way_has_roots_of_unity():
    size = 7
    P = (np.eye(size) + np.roll(np.eye(size), 1, axis=1)) / 2
    eigenpairs = directed.eigenpairs(P, np.full(size, 1 / size), GAMMA)
    roots = (1 + np.exp(2j * np.pi * np.arange(size) / size)) / 2
    np.testing.assert_allclose(
        eigenpairs.values[directed.order(eigenpairs.values, GAMMA)], eigenpairs.values
    )
    np.testing.assert_allclose(
        np.sort_complex(np.round(eigenpairs.values, 9)), np.sort_complex(np.round(roots, 9))
    )
    np.testing.assert_allclose(eigenpairs.left, eigenpairs.right, atol=1e-12)  # P is normal
    ids = directed.groups(eigenpairs.values)
    assert ids.tolist() == [0, 1, 1, 2, 2, 3, 3]  # conjugates form one space


def test_slow_values_come_first_and_conjugates_in_order():
    values = [-0.5, 0.9 - 0.1j, 1.0, 0.2, 0.9 + 0.1j]
    ordered = np.array(values)[directed.order(values, GAMMA)]
    np.testing.assert_array_equal(ordered, [1, 0.9 + 0.1j, 0.9 - 0.1j, 0.2, -0.5])


def test_groups_join_what_is_near_also_through_others():
    values = [0, 0.100, 0.1005, 0.101, 0.2 + 0.1j, 0.5, 0.2 - 0.1j]
    assert directed.groups(values).tolist() == [0, 1, 2, 3, 4, 5, 4]
    assert directed.groups(values, relative=0.01).tolist() == [0, 1, 1, 1, 2, 3, 2]


def test_eigenvectors_of_the_bipartite_walk_are_singular_functions():
    """The Laplacian that ALLO is given against the SVD of the normalised law of pairs."""
    M = law()[:, None] * chain()
    first, second = M.sum(axis=1), M.sum(axis=0)
    u, sigma, vt = np.linalg.svd(M / np.sqrt(np.outer(first, second)))
    bipartite_system = laplacian.eigensystem(
        np.asarray(directed.bipartite_law(jnp.asarray(M)), float)
    )
    np.testing.assert_allclose(bipartite_system.values[:12], 1 - sigma, atol=1e-6)
    for k in range(4):
        expected = np.concatenate([u[:, k] / np.sqrt(first), vt[k] / np.sqrt(second)])
        cosine = np.sum(bipartite_system.weight * bipartite_system.vectors[:, k] * expected)
        assert abs(cosine) == pytest.approx(1, abs=1e-5)
    graph, weight = objectives.graph_of(directed.bipartite_law(jnp.asarray(M)))
    features = np.random.default_rng(3).normal(size=(12, 2, 1)).astype(np.float32)
    stacked = directed.stack_sides(jnp.asarray(features))
    apart = (features[:, None, 0, 0] - features[None, :, 1, 0]) ** 2
    np.testing.assert_allclose(stacked.T @ graph @ stacked, np.sum(M * apart), rtol=1e-4)
    np.testing.assert_allclose(weight, np.concatenate([first, second]) / 2, rtol=1e-5)


def mix_vectors(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Another real basis of the span of the first three vectors, one real and a pair."""
    real, imag = np.real(vectors), np.imag(vectors)
    basis = np.stack([real[:, 0], real[:, 1], imag[:, 1]], axis=1)
    return basis @ np.random.default_rng(seed).normal(size=(3, 3))


def features_of(right: np.ndarray, left: np.ndarray) -> jax.Array:
    return jnp.asarray(np.stack([right, left], axis=1), jnp.float32)


def test_ritz_pairs_in_spans_that_hold_eigenvectors_are_exact():
    P, w = chain(), law()
    true = directed.eigenpairs(P, w, GAMMA)
    assert true.values[1] == true.values[2].conj() != true.values[1].real
    features = features_of(mix_vectors(true.right, 4), mix_vectors(true.left, 5))
    chain_, weight = (jnp.asarray(x, jnp.float32) for x in (P, w))
    ritz_pairs = ritz(features, chain_, weight, GAMMA)
    np.testing.assert_allclose(ritz_pairs.values[:3], true.values[:3], atol=1e-5)
    right, left = (side[:, :3] for side in directed.read(features, ritz_pairs))
    for mine, theirs in ((right, true.right), (left, true.left)):
        inner = np.abs(np.sum(w[:, None] * np.conj(mine) * theirs[:, :3], axis=0))
        size = np.sqrt(w @ np.abs(mine) ** 2) * np.sqrt(w @ np.abs(theirs[:, :3]) ** 2)
        np.testing.assert_allclose(inner / size, 1, atol=1e-4)
    products = np.conj(left).T @ np.diag(w) @ np.asarray(right)
    np.testing.assert_allclose(products, np.eye(3), atol=1e-4)
    np.testing.assert_allclose(w @ np.abs(np.asarray(right)) ** 2, 1, atol=1e-5)


def test_ritz_errors_of_values_are_products_of_the_errors_of_both_sides():
    """A tenth of the noise in both spans makes the error of μ about a hundredth."""
    P, w = chain(), law()
    true = directed.eigenpairs(P, w, GAMMA)
    noise = np.random.default_rng(6).normal(size=(2, 12, 3))
    errors = []
    for size in (0.03, 0.003):
        features = features_of(
            mix_vectors(true.right, 4) + size * noise[0],
            mix_vectors(true.left, 5) + size * noise[1],
        )
        arrays = (jnp.asarray(x, jnp.float32) for x in (P, w))
        ritz_pairs = ritz(features, *arrays, GAMMA)
        errors.append(np.abs(ritz_pairs.values[:3] - true.values[:3]).max())
    assert 30 < errors[0] / errors[1] < 300


def corridor(size: int) -> np.ndarray:
    """A walk to and fro whose last step forwards leads back to the beginning."""
    P = (np.eye(size, k=1) + np.eye(size, k=-1)) / 2
    P[0, 0], P[-1, 0] = 0.5, 0.5
    return P


def singular_functions(P: np.ndarray, m: int) -> tuple[jax.Array, np.ndarray]:
    """The best features `[S, 2, m]` that can be learned, and the law of states that end a pair."""
    M = laplacian.sampled_pairs(P, np.full(len(P), 1 / len(P)), 50, GAMMA)
    first, second = M.sum(axis=1), M.sum(axis=0)
    u, _, vt = np.linalg.svd(M / np.sqrt(np.outer(first, second)))
    right, left = u / np.sqrt(first)[:, None], vt.T / np.sqrt(second)[:, None]
    return features_of(right[:, :m], left[:, :m]), second


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("m", "tolerance"), [(6, 3e-4), (10, 1e-5)])
def test_portals_add_no_eigenvalues_that_the_walk_does_not_have(m, tolerance):
    """A projection of right features along left ones makes errors of 0.001 and 0.03."""
    P = corridor(16)
    features, w = singular_functions(P, m)
    solution = ritz(features, *(jnp.asarray(x, jnp.float32) for x in (P, w)), GAMMA)
    scipy_values: Any = scipy.linalg.eigvals(P)
    true = scipy_values[directed.order(scipy_values, GAMMA)]
    np.testing.assert_allclose(solution.values[:4], true[:4], atol=tolerance)


def worst_angles(features: jax.Array, P: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """What `eigenpair_errors` says about the first 4 pairs, and their true angles by LAPACK."""
    transitions, arrivals = (jnp.asarray(x, jnp.float32) for x in (P, w))
    solution = ritz(features, transitions, arrivals, GAMMA)
    pairs = (solution.values, *directed.read(features, solution))
    estimates = directed.eigenpair_errors(pairs, transitions, arrivals, features.shape[-1])
    exact, sines = directed.eigenpairs(P, w, GAMMA), []
    for mine, true in ((pairs[1], exact.right), (pairs[2], exact.left)):
        size = lambda x: np.sqrt(w @ np.abs(x) ** 2)
        inner = np.abs(w @ (np.conj(mine[:, :4]) * true[:, :4]))
        sines.append(np.sqrt(1 - np.minimum(inner / size(mine[:, :4]) / size(true[:, :4]), 1) ** 2))
    return float(np.max(estimates[:4])), float(np.max(sines))


@pytest.mark.slow
def test_estimated_angles_follow_the_true_ones():
    P = corridor(24)
    features, w = singular_functions(P, 8)
    noise = np.random.default_rng(7).normal(size=features.shape).astype(np.float32)
    for size in (0.003, 0.03, 0.3):
        estimate, angle = worst_angles(features + size * noise, P, w)
        assert angle / 4 < estimate < 4 * angle
    features, w = singular_functions(P, 12)  # both sides together span all 24 states
    estimate, angle = worst_angles(features, P, w)
    assert estimate < 3e-3 > angle


def test_pairs_that_features_have_no_room_for_count_as_wrong():
    transitions, arrivals = (jnp.asarray(x, jnp.float32) for x in (chain(), law()))
    features = jnp.ones((12, 2, 3))
    solution = ritz(features, transitions, arrivals, GAMMA)
    pairs = (solution.values, *directed.read(features, solution))
    assert np.sum(np.abs(solution.right).sum(axis=0) > 0) == 1, "the constant vector alone"
    errors = np.sort(directed.eigenpair_errors(pairs, transitions, arrivals, 3))
    np.testing.assert_allclose(errors[1:], np.pi / 2)


@pytest.mark.parametrize("features", [np.zeros((12, 2, 3)), np.ones((12, 2, 3))])
def test_features_without_a_solution_give_finite_numbers(features):
    arrays = (jnp.asarray(x, jnp.float32) for x in (features, chain(), law()))
    ritz_pairs = ritz(*arrays, GAMMA)
    assert all(np.all(np.isfinite(x)) for x in ritz_pairs)
    assert isinstance(ritz_pairs, Ritz)


@pytest.mark.parametrize(
    ("P", "weight", "message"),
    [
        (np.ones((2, 3)) / 3, np.ones(2) / 2, "expected \\[S, S\\]"),
        (np.ones((2, 2)), np.ones(2) / 2, "off by 1"),
        (chain(), np.ones(3) / 3, "shape \\(3,\\)"),
        (chain(), np.eye(12)[0], "all positive"),
        (np.array([[0.5, 0.5], [0, 1.0]]), np.ones(2) / 2, "2 classes that cannot all be reached"),
        (
            1 / 3 + np.outer([0.1, -0.1, 0], [1, 1, -2]),  # a nilpotent part of order 2
            np.ones(3) / 3,
            "no basis of eigenvectors",
        ),
    ],
)
def test_chains_without_eigenpairs_are_refused(P, weight, message):
    with pytest.raises(ValueError, match=message):
        directed.eigenpairs(P, weight, GAMMA)
