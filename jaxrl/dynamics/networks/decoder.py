"""Decoders: the distribution of observations given a latent state.

Letters: n channels, d latent dimensions. Written for one state `[d]`; leading axes are carried
along.
"""

import math
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl import checks
from jaxrl.dynamics.networks.recognition import SMALLEST
from jaxrl.networks.mlp import MLP
from jaxrl.numerics.linalg import matmul_of_few_terms

Mapping = Literal["identity", "linear", "loglinear", "mlp"]
Likelihood = Literal["gaussian", "poisson"]

LOG_RATE_LIMIT = 15.0
"""Largest logarithm of a rate, so that gradients of bad parameters do not overflow."""


class Decoder(nn.Module):
    """Mean and variance of each channel, given the latent state.

    The mean is z, C z + b, bin_width exp(C z + b), or dense layers. Gaussian noise has a variance
    per channel that is learned; that of Poisson counts is the mean. Parameters `matrix` C `[n, d]`
    and `offset` b `[n]` of linear and loglinear, `noise` `[n]` of gaussian.

    Raises ValueError for unknown names, for a mean that Poisson counts cannot have, and for
    identity with n other than d.
    """

    latent: int
    """d."""
    channels: int
    """n."""
    mapping: Mapping = "linear"
    """identity, linear, loglinear, mlp."""
    likelihood: Likelihood = "gaussian"
    """gaussian; poisson, which needs loglinear, or mlp: there it makes the mean positive."""
    hidden: tuple[int, ...] = (16,)
    """Width of each layer of mlp."""
    bin_width: float = 1.0
    """Time over which a loglinear rate is counted."""
    variance: float = 0.3
    """Of the Gaussian noise, at the start."""

    def setup(self):
        check_decoder(self)
        if self.likelihood == "gaussian":
            start = nn.initializers.constant(raw_variance(self.variance))
            self.noise = self.param("noise", start, (self.channels,))
        if self.mapping == "mlp":
            self.layers = nn.Sequential((MLP(self.hidden), nn.Dense(self.channels)))
        elif self.mapping != "identity":
            start = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform", 1, 0)
            self.matrix = self.param("matrix", start, (self.channels, self.latent))
            self.offset = self.param("offset", nn.initializers.zeros, (self.channels,))

    def __call__(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`(mean [..., n], variance [..., n])` of the observation given z `[..., d]`."""
        mean = self.mean(z)
        if self.likelihood == "poisson":
            return mean, mean
        return mean, jnp.broadcast_to(self.noise_variance(), mean.shape)

    def log_prob(self, z: jax.Array, y: jax.Array, observed: jax.Array | None = None) -> jax.Array:
        """log p(y | z), summed over channels: `[...]` from z `[..., d]` and y `[..., n]`.

        Channels that are not `observed`, bool `[..., n]`, do not count; there y is any finite
        number, for Poisson counts at least 0.
        """
        mean = self.mean(z)
        if self.likelihood == "poisson":
            return poisson_log_prob(y, mean, observed)
        return gaussian_log_prob(y, mean, align_last_axis(self.noise_variance(), mean), observed)

    def mean(self, z: jax.Array) -> jax.Array:
        """The mean observation, `[..., n]`."""
        if self.mapping == "identity":
            return z
        if self.mapping == "mlp":
            out = self.layers(z)
            return nn.softplus(out) + SMALLEST if self.likelihood == "poisson" else out
        linear = product(z, self.matrix) + align_last_axis(self.offset, z)
        if self.mapping == "linear":
            return linear
        return self.bin_width * jnp.exp(jnp.minimum(linear, LOG_RATE_LIMIT))

    def noise_variance(self) -> jax.Array:
        """Variance of the Gaussian noise, `[n]`."""
        return nn.softplus(self.noise) + SMALLEST


def product(z: jax.Array, matrix: jax.Array) -> jax.Array:
    """C z `[..., n]` of states z `[..., d]` and C `[n, d]`, as precisely as networks compute."""
    return matmul_of_few_terms(z, matrix.T, lambda a, b: a @ b)


def align_last_axis(x: jax.Array, other: jax.Array) -> jax.Array:
    """x `[n]` with as many leading axes of length 1 as make it fit the rank of `other`."""
    return x.reshape((1,) * (other.ndim - 1) + (-1,))


def gaussian_log_prob(
    y: jax.Array, mean: jax.Array, variance: jax.Array, observed: jax.Array | None = None
) -> jax.Array:
    """Σ over the last axis of log N(y; mean, variance), where `observed`; None: everywhere."""
    error = _mask_missing(y - mean, observed)
    terms = jnp.log(2 * jnp.pi * variance) + error**2 / variance
    return -0.5 * jnp.sum(_mask_missing(terms, observed), axis=-1)


def poisson_log_prob(y: jax.Array, rate: jax.Array, observed: jax.Array | None = None) -> jax.Array:
    """Σ over the last axis of y log r - r - log y!, where `observed`; None: everywhere."""
    y = _mask_missing(y, observed)
    terms = y * jnp.log(rate + 1e-8) - rate - jax.lax.lgamma(y + 1)
    return jnp.sum(_mask_missing(terms, observed), axis=-1)


def _mask_missing(terms: jax.Array, observed: jax.Array | None) -> jax.Array:
    """0 where missing: of terms, and before of what is too large for derivatives of these."""
    return terms if observed is None else jnp.where(observed, terms, 0.0)


def raw_variance(variance: float) -> float:
    """The parameter whose softplus, plus the smallest variance, is `variance`."""
    checks.number("variance", variance, above=SMALLEST)
    target = variance - SMALLEST
    return target + math.log(-math.expm1(-target))  # log (exp target - 1), which may overflow


def check_decoder(decoder: Decoder) -> None:
    """Raises ValueError unless the parts of a decoder fit together."""
    for value, kind in ((decoder.mapping, Mapping), (decoder.likelihood, Likelihood)):
        if value not in get_args(kind):
            raise ValueError(f"{value!r} is unknown: use {', '.join(get_args(kind))}")
    if decoder.mapping == "identity" and decoder.channels != decoder.latent:
        raise ValueError(
            f"identity shows {decoder.latent} latent dimensions, not {decoder.channels} channels: "
            "choose the mapping linear"
        )
    if decoder.likelihood == "poisson" and decoder.mapping in ("identity", "linear"):
        raise ValueError(
            f"Poisson counts cannot have the mean of a {decoder.mapping} mapping, which may be "
            "negative: choose loglinear or mlp"
        )
