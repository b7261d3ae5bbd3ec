"""Observations of a latent state: n channels with independent noise."""

import math

import jax
import jax.numpy as jnp

from envs.arguments import check_name
from envs.vector_field import encoders
from envs.vector_field.encoders import Layers

OBSERVATIONS: dict[str, tuple[int, ...] | None] = {
    "identity": None,
    "linear": (),
    "loglinear": (),
    "mlp": (64, 64),
}
"""Hidden layers of each; None if the state itself is observed."""
NOISES = ("gaussian", "poisson", "none")
TYPICAL_RATE = 5.0  # events per unit of time, of loglinear: median over channels and states


def check(observation: str, noise: str, channels: int, dims: int) -> None:
    """Raises ValueError for unknown names and incompatible arguments."""
    check_name("observation", observation, OBSERVATIONS)
    check_name("noise", noise, NOISES)
    if channels < 1:
        raise ValueError(f"channels is {channels}; expected at least 1")
    if observation == "identity" and channels != dims:
        raise ValueError(f"channels is {channels}, but the observation 'identity' has {dims}")
    if noise == "poisson" and observation != "loglinear":
        raise ValueError(
            f"noise 'poisson' needs rates above 0, which the observation {observation!r} does not "
            "give; choose observation 'loglinear'"
        )


def weights(key: jax.Array, observation: str, channels: int, dims: int) -> Layers:
    """Weights from `dims` d to `channels` n; none for identity.

    C and b of the linear ones are U(±1/√d); for loglinear b has the logarithm of a typical rate
    added, so that rates are some 1 to 30 where |z| is about 1, and in the plane below 1000 within
    ±3; in more dimensions they may be higher there.
    """
    hidden = OBSERVATIONS[observation]
    if hidden is None:
        return ()
    network = encoders.layers(key, (dims, *hidden, channels))
    if observation != "loglinear":
        return network
    return (network[0]._replace(bias=network[0].bias + math.log(TYPICAL_RATE)),)


def emission(
    observation: str,
    noise: str,
    network: Layers,
    z: jax.Array,
    noise_variance: jax.Array | float,
    bin_width: jax.Array | float,
) -> tuple[jax.Array, jax.Array]:
    """Mean and variance, each `[..., n]`, of the observation of `z` `[..., d]`.

    The mean is z, C z + b, exp(C z + b) or a network's output; under Poisson noise it is the count
    expected in a bin, rate times `bin_width`, and so is the variance. Else the variance is
    `noise_variance`, and 0 without noise.
    """
    mean = encoders.apply(network, z)
    mean = jnp.exp(mean) if observation == "loglinear" else mean
    if noise == "poisson":
        mean = mean * bin_width
        return mean, mean
    return mean, jnp.full_like(mean, noise_variance if noise == "gaussian" else 0.0)


def draw(key: jax.Array, noise: str, mean: jax.Array, variance: jax.Array) -> jax.Array:
    """One observation, float32 `[n]`, given its mean and variance."""
    if noise == "gaussian":
        return mean + jnp.sqrt(variance) * jax.random.normal(key, mean.shape)
    if noise == "poisson":
        # counts have no gradient, and the loops that draw them cannot be differentiated
        rate = jax.lax.stop_gradient(mean)
        return jax.random.poisson(key, rate).astype(mean.dtype)
    return mean
