"""What the true model foresees: a bootstrap particle filter, and particles that move on from it.

No model of a recording can forecast better than this on average, but for the error of finitely many
particles. The filter moves particles as the system itself moves, weighs them by the likelihood of
what is observed and draws them anew in proportion to their weights (Gordon, Salmond & Smith 1993;
systematic resampling after Kitagawa 1996). NumPy alone, as the simulators.

Letters: E episodes, T bins, n channels, m inputs, d dimensions, M particles, B starts of forecasts,
K steps ahead, S of them with intervals.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.recordings.simulation import Channels, Model, advance, mean_of, observe, settle

PARTICLES = 2000
INTERVALS_AT = (1, 10, 30)
"""Steps ahead at which observations are drawn."""
TAILS = (0.05, 0.95)
CHUNK = 2**15
"""Particles that are moved on at once."""


class FilteredStates(NamedTuple):
    """What a filter knows of episodes."""

    states: np.ndarray  # float32 [E, T, d, M] particles given the past and the present, unweighted
    log_predictive: np.ndarray  # [E, T, n] log p(y_t of a channel | past); 0 where it is missing
    log_likelihood: np.ndarray  # [E, T] log p(y_t of all channels | past)


class TrueForecasts(NamedTuple):
    """Forecasts of observations after B starts."""

    mean: np.ndarray  # [B, K + 1, n]
    low: np.ndarray  # [B, S, n] 5 % quantile
    high: np.ndarray  # [B, S, n] 95 % quantile
    below: np.ndarray  # [B, S, n] chance of less than what was observed; 0 where it is missing
    at_most: np.ndarray  # [B, S, n] chance of no more


def filter_episodes(
    model: Model, y: np.ndarray, u: np.ndarray, seed: int = 0, particles: int = PARTICLES
) -> FilteredStates:
    """Filters y `[E, T, n]`, NaN where missing and in padding, moved by u `[E, T, m]`."""
    rng = np.random.default_rng(seed)
    episodes, steps, channels = y.shape
    states = np.empty((episodes, steps, model.dims, particles), np.float32)
    log_predictive = np.zeros((episodes, steps, channels))
    log_likelihood = np.zeros((episodes, steps))
    for e in range(episodes):
        z = settle(model, particles, u.shape[-1], rng).astype(np.float32)
        for t in range(steps):
            logs = log_densities(model.channels, y[e, t], z)  # [n, M]
            log_predictive[e, t] = _log_mean(logs)
            joint_logs = logs.sum(0)
            log_likelihood[e, t] = _log_mean(joint_logs[None])[0]
            z = states[e, t] = z[:, resample(np.exp(joint_logs - joint_logs.max()), rng)]
            z = advance(model, z, np.nan_to_num(u[e, t])[:, None].astype(np.float32), rng)
    return FilteredStates(states, log_predictive, log_likelihood)


def log_densities(channels: Channels, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """log p(y | z) `[n, M]` of each channel's y `[n]` in the states z `[d, M]`; 0 where missing."""
    count = channels.is_count
    observed = np.isfinite(y)
    y = np.where(observed, y, 0)[:, None]
    eta = channels.matrix @ z + channels.offset[:, None]
    logs = np.empty(eta.shape)
    factorials = np.cumsum(np.log(np.maximum(np.arange(y[count].max(initial=0) + 1), 1)))
    logs[count] = y[count] * eta[count] - np.exp(eta[count]) - factorials[y[count].astype(int)]
    deviation = channels.deviation[~count][:, None]
    standard = (y[~count] - eta[~count]) / deviation
    logs[~count] = -0.5 * standard**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
    return np.where(observed[:, None], logs, 0)


def resample(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws as many indices as there are weights, systematically and in proportion to them."""
    edges = np.cumsum(weights, dtype=float)
    places = (np.arange(len(weights)) + rng.random()) * (edges[-1] / len(weights))
    return np.minimum(np.searchsorted(edges, places, side="right"), len(weights) - 1)


def forecast(
    model: Model,
    filtered: FilteredStates,
    y: np.ndarray,
    u: np.ndarray,
    episode: np.ndarray,
    step: np.ndarray,
    ahead: int = 30,
    particles: int = PARTICLES,
    at: Sequence[int] = INTERVALS_AT,
    seed: int = 0,
) -> TrueForecasts:
    """Forecasts from bins `step` `[B]` of `episode` `[B]`, with every so many of the particles.

    Inputs after the end of an episode count as 0.
    """
    padded_inputs = np.pad(np.nan_to_num(u), ((0, 0), (0, ahead), (0, 0)))
    rows = max(1, CHUNK // particles)
    rng = np.random.default_rng(seed)
    parts = []
    for begin in range(0, len(step), rows):
        e, t = episode[begin : begin + rows], step[begin : begin + rows]
        times = t[:, None] + np.arange(ahead + 1)
        pushes = padded_inputs[e[:, None], times]  # [B, K + 1, m]
        every = max(1, filtered.states.shape[-1] // particles)
        z = filtered.states[e, t, :, ::every].transpose(1, 0, 2)  # [d, B, M]
        truth = y[e[:, None], np.minimum(times, y.shape[1] - 1)]  # [B, K + 1, n]
        parts.append(_forecast_chunk(model, z, pushes, truth, at, rng))
    return TrueForecasts(*map(np.concatenate, zip(*parts, strict=True)))


def _forecast_chunk(
    model: Model,
    z: np.ndarray,
    u: np.ndarray,
    y: np.ndarray,
    at: Sequence[int],
    rng: np.random.Generator,
) -> TrueForecasts:
    means, bounds, ranks = [], [], []
    for k in range(u.shape[1]):
        if k:
            z = advance(model, z, u[:, k - 1].T[..., None].astype(z.dtype), rng)
        mean = mean_of(model.channels, z)  # [n, B, M]
        means.append(mean.mean(-1, dtype=float).T)
        if k in at:
            draws = observe(model.channels, mean, rng)
            bounds.append(np.quantile(draws, TAILS, axis=-1).transpose(0, 2, 1))
            ranks.append(_ranks(draws, y[:, k].T).transpose(0, 2, 1))
    low, high = np.stack(bounds, 2) if bounds else np.zeros((2, len(u), 0, y.shape[-1]))
    below, at_most = np.stack(ranks, 2) if ranks else np.zeros((2, len(u), 0, y.shape[-1]))
    return TrueForecasts(np.stack(means, 1), low, high, below, at_most)


def _ranks(draws: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The place of y `[n, B]` among draws `[n, B, M]`, y one of them: chances of <, and of ≤."""
    truth = y[..., None]
    less, equal = np.sum(draws < truth, -1), np.sum(draws == truth, -1)
    return np.stack([less, less + equal + 1]) / (draws.shape[-1] + 1)


def _log_mean(logs: np.ndarray) -> np.ndarray:
    """log of the mean of exp(logs) `[n, M]` over M."""
    most = logs.max(-1)
    return most + np.log(np.mean(np.exp(logs - most[:, None]), axis=-1))
