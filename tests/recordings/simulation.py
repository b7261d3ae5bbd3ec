"""Simulated recordings: a stochastic differential equation, seen by channels of counts and numbers.

NumPy alone, and nothing of the package that is tested with them. In time of bins,

    dz = drift(z, u) dt + diag(noise) dW,    y ~ Poisson(exp(C z + b)) or Normal(C z + b, sd²)

by channel, integrated by Euler and Maruyama with 20 steps a bin; u_t acts from bin t to bin t + 1.
Letters: E episodes, T bins, n channels, m inputs, d dimensions of the state. Arrays of states that
are moved have their components first, `[d, ...]`, so that each is contiguous.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

SUBSTEPS = 20
"""Steps of Euler and Maruyama in a bin."""
SETTLING_BINS = 150
"""Without inputs, before an episode begins: it starts in the stationary state."""

Drift = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""z `[d, ...]` and u `[m, ...]` -> velocity per bin, `[d, ...]`."""
Inputs = Callable[[np.random.Generator, int], np.ndarray]
"""Draws the inputs `[T, m]` of an episode of T bins."""


class Channels(NamedTuple):
    """What is seen of a state."""

    matrix: np.ndarray  # [n, d] C
    offset: np.ndarray  # [n] b
    is_count: np.ndarray  # bool [n]
    deviation: np.ndarray  # [n] of the noise of channels that are no counts


class Model(NamedTuple):
    """A system as it truly is."""

    drift: Drift
    noise: np.ndarray  # [d] deviation of the state's noise after one bin
    channels: Channels

    @property
    def dims(self) -> int:
        return len(self.noise)


class Recording(NamedTuple):
    """Episodes, each padded at its end to the longest; NaN there and where y is missing."""

    y: np.ndarray  # [E, T, n]
    u: np.ndarray  # [E, T, m]
    lengths: np.ndarray  # int [E]
    z: np.ndarray  # [E, T, d]
    model: Model

    @property
    def is_count(self) -> np.ndarray:
        """Which channels are counts, bool `[n]`."""
        return self.model.channels.is_count


def advance(model: Model, z: np.ndarray, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Moves the states z `[d, ...]` by one bin with the inputs u `[m, ...]`; keeps their dtype."""
    step, kind = 1 / SUBSTEPS, np.float32 if z.dtype == np.float32 else np.float64
    deviation = (model.noise * step**0.5).astype(kind).reshape(-1, *[1] * (z.ndim - 1))
    for _ in range(SUBSTEPS):
        noise = rng.standard_normal(z.shape, kind)
        noise *= deviation
        noise += z
        noise += step * model.drift(z, u)
        z = noise
    return z


def settle(model: Model, count: int, num_inputs: int, rng: np.random.Generator) -> np.ndarray:
    """Draws states `[d, count]` of the stationary distribution, without inputs."""
    z = rng.standard_normal((model.dims, count))
    still = np.zeros((num_inputs, 1))
    for _ in range(SETTLING_BINS):
        z = advance(model, z, still, rng)
    return z


def mean_of(channels: Channels, z: np.ndarray) -> np.ndarray:
    """The expected observation `[n, ...]` in the states z `[d, ...]`."""
    shape = (-1, *[1] * (z.ndim - 1))
    eta = np.tensordot(channels.matrix.astype(z.dtype), z, axes=1)
    eta += channels.offset.astype(z.dtype).reshape(shape)
    if channels.is_count.all():
        return np.exp(eta, out=eta)
    eta[channels.is_count] = np.exp(eta[channels.is_count])
    return eta


def observe(channels: Channels, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws observations of that mean `[n, ...]`."""
    y = np.empty(mean.shape)
    counts = channels.is_count
    y[counts] = rng.poisson(mean[counts])
    deviation = channels.deviation[~counts].reshape(-1, *[1] * (mean.ndim - 1))
    y[~counts] = mean[~counts] + deviation * rng.standard_normal(mean[~counts].shape)
    return y


def simulate(
    model: Model, inputs: Inputs, lengths: Sequence[int], rng: np.random.Generator
) -> Recording:
    """Records episodes of these lengths, in bins."""
    count, steps = len(lengths), max(lengths)
    valid = np.arange(steps) < np.asarray(lengths)[:, None]
    u = np.stack([inputs(rng, steps) for _ in lengths])  # [E, T, m]
    z = settle(model, count, u.shape[-1], rng)
    states = np.empty((steps, model.dims, count))
    for t in range(steps):
        states[t] = z
        z = advance(model, z, u[:, t].T, rng)
    y = observe(model.channels, mean_of(model.channels, states.transpose(1, 2, 0)), rng)
    padding = lambda x: np.where(valid[..., None], x, np.nan)
    return Recording(
        padding(y.transpose(1, 2, 0)),
        padding(u),
        np.asarray(lengths),
        padding(states.transpose(2, 0, 1)),
        model,
    )
