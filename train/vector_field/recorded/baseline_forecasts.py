"""Forecasts of the baselines with their own uncertainty, as `prediction_scores` compares them.

Of persistence and ARX the uncertainty is that of their errors in the training data, of the
linear-Gaussian model that of its Kalman filter. Numbers are normal around the forecast. Counts are
negative binomial, or Poisson if they vary no more than that, with the forecast as mean.
Letters: E episodes, T steps, B starts, K steps ahead, S of them with intervals, n channels.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics import linear_gaussian
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.linear_gaussian import Params
from train.vector_field.data.recordings import Data
from train.vector_field.recorded import baselines, predictive
from train.vector_field.recorded.baselines import Scales
from train.vector_field.recorded.prediction_scores import (
    Forecaster,
    Forecasts,
    Scores,
    Starts,
    interval_steps,
    rows_at,
    rows_at_steps,
    score,
    starts_of,
)

LEAST_RATE = 0.1
"""Mean of a count's distribution at least, as a share of its channel's mean: linear forecasts may
fall below 0, and no count is impossible."""
MOST_ERRORS = 4000
"""Starts in the training data from which errors are measured, evenly spaced."""
Means = Callable[[Starts], np.ndarray]
"""Starts -> expected observations `[B, K + 1, n]`, in units of the channels' deviations."""


class Target(NamedTuple):
    """What is forecast."""

    data: Data
    scales: Scales
    is_count: np.ndarray  # bool [n]
    ahead: int  # K


class Errors(NamedTuple):
    """How far forecasts are off: mean squares, and of counts what is beyond those of Poisson's."""

    variance: np.ndarray  # [S, n] of numbers
    dispersion: np.ndarray  # [S, n] φ of counts, whose variance is μ + φ μ²


def scores(
    training: Data, held_out: Data, dims: int, is_count: np.ndarray, ahead: int
) -> tuple[dict[str, Scores], int]:
    """The scores of each of `baselines.NAMES`, and p, the order of ARX. Arguments: `forecasters`.

    R² are those of `baselines.r2`.
    """
    by_name, order = forecasters(training, held_out, dims, is_count, ahead)
    score_of = lambda forecaster: score(training, held_out, forecaster, is_count, ahead)
    return {name: score_of(forecaster) for name, forecaster in by_name.items()}, order


def forecasters(
    training: Data, held_out: Data, dims: int, is_count: np.ndarray, ahead: int
) -> tuple[dict[str, Forecaster], int]:
    """Fits each of `baselines.NAMES`; returns their forecasts, and p, the order of ARX.

    The linear-Gaussian model has `dims` latent dimensions, at most one per channel; `is_count` is
    bool `[n]`. Persistence and ARX know the present: their means of it are NaN.
    """
    training = baselines.newest(training, baselines.MOST_STEPS)
    scales = baselines.scales(training)
    training_target = Target(baselines.standardise(training, training), scales, is_count, ahead)
    target = Target(held_out, scales, is_count, ahead)
    scaled_data = baselines.standardise(held_out, training)

    persistence_means = persistence(training_target.data, ahead)
    errors = errors_of(persistence_means, training, training_target, 1.0)
    by_name = {
        "persistence": forecaster_from_errors(persistence(scaled_data, ahead), errors, target)
    }

    weights, order = baselines.fit_arx(training_target.data)
    rows = int(np.maximum(training.lengths - order, 0).sum())
    errors = errors_of(
        arx(weights, order, training_target.data, ahead),
        training,
        training_target,
        optimism(rows, len(weights)),
    )
    by_name["arx"] = forecaster_from_errors(arx(weights, order, scaled_data, ahead), errors, target)

    params = baselines.fit_linear_gaussian(training_target.data, min(dims, len(is_count)))
    by_name["linear_gaussian"] = linear(params, scaled_data, target)
    return by_name, order


def optimism(rows: int, regressors: int) -> float:
    """How much larger the mean square of new errors is than that of the errors fitted.

    (N + q) / (N - q) for q regressors and N rows (Akaike 1969), of one step and, nearly, of more.
    """
    return (rows + regressors) / max(rows - regressors, 1)


def persistence(data: Data, ahead: int) -> Means:
    """Nothing changes: the last observation of each channel."""
    latest = baselines.last_observations(data)
    return lambda starts: np.repeat(rows_at(latest, starts, 0)[:, None], ahead + 1, axis=1)


def arx(weights: np.ndarray, order: int, data: Data, ahead: int) -> Means:
    """`baselines.arx` from some starts."""
    latest, weights = (
        baselines.last_observations(data).astype(np.float32),
        weights.astype(np.float32),
    )
    later = np.pad(data.u, ((0, 0), (0, ahead), (0, 0)))
    one = np.ones((1, 1), np.float32)

    def means(starts: Starts) -> np.ndarray:
        episode, step = starts
        past = lambda x, i: x[episode, np.maximum(step - i, 0)]
        recent = [past(latest, i) for i in range(order)]  # the newest first
        pushes = [past(later, i) for i in range(order)]
        path = [recent[0]]
        for k in range(1, ahead + 1):
            pairs = [part for both in zip(recent, pushes, strict=True) for part in both]
            regressors = np.concatenate([*pairs, one.repeat(len(step), 0)], axis=-1)
            path.append(regressors @ weights)
            recent = [path[-1], *recent[:-1]]
            pushes = [later[episode, step + k], *pushes[:-1]]
        return np.stack(path, axis=1)

    return means


