"""Features of a state: a torso under a linear head, and Fourier features to stand before them."""

import jax
import jax.numpy as jnp
from flax import linen as nn


class Encoder(nn.Module):
    """d features of an observation, `[...] -> [..., d]`; the head is linear and called `head`."""

    torso: nn.Module
    """`obs [...] -> [..., D]`, an `MLP` for instance."""
    num_features: int
    """d."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        return nn.Dense(self.num_features, name="head")(self.torso(obs))


class Fourier(nn.Module):
    """Coordinates and waves along each of them, `[..., D] -> [..., D (1 + K)]`.

    cos(k π (x + 1) / 2) for k = 1..K: on -1..1 the k-th has k half waves, and none has a slope at
    either end, like the eigenvectors of an interval. A network on coordinates alone learns what
    varies slowly in space long before what does not (Tancik et al. 2020).
    """

    num_frequencies: int = 16
    """K."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        k = jnp.arange(1, self.num_frequencies + 1, dtype=x.dtype)
        k = k.reshape((1,) * x.ndim + (-1,))
        waves = jnp.cos(jnp.pi / 2 * k * (x[..., None] + 1))
        return jnp.concatenate([x, waves.reshape(*x.shape[:-1], -1)], axis=-1)
