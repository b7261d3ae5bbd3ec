"""First layers for observations that are no vector of numbers near 1.

On top comes the usual torso: `nn.Sequential((Flatten((4, 4)), MLP((64,))))`. `Flatten` and `OneHot`
raise ValueError for observations of another shape or kind.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn


class Flatten(nn.Module):
    """Observations of some shape as vectors: `[..., *shape] -> [..., D]`, float32."""

    shape: tuple[int, ...]
    """Of one observation; `()` for a number, which becomes a vector of one."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = jnp.asarray(x, jnp.float32)
        batch = jnp.ndim(x) - len(self.shape)
        if batch < 0 or x.shape[batch:] != self.shape:
            raise ValueError(
                f"Flatten expects observations of shape {list(self.shape)}, got {list(x.shape)}: "
                "give it the shape of the observation space"
            )
        return x.reshape(*x.shape[:batch], -1)


class OneHot(nn.Module):
    """Integers below `size` as unit vectors: `[...] -> [..., size]`, float32.

    An integer out of range becomes a vector of zeros.
    """

    size: int
    """K, how many different observations there are."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        if not jnp.issubdtype(jnp.result_type(x), jnp.integer):
            raise ValueError(
                f"OneHot expects integers, got {jnp.result_type(x)}: use MLP for real numbers"
            )
        return jax.nn.one_hot(x, self.size)


class UnitScale(nn.Module):
    """Numbers between two bounds as numbers from 0 to 1, float32: grey values, or counts."""

    low: float | tuple
    """The number that becomes 0; nested tuples, broadcast: that of each entry."""
    high: float | tuple
    """The number that becomes 1; likewise."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        low, high = (np.asarray(end, np.float64) for end in (self.low, self.high))
        spread = lambda y: jnp.broadcast_to(jnp.asarray(y, jnp.float32), x.shape)
        return (jnp.asarray(x, jnp.float32) - spread(low)) / spread(high - low)