def errors_of(means: Means, training: Data, target: Target, factor: float) -> Errors:
    """How far forecasts of the training data are off, their squares times `factor`.

    Raises ValueError if no episode is long enough for a forecast.
    """
    starts = starts_of(training, target.ahead)
    if not len(starts.step):
        raise ValueError(
            f"no training episode is long enough for a forecast {target.ahead} steps ahead: join "
            "episodes that follow each other, or record longer ones"
        )
    every = -(-len(starts.step) // MOST_ERRORS)
    starts = Starts(*(x[::every] for x in starts))
    steps = interval_steps(target.ahead)
    mean = restore_units(means(starts)[:, list(steps)], target.scales)
    mean = np.where(target.is_count, positive_means(mean, target.scales), mean)
    observed = rows_at_steps(training.observed, starts, steps)
    add = lambda x: np.where(observed, x, 0).sum(0)
    square = factor * (rows_at_steps(training.y, starts, steps) - mean) ** 2
    variance = add(square) / np.maximum(observed.sum(0), 1)
    dispersion = add(square - mean) / np.maximum(add(mean**2), 1e-12)
    least = 1e-12 * target.scales.deviation**2
    return Errors(np.maximum(variance, least), np.maximum(dispersion, 0))


def forecaster_from_errors(means: Means, errors: Errors, target: Target) -> Forecaster:
    """Forecasts of a model that reads off the present, with errors as in the training data."""
    steps = list(interval_steps(target.ahead))

    def forecaster(starts: Starts) -> Forecasts:
        mean = restore_units(means(starts), target.scales)
        later = mean[:, steps]
        rate = positive_means(later, target.scales)
        spread = np.where(target.is_count, rate + errors.dispersion * rate**2, errors.variance)
        mean[:, 0] = np.nan
        return make_forecasts(mean, later, spread, starts, target)

    return forecaster


def linear(params: Params, scaled_data: Data, target: Target) -> Forecaster:
    """Forecasts of the linear-Gaussian model, with the covariances of its Kalman filter.

    k + 1 steps ahead m ← A m + B u and P ← A P Aᵀ + Q; channels then vary by C P Cᵀ + R.
    """
    means, covariances = (np.asarray(x, float) for x in _beliefs(params, scaled_data))
    transition, effect, process, matrix, offset, noise = (np.asarray(x, float) for x in params[:6])
    steps = interval_steps(target.ahead)
    later = np.pad(scaled_data.u.astype(float), ((0, 0), (0, target.ahead), (0, 0)))

    def forecaster(starts: Starts) -> Forecasts:
        z, covariance = rows_at(means, starts, 0), rows_at(covariances, starts, 0)
        path, variances = [z], []
        for k in range(1, target.ahead + 1):
            z = z @ transition.T + rows_at(later, starts, k - 1) @ effect.T
            covariance = transition @ covariance @ transition.T + process
            path.append(z)
            if k in steps:
                variances.append(np.sum((matrix @ covariance) * matrix, axis=-1) + noise)
        mean = restore_units(np.stack(path, 1) @ matrix.T + offset, target.scales)
        spread = np.zeros((len(z), 0, len(matrix))) if not steps else np.stack(variances, 1)
        spread = spread * target.scales.deviation**2
        return make_forecasts(mean, mean[:, list(steps)], spread, starts, target)

    return forecaster


@jax.jit
def _beliefs(params: Params, scaled_data: Data) -> Belief:
    """The filtered states after each observation, `[E, T, ...]`."""
    filter_episode = lambda y, u, observed: linear_gaussian.filter_states(params, y, u, observed)[1]
    return jax.vmap(filter_episode)(*map(jnp.asarray, scaled_data[:3]))


def make_forecasts(
    mean: np.ndarray, later: np.ndarray, variance: np.ndarray, starts: Starts, target: Target
) -> Forecasts:
    """Forecasts of that mean `[B, K + 1, n]`; at S steps of mean `later`, variance `[B, S, n]`."""
    steps = interval_steps(target.ahead)
    centre = np.where(target.is_count, positive_means(later, target.scales), later)
    y = rows_at_steps(target.data.y, starts, steps)
    below, at_most, log_likelihood = predictive.place(target.is_count, centre, variance, y)
    next_step = log_likelihood[:, 0] if steps else np.zeros((len(mean), mean.shape[-1]))
    return Forecasts(mean, below, at_most, next_step)


def restore_units(mean: np.ndarray, scales: Scales) -> np.ndarray:
    """Means in the units of the data."""
    return mean * scales.deviation + scales.mean


def positive_means(mean: np.ndarray, scales: Scales) -> np.ndarray:
    """Means of counts, at least `LEAST_RATE` of the channel's own."""
    return np.maximum(mean, np.maximum(LEAST_RATE * scales.mean, 1e-6))
