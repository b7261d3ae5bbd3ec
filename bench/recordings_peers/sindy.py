"""SINDYc (Brunton, Proctor & Kutz 2016), package pysindy: sparse polynomials in state and input.

It needs a state, which nobody observes here. As is usual with spikes, counts are smoothed by a
Gaussian of some width and projected on their principal components: the states of the training data.
What comes before a forecast is all that is known of its state, so that there it is estimated
linearly from the last observations. Width, dimensions, degree, threshold and whether steps or
derivatives are learned are chosen by forecasts of the last fifth of the training data. SINDy knows
no noise: uncertainty is that of its errors in the training data.
"""

# pyright: reportMissingImports=false

from typing import NamedTuple

import numpy as np
import pysindy
from scipy.ndimage import gaussian_filter1d

from bench.recordings_peers.problem import AHEAD, Fitted, Problem, choose
from bench.recordings_peers.scaling import pieces, scale
from train.vector_field.data.recordings import Data
from train.vector_field.recorded.baseline_forecasts import (
    Means,
    Target,
    errors_of,
    make_forecasts,
    positive_means,
    restore_units,
)
from train.vector_field.recorded.prediction_scores import (
    Forecaster,
    Forecasts,
    Starts,
    interval_steps,
    rows_at,
)

WIDTHS = (0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the smoothing Gaussian, in bins."""
PAST = 20
"""Observations from which a state is estimated where the future is not known."""
THRESHOLDS = (0.0, 0.01, 0.03)
"""Of sequentially thresholded least squares; states have deviation 1."""
DEGREES = (1, 2, 3)
MORE_DIMS = (1, 2)
"""Latent dimensions that are tried, times those of the truth."""
RIDGE = 1e-2
"""Of the estimate of states, relative to the mean square of a regressor."""
FARTHEST = 2.0
"""No forecast state leaves the box of the training states, so many times larger: a polynomial may
run away."""


class Settings(NamedTuple):
    dims: int
    width: float
    degree: int
    threshold: float
    steps: bool  # next states are learned, or else derivatives


class Coordinates(NamedTuple):
    """From observations to states, and back."""

    estimate: np.ndarray  # [PAST n + 1, d] weights of the last observations, the newest first
    readout: np.ndarray  # [d + 1, n]


def fit(problem: Problem) -> Fitted:
    """Chooses settings and fits with them."""
    choices = {
        "width": WIDTHS,
        "degree": DEGREES,
        "threshold": THRESHOLDS,
        "steps": (True, False),
        "dims": [problem.dims * more for more in MORE_DIMS],
    }
    first = Settings(problem.dims, WIDTHS[2], DEGREES[-1], 0.01, True)
    settings = choose(problem, first, choices, fit_with)
    return Fitted(fit_with(problem, settings), settings._asdict())


def fit_with(problem: Problem, settings: Settings) -> Forecaster:
    """The model with these settings."""
    scaled = scale(problem, roots=False)
    training = scaled.training
    states = smooth_states(training, settings.dims, settings.width)
    y, u = pieces(training)
    coordinates = fit_coordinates(y, states)
    field = learn_field(states, u, settings)
    limit = FARTHEST * np.max([np.abs(z).max(0) for z in states], axis=0)

    def means_of(data: Data) -> Means:
        begin = estimate_states(data, coordinates.estimate)
        later = np.pad(data.u.astype(float), ((0, 0), (0, AHEAD), (0, 0)))

        def means(starts: Starts) -> np.ndarray:
            z, path = rows_at(begin, starts, 0), []
            for k in range(AHEAD + 1):
                path.append(with_one(z) @ coordinates.readout)
                z = np.clip(advance(field, z, rows_at(later, starts, k), settings), -limit, limit)
            return np.stack(path, 1)

        return means

    training_target = Target(training, scaled.scales, problem.is_count, AHEAD)
    errors = errors_of(means_of(training), problem.training, training_target, 1.0)
    means = means_of(scaled.held_out)

    def forecaster(starts: Starts) -> Forecasts:
        steps = list(interval_steps(AHEAD))
        mean = restore_units(means(starts), scaled.scales)
        later = mean[:, steps]
        rate = positive_means(later, scaled.scales)
        counts = rate + errors.dispersion * rate**2
        spread = np.where(problem.is_count, counts, errors.variance)
        return make_forecasts(mean, later, spread, starts, scaled.target)

    return forecaster


def smooth_states(training: Data, dims: int, width: float) -> list[np.ndarray]:
    """Principal components `[T, d]`, of deviation 1, of each smoothed episode."""
    smoothed = [gaussian_filter1d(y, width, axis=0, mode="nearest") for y in pieces(training)[0]]
    whole = np.concatenate(smoothed)
    mean = whole.mean(0)
    _, _, axes = np.linalg.svd(whole - mean, full_matrices=False)
    deviation = ((whole - mean) @ axes[:dims].T).std(0)
    return [(x - mean) @ axes[:dims].T / deviation for x in smoothed]


def fit_coordinates(y: list[np.ndarray], states: list[np.ndarray]) -> Coordinates:
    """Least squares of the states on the observations until then, and of observations on states."""
    x, z, values = np.concatenate([recent(e) for e in y]), np.concatenate(states), np.concatenate(y)
    return Coordinates(regress(x, z, RIDGE), regress(with_one(z), values, 0.0))


def recent(y: np.ndarray) -> np.ndarray:
    """`[T, PAST n + 1]`: the last observations of each step of y `[T, n]`, 0 before the first."""
    lags = [np.pad(y, ((i, 0), (0, 0)))[: len(y)] for i in range(PAST)]
    return with_one(np.concatenate(lags, axis=1))


def with_one(x: np.ndarray) -> np.ndarray:
    """A column of ones behind x `[N, q]`."""
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def regress(x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Weights `[q, n]` of y `[N, n]` on x `[N, q]`."""
    gram = x.T @ x
    return np.linalg.solve(gram + ridge * np.trace(gram) / len(gram) * np.eye(len(gram)), x.T @ y)


def estimate_states(data: Data, estimate: np.ndarray) -> np.ndarray:
    """States `[E, T, d]` by the observations until then."""
    states = np.zeros((*data.y.shape[:2], estimate.shape[1]))
    for e, y in enumerate(pieces(data)[0]):
        states[e, : len(y)] = recent(y) @ estimate
    return states


def learn_field(
    states: list[np.ndarray], u: list[np.ndarray], settings: Settings
) -> pysindy.SINDy | pysindy.DiscreteSINDy:
    """The sparse polynomial of the next state, or of the derivative."""
    optimizer = pysindy.STLSQ(threshold=settings.threshold, alpha=1e-3)
    library = pysindy.PolynomialLibrary(degree=settings.degree)
    kind = pysindy.DiscreteSINDy if settings.steps else pysindy.SINDy
    return kind(optimizer=optimizer, feature_library=library).fit(states, t=1.0, u=u)


def advance(
    field: pysindy.SINDy | pysindy.DiscreteSINDy, z: np.ndarray, u: np.ndarray, settings: Settings
) -> np.ndarray:
    """States `[B, d]` one step later: as learned, or by Runge and Kutta's step of derivatives."""
    if settings.steps:
        return np.asarray(field.predict(z, u=u))
    velocity = lambda x: np.asarray(field.predict(x, u=u))
    first = velocity(z)
    second = velocity(z + first / 2)
    third = velocity(z + second / 2)
    return z + (first + 2 * second + 2 * third + velocity(z + third)) / 6
