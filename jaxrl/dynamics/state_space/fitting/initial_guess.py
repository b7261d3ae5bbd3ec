"""Where a fit begins: principal components as states, and a linear regression between them.

Letters: E episodes, T steps, n channels, d dimensions of the state, m inputs.
"""

import jax
import jax.numpy as jnp

from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.model import Params, StateSpace, layers
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

SMOOTHING = 2.0
"""Steps."""
REACH = 4
"""Standard deviations of that Gaussian, rounded to steps, after which it is cut."""
KNOWN = 0.3
"""Sum of that Gaussian, 1 in its middle, over what was observed, above which an average is used."""
LEAST_PROCESS = 0.05
"""Smallest standard deviation of the noise of a step, in units of the state's."""
ROUNDED = 1e-6
"""Smaller parts of a number are errors of rounding, which are not to look like a signal."""
SMALL = 1e-3
"""Numbers that differ by less, as of currents in ampere, are taken in units of that."""
RIDGE = 1e-6
"""Of the regression, in units of variances."""


def initial_guess(
    model: StateSpace, record: Record, key: jax.Array, smoothing: float = SMOOTHING
) -> Params:
    """Parameters from episodes `[E, T]`, pure; a network draws its layers from `key`.

    `smoothing`, not traced, is the standard deviation, in steps, of the Gaussian by which
    observations are averaged. States have mean 0 and variance 1. Raises ValueError for more
    dimensions than channels.
    """
    channels, d = record.y.shape[-1], model.dims
    if d > channels:
        raise ValueError(f"{d} dimensions for {channels} channels: expected at most that")
    counts, valid = model.is_count, record.valid
    observed = record.observed & valid[..., None]
    mean, deviation = moments(record.y, observed)
    smoothed = smooth(record.y, observed, mean, smoothing)
    signals = standardise(smoothed, counts, mean, deviation)
    states, matrix = principal_components(signals, valid, d)
    transition, effect, drift, process = regression(states, record.u, valid)
    log_mean = jnp.log(jnp.abs(mean) + 1e-3)
    return Params(
        transition=transition - jnp.eye(d),
        drift=drift,
        effect=effect,
        log_process=jnp.log(jnp.maximum(process, LEAST_PROCESS)),
        matrix=jnp.where(counts[:, None], matrix, matrix * deviation[:, None]),
        offset=jnp.where(counts, log_mean, mean),
        log_noise=jnp.log(deviation),
        first_mean=jnp.zeros(d),
        first_log_deviation=jnp.zeros(d),
        **layers(model, key),
    )


