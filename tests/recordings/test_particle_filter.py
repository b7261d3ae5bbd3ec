"""The particle filter against an exact Kalman filter, and the intervals of true models."""

import numpy as np
import pytest

from tests.recordings import particle_filter, systems
from tests.recordings.simulation import SETTLING_BINS, SUBSTEPS, simulate
from tests.recordings.systems import record

AHEAD, AT = 30, particle_filter.INTERVALS_AT


def linear_step(model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F `[d, d]`, G `[d, m]` and Q `[d, d]` of one bin, from the drift's own values."""
    h, still = 1 / SUBSTEPS, np.zeros((1, 2))
    step = np.eye(2) + h * model.drift(np.eye(2), still)
    push = h * model.drift(np.zeros((2, 1)), np.ones((1, 1)))
    whole, effect, noise = np.eye(2), np.zeros((2, 1)), np.zeros((2, 2))
    for _ in range(SUBSTEPS):
        whole, effect = step @ whole, step @ effect + push
        noise = step @ noise @ step.T + h * np.diag(model.noise**2)
    return whole, effect, noise


@pytest.mark.slow
def test_it_agrees_with_a_kalman_filter():
    """Beliefs, log-likelihoods, means and quantiles within the error of 2,000 particles."""
    model, inputs = systems.linear(np.random.default_rng(0))
    recording = simulate(model, inputs, (110,), np.random.default_rng(1))
    y, u = recording.y, recording.u
    y[0, 40:44] = y[0, 60, :6] = np.nan
    filtered = particle_filter.filter_episodes(model, y, u)
    steps = np.arange(20, 80)
    forecast = particle_filter.forecast(model, filtered, y, u, 0 * steps, steps)

    move, effect, process = linear_step(model)
    matrix, offset, deviation = (
        model.channels.matrix,
        model.channels.offset,
        model.channels.deviation,
    )
    m, P = np.zeros(2), np.eye(2)
    for _ in range(SETTLING_BINS):
        P = move @ P @ move.T + process
    for t in range(len(y[0])):
        observed = np.isfinite(y[0, t])
        C, R = matrix[observed], np.diag(deviation[observed] ** 2)
        S = C @ P @ C.T + R
        error = y[0, t, observed] - C @ m - offset[observed]
        exact = -0.5 * (error @ np.linalg.solve(S, error) + np.linalg.slogdet(2 * np.pi * S)[1])
        assert abs(filtered.log_likelihood[0, t] - exact) < 0.3
        each = -0.5 * (error**2 / np.diag(S) + np.log(2 * np.pi * np.diag(S)))
        np.testing.assert_allclose(filtered.log_predictive[0, t, observed], each, atol=0.12)
        np.testing.assert_array_equal(filtered.log_predictive[0, t, ~observed], 0)
        gain = P @ C.T @ np.linalg.inv(S) if observed.any() else np.zeros((2, 0))
        m, P = m + gain @ error, P - gain @ C @ P
        np.testing.assert_allclose(filtered.states[0, t].mean(-1), m, atol=0.15)
        if t in steps:
            check_forecast(forecast, t - steps[0], m, P, u[0, t:], (move, effect, process), model)
        m, P = move @ m + effect @ u[0, t], move @ P @ move.T + process


def check_forecast(forecast, row, m, P, u, step, model) -> None:
    """Means, and quantiles m ± 1.645 sd, in units of the deviation of what is foretold."""
    move, effect, process = step
    channels = model.channels
    for k in range(AHEAD + 1):
        spread = np.sqrt(np.diag(channels.matrix @ P @ channels.matrix.T) + channels.deviation**2)
        mean = channels.matrix @ m + channels.offset
        assert np.max(np.abs(forecast.mean[row, k] - mean) / spread) < 0.12
        if k in AT:
            j = AT.index(k)
            for bound, sign in ((forecast.low, -1), (forecast.high, 1)):
                off = (bound[row, j] - mean) / spread - sign * 1.6449
                assert np.sqrt(np.mean(off**2)) < 0.12
        m, P = move @ m + effect @ u[k], move @ P @ move.T + process


def test_resampling_draws_in_proportion():
    weights = np.array([0.1, 0.0, 0.4, 0.5])
    counts = np.zeros(4)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        indices = particle_filter.resample(weights, rng)
        counts += np.bincount(indices, minlength=4)
        assert np.all(np.abs(np.bincount(indices, minlength=4) - 4 * weights) < 1)
    np.testing.assert_allclose(counts / counts.sum(), weights, atol=0.01)


def test_densities_are_those_of_the_channels():
    model, _ = systems.counts_and_numbers(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    z = rng.normal(size=(2, 5))
    y = np.concatenate([rng.normal(size=10), rng.poisson(2, 20)]).astype(float)
    y[3] = y[15] = np.nan
    logs = particle_filter.log_densities(model.channels, y, z)
    matrix, offset, is_count, deviation = model.channels
    for i in range(30):
        for p in range(5):
            eta = matrix[i] @ z[:, p] + offset[i]
            if np.isnan(y[i]):
                exact = 0.0
            elif is_count[i]:
                factorial = np.prod(np.arange(1, y[i] + 1))
                exact = np.log(np.exp(eta) ** y[i] * np.exp(-np.exp(eta)) / factorial)
            else:
                density = np.exp(-0.5 * ((y[i] - eta) / deviation[i]) ** 2)
                exact = np.log(density / (deviation[i] * np.sqrt(2 * np.pi)))
            np.testing.assert_allclose(logs[i, p], exact, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "mixed",
        *(
            pytest.param(x, marks=pytest.mark.slow)
            for x in ("stuart_landau", "two_wells", "missing")
        ),
    ],
)
def test_ranks_of_a_true_model_are_uniform(name):
    """Randomised within counts, over what was observed: mean 1/2 and variance 1/12."""
    recording = record(name, 2, small=True)
    y, u = recording.y[-1:], recording.u[-1:]
    filtered = particle_filter.filter_episodes(recording.model, y, u, particles=500)
    steps = np.arange(20, recording.lengths[-1] - AHEAD)
    forecast = particle_filter.forecast(
        recording.model, filtered, y, u, 0 * steps, steps, particles=100
    )
    rng = np.random.default_rng(0)
    for j, k in enumerate(AT):
        width = forecast.at_most[:, j] - forecast.below[:, j]
        rank = forecast.below[:, j] + rng.random(width.shape) * width
        rank = rank[np.isfinite(y[0, steps + k])]
        assert abs(rank.mean() - 0.5) < 0.04
        assert abs(rank.var() - 1 / 12) < 0.008
    assert np.all(forecast.low <= forecast.high)
