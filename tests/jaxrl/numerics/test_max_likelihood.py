"""Estimates and profile intervals against closed forms and against scipy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from jaxrl.numerics import max_likelihood
from jaxrl.numerics.max_likelihood import DROP, Bounds

WIDE = Bounds(np.full(2, -20.0, np.float32), np.full(2, 20.0, np.float32), np.ones(2, bool))


def normal_terms(theta: jax.Array, data: jax.Array) -> jax.Array:
    """Mean, and logarithm of the standard deviation."""
    return -theta[1] - 0.5 * ((data - theta[0]) * jnp.exp(-theta[1])) ** 2


def binomial_terms(theta: jax.Array, data: jax.Array) -> jax.Array:
    return data[:, 0] * theta[0] - data[:, 1] * jax.nn.softplus(theta[0])


fit_normal: Any = jax.jit(
    lambda data, bounds: max_likelihood.fit(normal_terms, data, STARTS, bounds)
)
fit_binomial = jax.jit(
    lambda data: max_likelihood.fit(binomial_terms, data, np.zeros((1, 2), np.float32), ONE)
)
STARTS = np.array([[0.0, 0.0], [5.0, 2.0]], np.float32)
ONE = WIDE._replace(free=np.array([True, False]))


@pytest.mark.slow
def test_the_interval_of_a_mean_is_that_of_its_profile():
    data = np.random.default_rng(0).normal(3.0, 2.0, 40).astype(np.float32)
    estimate = fit_normal(data, WIDE)
    mean, deviation = data.mean(), data.std()
    np.testing.assert_allclose(estimate.theta, [mean, np.log(deviation)], atol=2e-3)
    half = deviation * np.sqrt(np.expm1(2 * DROP / len(data)))  # n/2 log(1 + t²/s²) = DROP
    ends = np.array([estimate.low[0], estimate.high[0]])
    np.testing.assert_allclose(ends, [mean - half, mean + half], atol=0.01)
    # That of the deviation: n (log s + 1/2 (ŝ/s)² - 1/2 - log ŝ) = DROP.
    fall = lambda s: len(data) * (np.log(s / deviation) + ((deviation / s) ** 2 - 1) / 2) - DROP
    ends = [
        optimize.brentq(fall, low, high)
        for low, high in ((0.3 * deviation, deviation), (deviation, 9.0))
    ]
    np.testing.assert_allclose(
        np.exp([estimate.low[1], estimate.high[1]]), np.array(ends, float), rtol=0.01
    )


@pytest.mark.slow
def test_intervals_hold_the_truth_nineteen_times_in_twenty():
    """Intervals of 200 samples are counted; one compilation serves them all."""
    rng, truth = np.random.default_rng(1), np.array([3.0, np.log(2.0)])
    fit_normal.clear_cache()
    inside = []
    for _ in range(200):
        estimate = fit_normal(rng.normal(3.0, 2.0, 40).astype(np.float32), WIDE)
        inside.append((estimate.low <= truth) & (truth <= estimate.high))
    assert fit_normal._cache_size() <= 1  # 0 where JAX has forgotten it, as one of very many
    share = np.mean(inside, axis=0)  # deviation 0.015; for 40 samples Wilks' is about 0.945
    assert ((share > 0.89) & (share < 0.995)).all()


def test_what_is_not_free_stays():
    data = np.random.default_rng(0).normal(3.0, 1.0, 40).astype(np.float32)
    estimate = fit_normal(data, ONE)
    assert estimate.theta[1] == estimate.low[1] == estimate.high[1] in (0.0, 2.0)
    np.testing.assert_allclose(estimate.theta[0], data.mean(), atol=1e-3)


def test_a_search_leaves_a_bound_where_the_log_likelihood_bends_upwards():
    """A Hill curve that is too high, at a half point so low that it makes no difference."""

    def hill_terms(theta: jax.Array, data: jax.Array) -> jax.Array:
        return -0.5 * ((data - 1.1 / (1 + jnp.exp(2 * theta[0]))) / 0.3) ** 2

    bounds = Bounds(np.array([-4.0], np.float32), np.array([8.0], np.float32), np.ones(1, bool))
    data = np.full(10, 0.5, np.float32)
    search = jax.jit(lambda start: max_likelihood.maximise(hill_terms, data, start, bounds))
    (half_point,) = search(bounds.low)
    assert 1.1 / (1 + np.exp(2 * half_point)) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(("successes", "open_side"), [(0, -1), (20, 1), (7, 0)])
def test_an_interval_without_an_end_says_so(successes, open_side):
    estimate = fit_binomial(np.array([[successes, 20.0]], np.float32))
    low, high = float(estimate.low[0]), float(estimate.high[0])
    assert np.isinf(low) == (open_side == -1)
    assert np.isinf(high) == (open_side == 1)
    share = lambda p: stats.binom.logpmf(successes, 20, p)
    for end in (low, high):
        if np.isfinite(end):
            fall = share(successes / 20) - share(1 / (1 + np.exp(-end)))
            assert fall == pytest.approx(DROP, abs=0.06)
