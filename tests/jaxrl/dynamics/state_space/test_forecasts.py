"""Forecasts by particles against closed forms, and random windows against a count of all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics.state_space import forecasts
from jaxrl.dynamics.state_space.filter import first_belief
from jaxrl.dynamics.state_space.fitting import fit
from tests.jaxrl.dynamics.state_space.models import random_model, simulate

STEPS, PARTICLES = 3, 20_000


@pytest.mark.slow
def test_forecasts_of_a_linear_model_are_gaussian():
    counts = (True, False, False)
    model, params = random_model(None, counts)
    params = params._replace(matrix=params.matrix / 2)  # or a rate has a tail that few draws reach
    u = jnp.asarray(np.random.default_rng(0).normal(size=(STEPS, 2)), jnp.float32)
    belief, levels = first_belief(params), (0.05, 0.5, 0.95)
    forecast = jax.jit(forecasts.forecast, static_argnums=(4, 6))
    one = jax.tree.map(lambda x: x[None], (belief, u))
    expected = forecast(model, params, *one, PARTICLES, jax.random.key(1), levels)
    expected = jax.tree.map(lambda x: x[0], expected)
    p = jax.tree.map(lambda x: np.asarray(x, float), params)
    mean, covariance = np.asarray(belief.mean, float), np.asarray(belief.covariance, float)
    move = np.eye(2) + p.transition
    for k in range(STEPS + 1):
        eta, spread = p.matrix @ mean + p.offset, (p.matrix @ covariance * p.matrix).sum(1)
        mean_count = np.exp(eta[0] + spread[0] / 2)  # the mean of a log-normal rate
        np.testing.assert_allclose(expected.mean[k], [mean_count, *eta[1:]], rtol=0.02, atol=0.02)
        deviation = np.sqrt(spread + np.exp(2 * p.log_noise))
        for i in (1, 2):
            exact = stats.norm.ppf(levels, eta[i], deviation[i])
            np.testing.assert_allclose(expected.quantiles[k, :, i], exact, atol=0.04)
        if k < STEPS:
            mean = move @ mean + p.drift + p.effect @ np.asarray(u[k])
            covariance = move @ covariance @ move.T + np.diag(np.exp(2 * p.log_process))


@pytest.mark.slow
def test_few_particles_have_the_moments_of_a_linear_model():
    """The mean is exact whatever is drawn, and the variance right in the mean over draws."""
    model, params = random_model()
    belief, u = first_belief(params), jnp.asarray(np.random.default_rng(0).normal(size=(8, 2)))
    one_belief, one_u = jax.tree.map(lambda x: x[None], (belief, u))
    moments = lambda key: forecasts.moments(model, params, one_belief, one_u, 4, key)
    drawn = jax.vmap(moments)(jax.random.split(jax.random.key(1), 1_000))
    p = jax.tree.map(lambda x: np.asarray(x, float), params)
    mean, covariance = (np.asarray(x, float) for x in belief)
    move = np.eye(2) + p.transition
    for k in range(len(u) + 1):
        expected = p.matrix @ mean + p.offset
        np.testing.assert_allclose(
            drawn.mean[:, 0, k], np.broadcast_to(expected, (1_000, 5)), atol=1e-5
        )
        spread = np.einsum("ni,ij,nj->n", p.matrix, covariance, p.matrix)
        variance = np.asarray(drawn.variance[:, 0, k], float) - np.exp(2 * p.log_noise)
        error = variance.std(0) / len(variance) ** 0.5
        assert (np.abs(variance.mean(0) - spread) < 4 * error).all()
        if k < len(u):
            mean = move @ mean + p.drift + p.effect @ np.asarray(u[k], float)
            covariance = move @ covariance @ move.T + np.diag(np.exp(2 * p.log_process))


@pytest.mark.slow
def test_windows_are_drawn_evenly_from_all_there_are():
    model, params = random_model()
    record = simulate(model, params, 10)
    shorter = jnp.arange(10) < 3
    both = jax.tree.map(lambda x: jnp.stack([x, x]), record)
    both = both._replace(valid=jnp.stack([record.valid, shorter]))
    windows = fit.sample_windows(both, 4, 7_000, jax.random.key(0))
    first = np.asarray(record.y[:, 0])
    starts = [int(np.flatnonzero(first == y)[0]) for y in np.asarray(windows.y[:, 0, 0])]
    whole = np.asarray(windows.valid.all(1))
    np.testing.assert_array_equal(
        windows.valid[~whole], [[True, True, True, False]] * (~whole).sum()
    )
    counts = np.bincount(
        np.where(whole, starts, 7), minlength=8
    )  # 7 windows of one, 1 of the other
    assert stats.chisquare(counts).pvalue > 1e-3
    follows = np.asarray(record.y)[np.array(starts)[:, None] + np.arange(4)]
    np.testing.assert_array_equal(windows.y, follows)
