"""The posterior, one datum at a time, against all data at once in float64."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics import posterior, rbf


@jax.jit
def learn_all(state, design, displacement, relative_noise):
    """After all data, the first axis."""
    step = lambda state, datum: (posterior.update(state, *datum), None)
    return jax.lax.scan(step, state, (design, displacement, relative_noise))[0]


def all_at_once(design, target, relative_noise, relative_variance, noise, strength):
    """Mean, covariance, shape and rate of the normal-inverse-gamma posterior, of data [., p]."""
    weight = 1 / relative_noise
    precision = np.eye(design.shape[1]) / relative_variance + design.T @ (weight[:, None] * design)
    covariance = np.linalg.inv(precision)
    mean = covariance @ design.T @ (weight[:, None] * target)
    misfit = np.sum(weight[:, None] * target**2) - np.sum(mean * (precision @ mean))
    shape = (strength + target[weight > 0].size) / 2
    return mean, covariance, shape, strength * noise / 2 + misfit / 2


def draw_data(shared: bool, steps: int = 300, size: int = 7, dims: int = 2):
    rng = np.random.default_rng(1)
    design = rng.normal(size=(steps, size) if shared else (steps, dims, size))
    weights = rng.normal(size=(size, dims) if shared else size)
    relative_noise = rng.uniform(0.3, 4.0, steps)
    noise = 0.4 * np.sqrt(relative_noise)[:, None] * rng.normal(size=(steps, dims))
    relative_noise[5] = np.inf  # the sixth datum is not seen
    return design, design @ weights + noise, relative_noise


@pytest.mark.parametrize("shared", [True, False])
def test_a_stream_teaches_what_all_at_once_does(shared):
    design, target, relative_noise = draw_data(shared)
    start = posterior.prior(7, 2, 20.0, 0.5, noise_strength=3.0, shared=shared)
    state = learn_all(start, *(x.astype(np.float32) for x in (design, target, relative_noise)))
    rows = design if shared else design.reshape(-1, 7)
    column = target if shared else target.reshape(-1, 1)
    noise = relative_noise if shared else np.repeat(relative_noise, 2)
    mean, covariance, shape, rate = all_at_once(rows, column, noise, 20.0, 0.5, 3.0)
    np.testing.assert_allclose(state.mean, mean if shared else mean[:, 0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(state.covariance, covariance, atol=1e-6)
    np.testing.assert_array_equal(state.covariance, state.covariance.T)
    np.testing.assert_allclose(state.shape, shape)
    np.testing.assert_allclose(state.rate, rate, rtol=1e-4)
    np.testing.assert_allclose(posterior.noise_variance(state), 0.16, rtol=0.2)
    spread = np.einsum("tp,pq,tq->t", rows, covariance, rows)
    np.testing.assert_allclose(
        posterior.predictive_variance(state, jnp.asarray(rows)), spread, rtol=1e-3
    )


def test_outputs_that_share_a_design_are_a_kronecker_product_and_a_known_noise_stays():
    design, target, relative_noise = (x[:40].astype(np.float32) for x in draw_data(shared=True))
    one = learn_all(posterior.prior(7, 2, 9.0, 0.3), design, target, relative_noise)
    whole = jnp.asarray(np.einsum("ij,tp->tipj", np.eye(2), design).reshape(40, 2, 14), jnp.float32)
    start = posterior.prior(14, 2, 9.0, 0.3, shared=False)
    other = learn_all(start, whole, target, relative_noise)
    np.testing.assert_allclose(one.mean.reshape(-1), other.mean, atol=1e-4)
    np.testing.assert_allclose(np.kron(one.covariance, np.eye(2)), other.covariance, atol=1e-5)
    np.testing.assert_allclose(posterior.noise_variance(one), 0.3, rtol=1e-6)


@pytest.mark.slow
def test_float32_does_not_drift():
    """5,000 steps of a random walk on a grid of 225 overlapping bumps, most of them seen often."""
    grid = rbf.Grid()
    rng = np.random.default_rng(0)
    walk = [np.zeros(2)]
    for _ in range(4999):
        walk.append(np.clip(walk[-1] + 0.3 * rng.normal(size=2), -2.5, 2.5))
    design = np.asarray(jax.jit(rbf.features)(grid, np.array(walk, np.float32)))
    target = np.stack([np.sin(walk)[:, 0], np.cos(walk)[:, 1]], axis=1) + 0.3 * rng.normal(
        size=(5000, 2)
    )
    state = learn_all(
        posterior.prior(225, 2, 10.0, 0.09),
        design,
        target.astype(np.float32),
        np.ones(5000, np.float32),
    )
    exact = design.astype(np.float64)
    mean, covariance, _, _ = all_at_once(exact, target, np.ones(5000), 10.0, 0.09, 1.0)
    there = exact[::50]
    np.testing.assert_allclose(there @ state.mean, there @ mean, atol=2e-3)  # the noise is 0.3
    spread = np.sum(there @ covariance * there, axis=1)
    np.testing.assert_allclose(
        posterior.predictive_variance(state, jnp.asarray(there)), spread, rtol=0.02
    )


def test_intervals_cover_what_they_promise():
    """All drawn from the prior, noise too: 90% intervals of the next output hold 90%."""
    draws, steps, strength, rng = 3000, 6, 4.0, np.random.default_rng(0)
    noise = 0.5 * strength / 2 / rng.gamma(strength / 2, size=(draws, 1, 1))
    weights = np.sqrt(3.0 * noise) * rng.normal(size=(draws, 3, 2))
    design = rng.normal(size=(draws, steps + 1, 3))
    outputs = design @ weights + np.sqrt(noise) * rng.normal(size=(draws, steps + 1, 2))

    def score(design, outputs):  # of the last
        start = posterior.prior(3, 2, 3.0, 0.5, strength)
        state = learn_all(start, design[:-1], outputs[:-1], jnp.ones(steps))
        scale = posterior.noise_variance(state) * (
            1 + posterior.predictive_variance(state, design[-1])
        )
        return (outputs[-1] - design[-1] @ state.mean) / jnp.sqrt(scale)

    scores = jax.jit(jax.vmap(score))(design.astype(np.float32), outputs.astype(np.float32))
    share = np.mean(np.abs(scores) < stats.t.ppf(0.95, df=strength + 2 * steps))
    assert abs(share - 0.9) < 4 * np.sqrt(0.09 / draws)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="relative_variance is 0"):
        posterior.prior(3, 2, 0.0, 1.0)
    with pytest.raises(ValueError, match="noise_strength is -1"):
        posterior.prior(3, 2, 1.0, 1.0, -1.0)
    with pytest.raises(ValueError, match="noise_strength is -1"):
        posterior.prior(3, 2, 1.0, 1.0, np.float32(-1))
    with pytest.raises(ValueError, match=r"shapes \(4,\) and \(2,\), expected \(3,\)"):
        posterior.update(posterior.prior(3, 2, 1.0, 1.0), jnp.ones(4), jnp.ones(2))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-8, 1e-10, 1e-12])
def test_next_to_no_noise_leaves_variances_positive_and_right(noise):
    """3,000 steps on 81 overlapping bumps; data up to 10¹¹ times as certain as the prior.

    Against float64 with QR; errors in units of the deviation that was expected before any data,
    beside which data that certain leave float32 nothing to tell.
    """
    grid, dt = rbf.Grid(per_axis=9), 0.1
    rng = np.random.default_rng(0)
    walk = np.clip(np.cumsum(0.3 * rng.normal(size=(3000, 2)), axis=0), -2.5, 2.5)
    walk = 2.4 * np.sin(walk)
    design = dt * np.asarray(jax.jit(rbf.features)(grid, walk.astype(np.float32)))
    relative = 0.25 / (noise * dt)
    exact = design.astype(np.float64)
    weights = 0.5 * rng.normal(size=(81, 2))
    target = exact @ weights + np.sqrt(noise * dt) * rng.normal(size=(3000, 2))
    start = posterior.prior(81, 2, relative, noise * dt)
    state = learn_all(start, design, target.astype(np.float32), np.ones(3000, np.float32))
    stacked = np.concatenate([exact, np.eye(81) / np.sqrt(relative)])
    factor = np.asarray(
        np.linalg.qr(stacked, mode="r")
    )  # its inverse is a square root of the covariance
    deviation = np.sqrt(np.sum(np.linalg.solve(factor.T, exact[::30].T) ** 2, axis=0))
    before = np.sqrt(relative * np.sum(exact[::30] ** 2, axis=1))
    predicted_deviation = np.sqrt(posterior.predictive_variance(state, jnp.asarray(design[::30])))
    assert np.all(np.isfinite(predicted_deviation))
    assert np.all(np.diagonal(state.covariance) >= 0)
    np.testing.assert_allclose(
        predicted_deviation / before, deviation / before, rtol=0.05, atol=3e-6
    )
    rows = np.concatenate([target, np.zeros((81, 2))])
    mean = np.linalg.lstsq(stacked, rows, rcond=None)[0]
    error = np.abs(design[::30] @ np.asarray(state.mean) - exact[::30] @ mean)
    assert np.max(error) < 1e-4 * np.abs(target).max() + 0.05 * np.sqrt(noise * dt)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("strength", [3.0, 1e7, np.inf])
def test_densities_of_data_add_up_to_their_marginal_likelihood(strength):
    """All data at once are Student distributed, or Gaussian where the noise is known."""
    design, target, relative_noise = draw_data(shared=True)

    @jax.jit
    def total(start, *data):
        def step(state, datum):
            density = posterior.log_density(state, *datum)
            return posterior.update(state, *datum), density

        return jnp.sum(jax.lax.scan(step, start, data)[1])

    start = posterior.prior(7, 2, 20.0, 0.5, noise_strength=strength)
    log_likelihood = total(start, *(x.astype(np.float32) for x in (design, target, relative_noise)))
    is_observed = np.isfinite(relative_noise)
    rows, y = design[is_observed], target[is_observed]
    scale = np.diag(relative_noise[is_observed]) + 20.0 * rows @ rows.T
    whole: Any = np.kron(np.eye(2), 0.5 * scale)
    joint = (
        stats.multivariate_normal(cov=whole)
        if np.isinf(strength)
        else stats.multivariate_t(shape=whole, df=strength)
    )
    np.testing.assert_allclose(log_likelihood, joint.logpdf(y.T.ravel()), rtol=2e-4)
    lone = posterior.log_density(start, design[0].astype(np.float32), target[0], jnp.inf)
    assert lone == 0  # nothing was observed


def test_a_padded_posterior_is_the_same():
    design, target, relative_noise = (x[:40].astype(np.float32) for x in draw_data(shared=True))
    state = learn_all(posterior.prior(7, 2, 9.0, 0.3), design, target, relative_noise)
    wide = posterior.pad(state, 9)
    row = np.pad(design[3], (0, 2), constant_values=5.0)
    np.testing.assert_allclose(row @ wide.mean, design[3] @ state.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        posterior.predictive_variance(wide, jnp.asarray(row)),
        posterior.predictive_variance(state, jnp.asarray(design[3])),
        rtol=1e-5,
    )
