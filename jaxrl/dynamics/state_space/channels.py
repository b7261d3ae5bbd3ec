"""What the channels of a state-space model say of its state, by counts and by Gaussian numbers.

A channel depends on the state through η = C z + b alone, so that likelihood, slope and curvature in
η are all that a filter needs of it. Letters: n channels, d dimensions of the state.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.state_space.model import Params
from jaxrl.numerics.linalg import matmul

LEAST_COUNT = 0.3
"""Stands for a count of 0, whose own best rate has no logarithm."""
LOG_RATES = (-12.0, 8.0)
"""Logarithms of rates of counts are kept between these, so that bad parameters stay finite.

Beyond them the log-likelihood goes on as a straight line, which leads back."""


class Response(NamedTuple):
    """The likelihood of each channel, `[n]`, at one state; 0 where nothing was observed."""

    log_likelihood: jax.Array  # log p(y | η)
    slope: jax.Array  # d log p / dη
    curvature: jax.Array  # -d² log p / dη², never negative


def response(
    is_count: jax.Array, params: Params, z: jax.Array, y: jax.Array, observed: jax.Array
) -> Response:
    """How well the state `z` `[d]` explains `y` `[n]` where it was `observed`, bool `[n]`."""
    y = jnp.where(observed, y, 0.0)  # squares of large numbers would spoil derivatives
    eta = matmul(params.matrix, z) + params.offset
    log_rate = jnp.clip(eta, *LOG_RATES)
    rate = jnp.exp(log_rate)
    beyond = jnp.where(eta == log_rate, 0.0, eta - log_rate)
    precision = jnp.exp(-2 * params.log_noise)
    error = y - eta
    count = y * eta - rate * (1 + beyond) - jax.lax.lgamma(jnp.maximum(y, 0.0) + 1)
    gaussian = -0.5 * (precision * error**2 + jnp.log(2 * jnp.pi)) - params.log_noise
    parts = (
        jnp.where(is_count, count, gaussian),
        jnp.where(is_count, y - rate, precision * error),
        jnp.where(is_count, rate, precision),
    )
    return Response(*(jnp.where(observed, part, 0.0) for part in parts))


def chord(is_count: jax.Array, response: Response, y: jax.Array) -> jax.Array:
    """The mean curvature `[n]` from η to where the channel alone would have it, for a first step.

    That of a count y at the rate λ is the logarithmic mean (λ - y) / (log λ - log y). From a rate
    far below the count, the curvature there, λ, would send Newton's method far beyond the mode.
    """
    is_seen = is_count & (response.curvature > 0)
    rate, count = jnp.where(is_seen, response.curvature, 1.0), jnp.maximum(y, LEAST_COUNT)
    ratio = jnp.log(rate / count)
    is_near = jnp.abs(ratio) < 1e-3  # where the quotient would be one of rounding errors
    mean = jnp.where(is_near, rate, (rate - count) / jnp.where(is_near, 1.0, ratio))
    return jnp.where(is_seen, mean, response.curvature)


def mean(is_count: jax.Array, params: Params, z: jax.Array) -> jax.Array:
    """The expected observation `[..., n]` at the states `z` `[..., d]`."""
    eta = matmul(z, params.matrix.T) + params.offset.reshape((1,) * (z.ndim - 1) + (-1,))
    counted = is_count.reshape((1,) * (z.ndim - 1) + (-1,))
    return jnp.where(counted, jnp.exp(jnp.clip(eta, *LOG_RATES)), eta)


def draw(is_count: jax.Array, params: Params, z: jax.Array, key: jax.Array) -> jax.Array:
    """Observations `[..., n]` at the states `z` `[..., d]`; consumes `key`."""
    count_key, noise_key = jax.random.split(key)
    expected = mean(is_count, params, z)
    noise = jnp.exp(params.log_noise).reshape((1,) * (z.ndim - 1) + (-1,))
    numbers = expected + noise * jax.random.normal(noise_key, expected.shape)
    counts = jax.random.poisson(count_key, jnp.maximum(expected, 0.0)).astype(expected.dtype)
    return jnp.where(is_count.reshape((1,) * (z.ndim - 1) + (-1,)), counts, numbers)
