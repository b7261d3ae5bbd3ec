"""Recordings as methods for Gaussian data take them, and their forecasts back in counts.

Counts as they are or as square roots, whose noise depends less on the rate; everything less its
mean and over its deviation in the training data.
Letters: E episodes, T steps, B starts, K steps ahead, n channels, m inputs.
"""

from typing import NamedTuple

import numpy as np

from bench.recordings_peers.problem import AHEAD, Problem
from train.vector_field.data.recordings import Data
from train.vector_field.recorded import baselines
from train.vector_field.recorded.baseline_forecasts import Target, make_forecasts
from train.vector_field.recorded.prediction_scores import Forecasts, Starts, interval_steps


class Scaled(NamedTuple):
    """A problem in units of a method for Gaussian data."""

    training: Data
    held_out: Data
    scales: baselines.Scales  # of what was scaled: of square roots, where they are
    is_root: np.ndarray  # bool [n]
    target: Target  # in the units of the recording


def scale(problem: Problem, roots: bool) -> Scaled:
    """Scales a problem, with square roots of its counts if `roots`.

    Raises ValueError where observations are missing: the peers take complete ones.
    """
    training, held_out = problem.training, problem.held_out
    if not (is_complete(training) and is_complete(held_out)):
        raise ValueError("observations are missing: the peers take complete recordings alone")
    is_root = problem.is_count & roots
    turn = lambda data: data._replace(y=np.where(is_root, np.sqrt(np.maximum(data.y, 0)), data.y))
    reference = turn(training)
    target = Target(held_out, baselines.scales(training), problem.is_count, AHEAD)
    return Scaled(
        baselines.standardise(reference, reference),
        baselines.standardise(turn(held_out), reference),
        baselines.scales(reference),
        is_root,
        target,
    )


def is_complete(data: Data) -> bool:
    """Whether all was observed within the episodes."""
    inside = np.arange(data.y.shape[1]) < data.lengths[:, None]
    return bool(data.observed[inside].all())


def pieces(data: Data) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """y `[T, n]` and u `[T, m]` of each episode, float64 and without padding."""
    cut = lambda x: [
        row[:length].astype(float) for row, length in zip(x, data.lengths, strict=True)
    ]
    return cut(data.y), cut(data.u)


def restore(
    mean: np.ndarray, variance: np.ndarray, scaled: Scaled
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances `[B, K + 1, n]` in the units of the recording.

    Of x² for x ~ N(m, v) they are m² + v and 4 m² v + 2 v².
    """
    m = mean * scaled.scales.deviation + scaled.scales.mean
    v = variance * scaled.scales.deviation**2
    square_mean, square_variance = m**2 + v, (4 * m**2 + 2 * v) * v
    return np.where(scaled.is_root, square_mean, m), np.where(scaled.is_root, square_variance, v)


def forecasts(mean: np.ndarray, variance: np.ndarray, starts: Starts, scaled: Scaled) -> Forecasts:
    """Forecasts of Gaussians `[B, K + 1, n]` in scaled units; counts are negative binomial."""
    mean, variance = restore(mean, variance, scaled)
    steps = list(interval_steps(AHEAD))
    return make_forecasts(mean, mean[:, steps], variance[:, steps], starts, scaled.target)
