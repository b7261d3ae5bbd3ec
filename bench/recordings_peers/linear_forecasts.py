"""Forecasts of any linear-Gaussian state-space model, from its matrices and its filtered states.

    z' = A z + B u + b + w,  Cov w = Q;    y = C z + D v + c + noise,  its variances r

where v is the input that the method takes to be seen at once.
Letters: E episodes, T steps, B starts, K steps ahead, d dimensions, n channels, m inputs.
"""

from typing import NamedTuple

import numpy as np

from train.vector_field.recorded.prediction_scores import Starts, rows_at


class LinearModel(NamedTuple):
    transition: np.ndarray  # [d, d] A
    effect: np.ndarray  # [d, m] B
    drift: np.ndarray  # [d] b
    process: np.ndarray  # [d, d] Q
    matrix: np.ndarray  # [n, d] C
    feedthrough: np.ndarray  # [n, m] D
    offset: np.ndarray  # [n] c
    noise: np.ndarray  # [n] r


class Filtered(NamedTuple):
    """States given the observations up to each step, and the states one step later given those."""

    mean: np.ndarray  # [E, T, d]
    covariance: np.ndarray  # [E, T, d, d]
    next_mean: np.ndarray  # [E, T, d]
    next_covariance: np.ndarray  # [E, T, d, d]


def gaussians(
    model: LinearModel, filtered: Filtered, u: np.ndarray, v: np.ndarray, starts: Starts, ahead: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances `[B, K + 1, n]` of observations now and up to K = `ahead` steps later.

    u and v are `[E, T, m]`; after the end of an episode inputs count as 0. The first step is that
    of the filter itself, which knows how the noises of state and observation belong together.
    """
    pad = lambda x: np.pad(x.astype(float), ((0, 0), (0, ahead), (0, 0)))
    u, v = pad(u), pad(v)
    z, covariance = rows_at(filtered.mean, starts, 0), rows_at(filtered.covariance, starts, 0)
    means, variances = [], []
    for k in range(ahead + 1):
        if k == 1:
            z = rows_at(filtered.next_mean, starts, 0)
            covariance = rows_at(filtered.next_covariance, starts, 0)
        elif k > 1:
            push = rows_at(u, starts, k - 1) @ model.effect.T + model.drift
            z = z @ model.transition.T + push
            covariance = model.transition @ covariance @ model.transition.T + model.process
        direct = rows_at(v, starts, k) @ model.feedthrough.T + model.offset
        means.append(z @ model.matrix.T + direct)
        variances.append(np.sum((model.matrix @ covariance) * model.matrix, axis=-1) + model.noise)
    return np.stack(means, 1), np.maximum(np.stack(variances, 1), 1e-9)