def moments(y: jax.Array, observed: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation `[n]` of what was observed of each channel.

    The deviation of one that stays the same is 1: it tells nothing, and with next to no noise it
    would pull at the parameters more than all others.
    """
    mean = mean_of(y, observed)
    highest = jnp.max(jnp.where(observed, y, -jnp.inf), axis=(0, 1))
    lowest = jnp.min(jnp.where(observed, y, jnp.inf), axis=(0, 1))
    largest = jnp.maximum(jnp.abs(highest), jnp.abs(lowest))
    varies = highest - lowest > ROUNDED * largest
    unit = jnp.where(varies & (highest - lowest < SMALL), highest - lowest, 1.0)
    square = mean_of(((y - mean[None, None]) / unit[None, None]) ** 2, observed)
    return mean, jnp.where(varies, (jnp.sqrt(square) + 1e-6) * unit, 1.0)


def mean_of(x: jax.Array, counted: jax.Array) -> jax.Array:
    """The mean `[n]` of x `[E, T, n]` where it is `counted`; 0 where nothing is."""
    total = jnp.sum(jnp.where(counted, x, 0.0), axis=(0, 1))
    return total / jnp.maximum(jnp.sum(counted, axis=(0, 1)), 1)


def smooth(
    y: jax.Array, observed: jax.Array, mean: jax.Array, deviation: float = SMOOTHING
) -> jax.Array:
    """Averages `[E, T, n]` of what was observed nearby; the channel's mean where too little was."""
    reach, steps = round(REACH * deviation), y.shape[1]
    padding = [(0, 0), (reach, reach), (0, 0)]
    values = jnp.pad(jnp.where(observed, y, 0.0), padding)
    counts = jnp.pad(observed.astype(y.dtype), padding)

    def add(carry: tuple[jax.Array, jax.Array], shift: jax.Array) -> tuple[tuple, None]:
        total, weight = carry
        kernel_weight = jnp.exp(-0.5 * ((shift - reach) / deviation) ** 2)
        take_shifted = lambda x: jax.lax.dynamic_slice_in_dim(x, shift, steps, axis=1)
        return (
            total + kernel_weight * take_shifted(values),
            weight + kernel_weight * take_shifted(counts),
        ), None

    zeros = jnp.zeros_like(y)
    shifts = jnp.arange(2 * reach + 1)
    (total, weight), _ = jax.lax.scan(add, (zeros, zeros), shifts)
    return jnp.where(weight > KNOWN, total / jnp.maximum(weight, KNOWN), mean[None, None])


def standardise(
    smoothed: jax.Array, counts: jax.Array, mean: jax.Array, deviation: jax.Array
) -> jax.Array:
    """Channels in one unit: logarithms of counts, the others over their standard deviation."""
    mean, deviation = mean[None, None], deviation[None, None]
    logarithm = jnp.log(jnp.maximum(smoothed, 0.0) + 0.3 * jnp.abs(mean) + 1e-3)
    return jnp.where(counts[None, None], logarithm, (smoothed - mean) / deviation)


def principal_components(
    signals: jax.Array, valid: jax.Array, dims: int
) -> tuple[jax.Array, jax.Array]:
    """States `[E, T, d]` of variance 1, and the matrix `[n, d]` that makes the signals of them.

    The signals `[E, T, n]` are taken less their means; only steps that are `valid` count.
    """
    count, counted = jnp.maximum(jnp.sum(valid), 1), valid[..., None]
    mean = jnp.sum(jnp.where(counted, signals, 0.0), axis=(0, 1)) / count
    centred = jnp.where(counted, signals - mean[None, None], 0.0)
    flat = centred.reshape(-1, centred.shape[-1])
    _, vectors = linalg.eigh(matmul(flat.T, flat) / count)
    vectors = vectors[:, : -dims - 1 : -1]  # of the largest eigenvalues, which come last
    states = matmul(centred, vectors)
    unit = jnp.sqrt(jnp.sum(states**2, axis=(0, 1)) / count) + 1e-6
    return states / unit[None, None], vectors * unit[None]


def regression(
    states: jax.Array, u: jax.Array, valid: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """A, B and c of the next state by least squares, and the standard deviation of the rest.

    Inputs are taken in units of their root mean square, and those that never differ from 0 have no
    effect.
    """
    is_pair = (valid[:, 1:] & valid[:, :-1])[..., None]
    count, d = jnp.maximum(jnp.sum(is_pair), 1), states.shape[-1]
    size = jnp.sqrt(jnp.mean(u**2, axis=(0, 1)))
    size = jnp.where(size > 0, size, 1.0)
    ones = jnp.ones((*u.shape[:2], 1))
    x = jnp.concatenate([states, u / size[None, None], ones], axis=-1)
    x = jnp.where(is_pair, x[:, :-1], 0.0).reshape(-1, x.shape[-1])
    after = jnp.where(is_pair, states[:, 1:], 0.0).reshape(-1, d)
    gram = matmul(x.T, x) / count + RIDGE * jnp.eye(x.shape[1])
    weights = linalg.solve_positive(gram, matmul(x.T, after) / count).T  # [d, d + m + 1]
    residual = after - matmul(x, weights.T)
    effect = weights[:, d:-1] / size[None]
    return weights[:, :d], effect, weights[:, -1], jnp.sqrt(jnp.sum(residual**2, axis=0) / count)
