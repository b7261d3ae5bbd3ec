"""Scores of features against numpy in float64 and scipy's principal angles."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxrl.spectral import subspace

S = 40
SIMPLE = np.arange(6)
TIED = np.array([0, 1, 1, 2, 3, 3])  # the last group has a third true column
WEIGHT = np.random.default_rng(7).random(S) + 0.1
WEIGHT /= WEIGHT.sum()
similarity = jax.jit(subspace.similarity)


def orthonormal_vectors(columns: int, seed: int = 0) -> np.ndarray:
    """True vectors: columns orthonormal in L2(WEIGHT), the first one constant."""
    random = np.random.default_rng(seed).normal(size=(S, columns))
    random[:, 0] = 1
    return np.linalg.qr(random * np.sqrt(WEIGHT)[:, None])[0] / np.sqrt(WEIGHT)[:, None]


def add_noise(truth: np.ndarray, noise: float, seed: int = 1) -> np.ndarray:
    return truth + noise * np.random.default_rng(seed).normal(size=truth.shape)


def rotation(size: int, seed: int = 2) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def score(learned, truth, learned_group=TIED, truth_group=None, weight=WEIGHT) -> float:
    truth_group = learned_group if truth_group is None else truth_group
    arrays = [jnp.asarray(x, jnp.float32) for x in (learned, truth, weight)]
    return float(similarity(*arrays, jnp.asarray(learned_group), jnp.asarray(truth_group)))


def score_by_scipy(learned, truth, learned_group, truth_group) -> float:
    root = np.sqrt(WEIGHT)[:, None]
    total = 0.0
    for group in set(learned_group.tolist()):
        angles = scipy.linalg.subspace_angles(
            root * learned[:, learned_group == group], root * truth[:, truth_group == group]
        )
        total += np.cos(angles).sum()
    return total / learned.shape[1]


def test_the_truth_scores_one():
    truth = orthonormal_vectors(6)
    for group in (SIMPLE, TIED):
        np.testing.assert_allclose(score(truth, truth, group), 1, atol=2e-6)


@pytest.mark.parametrize("noise", [0.01, 0.3, 3.0])
def test_similarity_is_the_mean_cosine_of_principal_angles(noise):
    truth = orthonormal_vectors(9)
    learned = add_noise(truth[:, :6], noise)
    true_group = np.array([*TIED, 3, -1, -1])
    expected = score_by_scipy(learned, truth, TIED, true_group)
    np.testing.assert_allclose(score(learned, truth, TIED, true_group), expected, atol=1e-5)


def test_similarity_of_simple_eigenvalues_is_the_mean_cosine():
    truth = orthonormal_vectors(6)
    learned = add_noise(truth, 0.5)
    product = np.abs(np.sum(WEIGHT[:, None] * learned * truth, axis=0))
    cosines = product / np.sqrt(np.sum(WEIGHT[:, None] * learned**2, axis=0))
    np.testing.assert_allclose(score(learned, truth, SIMPLE), cosines.mean(), atol=1e-5)
    arrays = [jnp.asarray(x, jnp.float32) for x in (learned, truth, WEIGHT)]
    np.testing.assert_allclose(subspace.cosines(*arrays), cosines, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_features_whose_squares_are_no_float32_score_as_others_do(scale):
    truth = orthonormal_vectors(6)
    learned = add_noise(truth, 0.5)
    assert score(scale * learned, truth) == pytest.approx(score(learned, truth), abs=1e-5)
    arrays = [jnp.asarray(x, jnp.float32) for x in (truth, WEIGHT)]
    cosines_of = lambda x: subspace.cosines(jnp.asarray(x, jnp.float32), *arrays)
    np.testing.assert_allclose(cosines_of(scale * learned), cosines_of(learned), atol=1e-5)


def test_sign_scale_and_rotation_within_a_group_do_not_matter():
    truth = orthonormal_vectors(6)
    learned = add_noise(truth, 0.3)
    expected = score(learned, truth)
    turned = learned.copy()
    turned[:, 1:3] = learned[:, 1:3] @ rotation(2)
    turned[:, 4:6] = learned[:, 4:6] @ rotation(2, seed=3)
    np.testing.assert_allclose(score(turned, truth), expected, atol=1e-5)
    scaled = learned * np.array([-1, 2, 2, 1e-3, -5, 7])
    np.testing.assert_allclose(score(scaled, truth), expected, atol=1e-5)


def test_rotation_across_groups_and_wrong_order_do_matter():
    truth = orthonormal_vectors(6)
    half = np.pi / 4
    turned = truth.copy()
    turned[:, :2] = truth[:, :2] @ np.array(
        [[np.cos(half), -np.sin(half)], [np.sin(half), np.cos(half)]]
    )
    np.testing.assert_allclose(score(turned, truth, SIMPLE), (4 + 2 * np.cos(half)) / 6, atol=1e-5)
    swapped = truth[:, [0, 3, 2, 1, 4, 5]]
    np.testing.assert_allclose(score(swapped, truth), 4 / 6, atol=1e-5)


def test_a_cut_group_may_lie_anywhere_in_its_eigenspace():
    truth = orthonormal_vectors(8)
    true_group = np.array([*TIED, 3, -1])
    learned = truth[:, :6].copy()
    learned[:, 4:6] = truth[:, 4:7] @ rotation(3)[:, :2]
    np.testing.assert_allclose(score(learned, truth, TIED, true_group), 1, atol=1e-5)
    learned[:, 5] = truth[:, 7]  # belongs to no group
    np.testing.assert_allclose(score(learned, truth, TIED, true_group), 5 / 6, atol=1e-5)


@pytest.mark.parametrize("angle", [0.15, 0.5])
def test_nearly_parallel_columns_keep_four_digits(angle):
    truth = orthonormal_vectors(6)
    learned = add_noise(truth, 0.2)
    learned[:, 2] = learned[:, 1] + np.tan(angle) * learned[:, 2]
    expected = score_by_scipy(learned, truth, TIED, TIED)
    np.testing.assert_allclose(score(learned, truth), expected, atol=5e-5)


def test_collapsed_columns_score_zero_and_are_found():
    truth = orthonormal_vectors(6)
    learned = truth.copy()
    learned[:, 2] = learned[:, 1] + 1e-6 * learned[:, 2]  # repeats its group
    learned[:, 3] = 0
    learned[:, 5] = learned[:, 0]  # repeats another group
    np.testing.assert_allclose(score(learned, truth), 3 / 6, atol=1e-3)
    assert score(0 * truth, truth) == 0
    assert score(0 * truth + 1, truth) < 1.01 / 6  # all constant: only the first is right
    arrays = jnp.asarray(learned, jnp.float32), jnp.asarray(WEIGHT, jnp.float32)
    expected = [False, False, True, True, False, True]
    np.testing.assert_array_equal(subspace.is_collapsed(*arrays), expected)
    np.testing.assert_array_equal(subspace.is_collapsed(0.7 * arrays[0], arrays[1]), [True] * 6)
    assert float(subspace.cosines(arrays[0], jnp.asarray(truth, jnp.float32), arrays[1])[3]) == 0


@pytest.mark.parametrize("difference", [0.0, 1e-4])
def test_a_repeated_column_adds_nothing_that_rounding_made_up(difference):
    truth = orthonormal_vectors(6)
    single = add_noise(truth[:, :2], 0.5)[:, 1:]
    cosine = score_by_scipy(single, truth[:, 1:3], np.array([1]), np.array([1, 1]))
    learned = truth.copy()
    learned[:, 1:3] = single * [1, 3.3]
    learned[:, 2] += difference * truth[:, 2]
    np.testing.assert_allclose(score(learned, truth), (4 + cosine) / 6, atol=1e-3)


def test_states_without_weight_do_not_count():
    truth = orthonormal_vectors(6)
    expected = score(add_noise(truth, 0.3), truth)
    more = [np.concatenate([x, np.full((2, 6), fill)]) for x, fill in ((truth, 0), (truth, 9))]
    more[1][:S] = add_noise(truth, 0.3)
    weight = np.append(WEIGHT, [0, 0])
    np.testing.assert_allclose(score(more[1], more[0], weight=weight), expected, atol=1e-5)


def test_groups_and_mazes_are_data():
    truth = [jnp.asarray(orthonormal_vectors(6, seed), jnp.float32) for seed in (0, 5)]
    once = chex.assert_max_traces(subspace.similarity, n=1)
    similarity_pair = jax.jit(jax.vmap(once, in_axes=(0, 0, None, None, None)))
    weight = jnp.asarray(WEIGHT, jnp.float32)
    for group in (SIMPLE, TIED):
        similarities = similarity_pair(
            jnp.stack(truth), jnp.stack(truth[::-1]), weight, group, group
        )
        expected = [score(truth[i], truth[1 - i], group) for i in (0, 1)]
        np.testing.assert_allclose(similarities, expected, atol=1e-5)


def test_eigenvalue_errors():
    learned, true = jnp.array([0.0009, 0.0011, 0.62, 0.49]), jnp.array([0.0, 0.0, 0.6, 0.5])
    np.testing.assert_allclose(
        subspace.eigenvalue_errors(learned, true), [0.0009, 0.0011, 0.02, 0.01], atol=1e-6
    )
    np.testing.assert_array_equal(subspace.is_close(learned, true), [True, False, False, True])


def test_shapes_that_do_not_fit_are_refused():
    a: Any = jnp.zeros
    ids = jnp.arange(3)
    for call in (
        lambda: subspace.similarity(a((4, 3)), a((5, 3)), a(4), ids, ids),
        lambda: subspace.cosines(a((4, 3)), a((4, 2)), a(4)),
        lambda: subspace.is_collapsed(a((4, 3)), a(5)),
        lambda: subspace.similarity(a((4, 3)), a((4, 3)), a(4), ids, ids[:2]),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()
