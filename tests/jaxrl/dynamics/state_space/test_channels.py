"""Channels of counts and of numbers, against SciPy's distributions in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space.model import Params

IS_COUNT = np.array([True, False, True, False])
COUNTED = jnp.asarray(IS_COUNT)
MATRIX = np.array([[0.5, -0.2], [1.5, 0.3], [-0.4, 0.8], [0.1, -2.0]])
OFFSET = np.array([1.2, -0.7, 2.0, 0.4])
NOISE = np.array([1.0, 0.3, 1.0, 1.7])
EMPTY = jnp.zeros(())
PARAMS = Params(
    **dict.fromkeys(Params._fields, EMPTY)
    | {
        "matrix": jnp.asarray(MATRIX, jnp.float32),
        "offset": jnp.asarray(OFFSET, jnp.float32),
        "log_noise": jnp.log(jnp.asarray(NOISE, jnp.float32)),
    }
)
Z = np.array([0.6, -0.9])
Y = np.array([3.0, -1.1, 0.0, 2.5])


def log_likelihood(eta: np.ndarray, y: np.ndarray) -> np.ndarray:
    counts = stats.poisson.logpmf(np.where(IS_COUNT, y, 0), np.exp(eta))
    return np.where(IS_COUNT, counts, stats.norm.logpdf(y, eta, NOISE))


def test_likelihood_slope_and_curvature():
    eta, step = MATRIX @ Z + OFFSET, 1e-4
    low, here, high = (log_likelihood(eta + x, Y) for x in (-step, 0.0, step))
    expected = (here, (high - low) / (2 * step), (2 * here - low - high) / step**2)
    observed = np.array([True, True, True, False])
    response = channels.response(COUNTED, PARAMS, *map(jnp.asarray, (Z, Y, observed)))
    for actual, values in zip(response, expected, strict=True):
        np.testing.assert_allclose(actual, np.where(observed, values, 0.0), rtol=1e-4)


def test_what_stands_where_nothing_was_observed_has_no_gradient():
    """However large it is, and of whichever kind of channel."""
    observed, largest = jnp.array([True, True, False, False]), jnp.asarray([3.0, -1.1, 3e38, -3e38])
    likelihood = lambda params: jnp.sum(
        channels.response(COUNTED, params, jnp.asarray(Z), largest, observed).log_likelihood
    )
    gradient = jax.grad(likelihood)(PARAMS)
    for rows in (gradient.matrix, gradient.offset, gradient.log_noise):
        np.testing.assert_array_equal(rows[2:], 0)


@pytest.mark.parametrize("eta", [-15.0, 12.0])
def test_rates_that_are_too_small_or_too_large_lead_back(eta):
    """The slope is the derivative of the log-likelihood there, too."""
    far = PARAMS._replace(matrix=0 * PARAMS.matrix, offset=jnp.full(4, eta))
    responses = lambda params: channels.response(
        COUNTED, params, *map(jnp.asarray, (Z, Y, np.ones(4, bool)))
    )
    gradient = jax.grad(lambda params: jnp.sum(responses(params).log_likelihood))(far)
    np.testing.assert_allclose(gradient.offset, responses(far).slope, rtol=1e-5)
    assert (gradient.offset[0] > 0) == (eta < 0)  # 3 events


def test_the_expected_observation_of_one_state_and_of_many():
    states = np.stack([Z, -Z, 3 * Z])[None]  # [1, 3, 2]
    eta = states @ MATRIX.T + OFFSET
    expected = np.where(IS_COUNT, np.exp(eta), eta)
    actual = channels.mean(COUNTED, PARAMS, jnp.asarray(states, jnp.float32))
    assert actual.shape == (1, 3, 4)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    one = channels.mean(COUNTED, PARAMS, jnp.asarray(Z, jnp.float32))
    assert one.shape == (4,)
    np.testing.assert_allclose(one, expected[0, 0], rtol=1e-5)


@pytest.mark.slow
def test_observations_are_drawn_with_their_mean_and_variance():
    many = jnp.tile(jnp.asarray(Z, jnp.float32), (40_000, 1))
    drawn = np.asarray(channels.draw(COUNTED, PARAMS, many, jax.random.key(0)))
    eta = MATRIX @ Z + OFFSET
    mean = np.where(IS_COUNT, np.exp(eta), eta)
    variance = np.where(IS_COUNT, mean, NOISE**2)
    error = 4.5 * np.sqrt(variance / len(drawn))
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), error)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.05)
    assert np.all(drawn[:, IS_COUNT] == np.floor(drawn[:, IS_COUNT]))


def test_the_chord_of_a_count_is_the_logarithmic_mean():
    response = channels.response(COUNTED, PARAMS, *map(jnp.asarray, (Z, Y, np.ones(4, bool))))
    rate = np.exp(MATRIX @ Z + OFFSET)
    count = np.maximum(Y, channels.LEAST_COUNT)
    count = np.where(IS_COUNT, count, 1.0)
    logarithmic = (rate - count) / (np.log(rate) - np.log(count))
    expected = np.where(IS_COUNT, logarithmic, 1 / NOISE**2)
    actual = channels.chord(COUNTED, response, jnp.asarray(Y))
    np.testing.assert_allclose(actual, expected, rtol=1e-4)
