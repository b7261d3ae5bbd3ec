"""What a state-space model expects next, averaged over particles that move with its noise.

The path of the mean would be wrong where the field is curved or the belief wide: an oscillator's
phase spreads, and with it the average of what is observed falls back to the middle.

Letters: H steps ahead, M particles, n channels, d dimensions of the state, m inputs, Q levels, B
beliefs.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space.filter import clip_state
from jaxrl.dynamics.state_space.model import Params, StateSpace, step
from jaxrl.dynamics.state_space.quantiles import quantiles
from jaxrl.numerics.linalg import matmul

BATCH = 32
"""Beliefs whose particles are in memory at once."""


class Forecast(NamedTuple):
    """Forecasts of observations now and up to H steps later."""

    mean: jax.Array  # [B, H + 1, n]
    quantiles: jax.Array  # [B, H + 1, Q, n]


class Moments(NamedTuple):
    """Means and variances of observations now and up to H steps later."""

    mean: jax.Array  # [B, H + 1, n]
    variance: jax.Array  # [B, H + 1, n], that of channels included


def particles(
    model: StateSpace, params: Params, belief: Belief, u: jax.Array, count: int, key: jax.Array
) -> jax.Array:
    """Draws M = `count` paths `[H + 1, M, d]` from a belief, with the inputs `u` `[H, m]`.

    Consumes `key`.
    """
    return _paths_from_belief(model, params, belief, u, *_noise(model, count, len(u), key))


def centred_particles(
    model: StateSpace, params: Params, belief: Belief, u: jax.Array, count: int, key: jax.Array
) -> jax.Array:
    """Draws the same, but from noise whose mean over the particles is 0 wherever it is added.

    Where all laws are linear the mean of the particles is then exact, and elsewhere nearer to that
    of infinitely many. For expectations: paths depend on each other a little. Consumes `key`.
    """
    start, noise = _noise(model, count, len(u), key)
    # less one particle in the variance, as the mean is one that was estimated
    larger = (count / max(count - 1, 1)) ** 0.5
    centred = lambda x: larger * (x - jnp.mean(x, axis=-2, keepdims=True))
    return _paths_from_belief(model, params, belief, u, centred(start), centred(noise))


def _noise(
    model: StateSpace, count: int, steps: int, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Standard normal noise of the start `[M, d]` and of the steps `[H, M, d]`; consumes `key`."""
    start_key, path_key = jax.random.split(key)
    start = jax.random.normal(start_key, (count, model.dims))
    return start, jax.random.normal(path_key, (steps, count, model.dims))


def _paths_from_belief(
    model: StateSpace,
    params: Params,
    belief: Belief,
    u: jax.Array,
    start: jax.Array,
    noise: jax.Array,
) -> jax.Array:
    """Paths `[H + 1, M, d]` of standard normal noise, of the start `[M, d]` and `[H, M, d]`."""
    start = belief.mean[None] + matmul(start, jnp.linalg.cholesky(belief.covariance).T)
    return _paths_with(model, params, start, u, noise)


def paths(
    model: StateSpace, params: Params, start: jax.Array, u: jax.Array, key: jax.Array
) -> jax.Array:
    """Draws paths `[H + 1, M, d]` from the states `start` `[M, d]`, with the inputs `u` `[H, m]`.

    Consumes `key`.
    """
    return _paths_with(model, params, start, u, jax.random.normal(key, (len(u), *start.shape)))


def _paths_with(
    model: StateSpace, params: Params, start: jax.Array, u: jax.Array, noise: jax.Array
) -> jax.Array:
    """Paths `[H + 1, M, d]` with this standard normal noise `[H, M, d]`."""
    deviation = jnp.exp(params.log_process)[None]

    def advance(z: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        u, noise = now
        after = jax.vmap(lambda z: step(model, params, z, u))(z) + deviation * noise
        after = clip_state(after)
        return after, after

    return jnp.concatenate([start[None], jax.lax.scan(advance, start, (u, noise))[1]])


def forecast(
    model: StateSpace,
    params: Params,
    beliefs: Belief,
    u: jax.Array,
    count: int,
    key: jax.Array,
    levels: tuple[float, ...],
) -> Forecast:
    """Means and quantiles after B beliefs with the inputs `u` `[B, H, m]`; consumes `key`.

    From M = `count` particles of each; `levels` of quantiles are between 0 and 1.
    """
    path_key, draw_key = jax.random.split(key)
    draw_particles = lambda *each: centred_particles(
        model, params, each[0], each[1], count, each[2]
    )
    states = jax.vmap(draw_particles)(beliefs, u, jax.random.split(path_key, len(u)))
    expected = channels.mean(model.is_count, params, states)  # [B, H + 1, M, n]
    level_array = jnp.asarray(levels, expected.dtype)
    quantile_values = quantiles(model.is_count, params.log_noise, expected, level_array, draw_key)
    return Forecast(jnp.mean(expected, axis=2), jnp.moveaxis(quantile_values, 0, 2))


def moments(
    model: StateSpace, params: Params, beliefs: Belief, u: jax.Array, count: int, key: jax.Array
) -> Moments:
    """Means and variances after B beliefs with the inputs `u` `[B, H, m]`; consumes `key`."""

    def belief_moments(belief: Belief, u: jax.Array, key: jax.Array) -> Moments:
        states = centred_particles(model, params, belief, u, count, key)
        expected = channels.mean(model.is_count, params, states)  # [H + 1, M, n]
        mean, spread = jnp.mean(expected, axis=1), jnp.var(expected, axis=1)
        channel_variance = jnp.where(
            model.is_count[None], mean, jnp.exp(2 * params.log_noise)[None]
        )
        return Moments(mean, spread + channel_variance)

    arguments = (beliefs, u, jax.random.split(key, len(u)))
    return jax.lax.map(lambda x: belief_moments(*x), arguments, batch_size=BATCH)
