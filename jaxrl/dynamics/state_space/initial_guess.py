"""Where a fit begins: principal components as states, and a linear regression between them.

Letters: E episodes, T steps, n channels, d dimensions of the state, m inputs.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.model import Params, StateSpace, layers

SMOOTHING = 2.0
"""Steps."""
KNOWN = 0.3
"""Share of that Gaussian, in numbers that were observed, from which on an average is used."""
LEAST_PROCESS = 0.05
"""Smallest standard deviation of the noise of a step, in units of the state's."""


def initial_guess(
    model: StateSpace, record: Record, key: jax.Array, smoothing: float = SMOOTHING
) -> Params:
    """Parameters from episodes `[E, T]`, in NumPy; a network draws its layers from `key`.

    `smoothing` is the standard deviation, in steps, of the Gaussian by which observations are
    averaged. States have mean 0 and variance 1. Raises ValueError for more dimensions than
    channels.
    """
    channels, d = record.y.shape[-1], model.dims
    if d > channels:
        raise ValueError(f"{d} dimensions for {channels} channels: expected at most that")
    counts, valid = np.asarray(model.is_count), np.asarray(record.valid)
    y, observed = np.asarray(record.y, float), np.asarray(record.observed)
    mean, deviation = moments(y, observed)
    signals = standardise(smooth(y, observed, mean, smoothing), counts, mean, deviation)
    signals = signals - signals[valid].mean(0)
    states, matrix = principal_components(signals, valid, d)
    transition, effect, drift, process = regression(states, np.asarray(record.u), valid)
    log_mean = np.log(np.abs(mean) + 1e-3)
    arrays = {
        "transition": transition - np.eye(d),
        "drift": drift,
        "effect": effect,
        "log_process": np.log(np.maximum(process, LEAST_PROCESS)),
        "matrix": np.where(counts[:, None], matrix, matrix * deviation[:, None]),
        "offset": np.where(counts, log_mean, mean),
        "log_noise": np.log(deviation),
        "first_mean": np.zeros(d),
        "first_log_deviation": np.zeros(d),
    }
    learned = {name: jnp.asarray(x, jnp.float32) for name, x in arrays.items()}
    return Params(**learned, **layers(model, key))


def moments(y: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation `[n]` of what was observed of each channel."""
    count = np.maximum(observed.sum((0, 1)), 1)
    mean = np.where(observed, y, 0).sum((0, 1)) / count
    square = np.where(observed, (y - mean) ** 2, 0).sum((0, 1)) / count
    return mean, np.sqrt(square) + 1e-6


def smooth(
    y: np.ndarray, observed: np.ndarray, mean: np.ndarray, deviation: float = SMOOTHING
) -> np.ndarray:
    """Averages `[E, T, n]` of what was observed nearby; the channel's mean where too little was."""
    shifts = np.arange(-round(4 * deviation), round(4 * deviation) + 1)
    weights = np.exp(-0.5 * (shifts / deviation) ** 2)
    total, weight = np.zeros(y.shape), np.zeros(y.shape)
    steps = y.shape[1]
    for shift, each in zip(shifts, weights, strict=True):
        here = slice(max(0, shift), min(steps, steps + shift))
        there = slice(max(0, -shift), min(steps, steps - shift))
        total[:, there] += each * np.where(observed[:, here], y[:, here], 0)
        weight[:, there] += each * observed[:, here]
    return np.where(weight > KNOWN, total / np.maximum(weight, KNOWN), mean)


def standardise(
    smoothed: np.ndarray, counts: np.ndarray, mean: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    """Channels in one unit: logarithms of counts, the others over their standard deviation."""
    logarithm = np.log(np.maximum(smoothed, 0) + 0.3 * np.abs(mean) + 1e-3)
    return np.where(counts, logarithm, (smoothed - mean) / deviation)


def principal_components(
    signals: np.ndarray, valid: np.ndarray, dims: int
) -> tuple[np.ndarray, np.ndarray]:
    """States `[E, T, d]` of variance 1, and the matrix `[n, d]` that makes the signals of them."""
    flat = signals[valid]
    _, vectors = np.linalg.eigh(flat.T @ flat)
    vectors = vectors[:, : -dims - 1 : -1]  # of the largest eigenvalues, which come last
    states = signals @ vectors
    unit = states[valid].std(0) + 1e-6
    return states / unit, vectors * unit


def regression(
    states: np.ndarray, u: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, B and c of the next state by least squares, and the standard deviation of the rest."""
    pair = valid[:, 1:]
    ones = np.ones((*u.shape[:2], 1))
    x = np.concatenate([states, u, ones], axis=-1)[:, :-1][pair]
    after = states[:, 1:][pair]
    weights = np.linalg.lstsq(x, after, rcond=None)[0].T
    d = states.shape[-1]
    return weights[:, :d], weights[:, d:-1], weights[:, -1], (after - x @ weights.T).std(0)
