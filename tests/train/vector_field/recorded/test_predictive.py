"""Places of observations in predictive distributions, against sums over their probabilities."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from train.vector_field.recorded import predictive
from train.vector_field.recorded.prediction_scores import coverage_of


def chances(mean: float, variance: float, most: int) -> np.ndarray:
    """P(Y = 0 .. most): p(y + 1) / p(y) is μ / (y + 1), and for gamma rates with a share more."""
    size = mean**2 / (variance - mean) if variance > mean else math.inf
    at_zero = math.exp(-mean) if math.isinf(size) else (size / (size + mean)) ** size
    probabilities = [at_zero]
    for y in range(most):
        ratio = mean / (y + 1)
        if math.isfinite(size):
            ratio = (size + y) / (y + 1) * mean / (size + mean)
        probabilities.append(probabilities[-1] * ratio)
    return np.array(probabilities)


@pytest.mark.parametrize(
    ("mean", "variance"), [(0.3, 0.3), (0.3, 0.2), (0.3, 0.5), (4.0, 30.0), (20.0, 20.5)]
)
def test_counts_have_their_probabilities(mean, variance):
    probabilities = chances(mean, variance, 400)
    y = np.arange(40)
    place = predictive.counts(np.full(40, mean), np.full(40, variance), y)
    np.testing.assert_allclose(np.exp(place.log_likelihood), probabilities[:40], atol=1e-10)
    np.testing.assert_allclose(place.at_most, np.cumsum(probabilities)[:40], atol=1e-10)
    np.testing.assert_allclose(
        place.below, np.cumsum(probabilities)[:40] - probabilities[:40], atol=1e-10
    )
    every = np.arange(401)
    np.testing.assert_allclose(probabilities @ every, mean, rtol=1e-6)
    np.testing.assert_allclose(probabilities @ (every - mean) ** 2, max(mean, variance), rtol=1e-6)


@pytest.mark.parametrize(("mean", "variance"), [(0.02, 0.02), (0.3, 0.5), (4.0, 30.0)])
def test_intervals_of_true_counts_hold_just_90_percent(mean, variance):
    """Though those from the 5 % to the 95 % quantile hold more."""
    y = np.arange(400)
    place = predictive.counts(np.full(400, mean), np.full(400, variance), y)
    share = coverage_of(place.below, place.at_most)
    np.testing.assert_allclose(np.exp(place.log_likelihood) @ share, 0.9, atol=1e-8)


def test_normal_places_are_those_of_the_error_function():
    mean, variance, y = (np.array(x) for x in ([0.0, 1.0, -2.0], [1.0, 4.0, 0.25], [0.5, -3, -2]))
    place = predictive.normal(mean, variance, y)
    for i in range(3):
        standard = (y[i] - mean[i]) / math.sqrt(variance[i])
        assert place.at_most[i] == pytest.approx(0.5 * (1 + math.erf(standard / math.sqrt(2))))
        density = math.exp(-0.5 * standard**2) / math.sqrt(2 * math.pi * variance[i])
        assert place.log_likelihood[i] == pytest.approx(math.log(density))
    np.testing.assert_array_equal(place.below, place.at_most)


def test_channels_have_their_own_kind():
    is_count, y = np.array([True, False, True]), np.array([[1.0, 1.0, 0.0], [3.0, -2.0, 2.0]])
    mean, variance = np.array([0.5, 0.5, 2.0]), np.array([0.5, 2.0, 3.0])
    place = predictive.place(is_count, mean, variance, y)
    for i, of_kind in enumerate((predictive.counts, predictive.normal, predictive.counts)):
        each = of_kind(np.full(2, mean[i]), np.full(2, variance[i]), y[:, i])
        for whole, part in zip(place, each, strict=True):
            np.testing.assert_allclose(whole[:, i], part)


@pytest.mark.parametrize("kind", [np, jnp])
def test_ranks_hold_what_they_should_however_few_draws_there_are(kind):
    """Any of M + 1 exchangeable values may be the observation: their mean coverage is 90 %."""
    values = np.array([0, 0, 0, 1, 1, 5, 7])
    shares = []
    for i in range(len(values)):
        below, at_most = predictive.ranks(
            kind.asarray(np.delete(values, i)), kind.asarray(values[i])
        )
        shares.append(coverage_of(np.asarray(below), np.asarray(at_most)))
    np.testing.assert_allclose(np.mean(shares), 0.9, atol=1e-6)
    below, at_most = predictive.ranks(kind.asarray([0, 0, 3, 4]), kind.asarray(3))
    np.testing.assert_allclose((below, at_most), (2 / 5, 4 / 5), rtol=1e-6)


def test_coverage_is_the_part_of_the_jump_within_the_interval():
    below = np.array([0.5, 0.02, 0.0, 0.9, 0.0, 0.96])
    at_most = np.array([0.5, 0.02, 0.1, 1.0, 1.0, 0.99])
    np.testing.assert_allclose(coverage_of(below, at_most), [1, 0, 0.5, 0.5, 0.9, 0], atol=1e-12)
