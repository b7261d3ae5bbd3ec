"""Dense layers that explore by noise in their weights (Fortunato et al. 2018)."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.numerics import linalg


class NoisyDense(nn.Module):
    """A dense layer with learned noise in every weight: `[..., D] -> [..., features]`.

    The weight between input i and output j is μᵢⱼ + σᵢⱼ εᵢ εⱼ (eq. 10-11): the noise of a matrix
    is the product of two vectors. All rows of a batch share one noise sample, and the noisy matrix
    is formed once. A single example computes xμ + ((x ∘ ε_in) σ) ∘ ε_out instead, so that under
    `vmap` over N keys the N noise samples need two matrix products.

    With a key for "noise", as in `apply(params, x, rngs={"noise": key})`, each call draws one noise
    sample, the same for all leading axes. Without one the layer uses the mean weights μ.
    """

    features: int
    """Width of the output."""
    kernel_init: Callable[..., jax.Array] = linalg.orthogonal_start(1.0)
    """`(key, shape, dtype) -> weights`: initializer of the means μ."""
    initial_scale: float = 0.5
    """σ₀: every σ starts at σ₀ / √D."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        size = x.shape[-1]
        constant_start = nn.initializers.constant(self.initial_scale / math.sqrt(size))
        kernel = self.param("kernel", self.kernel_init, (size, self.features), jnp.float32)
        bias = self.param("bias", nn.initializers.zeros, (self.features,), jnp.float32)
        kernel_scale = self.param(
            "kernel_scale", constant_start, (size, self.features), jnp.float32
        )
        bias_scale = self.param("bias_scale", constant_start, (self.features,), jnp.float32)
        if not self.has_rng("noise"):
            return x @ kernel + align_axes(bias, x)
        noise = factor(self.make_rng("noise"), size + self.features)
        incoming, outgoing = noise[:size], noise[size:]
        noisy_bias = align_axes(bias + bias_scale * outgoing, x)
        if x.ndim > 1:
            return x @ (kernel + kernel_scale * jnp.outer(incoming, outgoing)) + noisy_bias
        return x @ kernel + ((x * incoming) @ kernel_scale) * outgoing + noisy_bias


def factor(key: jax.Array, size: int) -> jax.Array:
    """`[size]` f(ε) = sgn(ε) √|ε| of normal ε, whose products have variance (E|ε|)² = 2 / π."""
    normal = jax.random.normal(key, (size,))
    return jnp.sign(normal) * jnp.sqrt(jnp.abs(normal))


def align_axes(vector: jax.Array, x: jax.Array) -> jax.Array:
    """`vector [D]` with as many axes as `x`."""
    return vector.reshape((1,) * (x.ndim - 1) + vector.shape)
