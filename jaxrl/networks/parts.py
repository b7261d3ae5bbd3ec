"""Observations of several parts, joined to one vector: each through layers of its own."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn


class Parts(nn.Module):
    """Vectors `[..., F D]` of F frames, each of parts: `[..., F D] -> [..., D']`, float32.

    A part has its shape again in its layers, with the frames beside each other along the last axis,
    the oldest first. What the layers give is joined in the order of the parts.
    """

    shapes: tuple[tuple[int, ...], ...]
    """Of each part in one frame, of which D is the sum of sizes; none is `()`."""
    layers: tuple[nn.Module | None, ...]
    """For each part `[..., *shape] -> [..., K]`; None: a vector that stays as it is."""
    frames: int = 1
    """F."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        sizes = [math.prod(shape) for shape in self.shapes]
        if x.shape[-1] != self.frames * sum(sizes):
            raise ValueError(
                f"Parts expects vectors of {self.frames} times {sum(sizes)}, got {list(x.shape)}"
            )
        batch = x.shape[:-1]
        frames = jnp.asarray(x, jnp.float32).reshape(*batch, self.frames, -1)
        pieces = jnp.split(frames, np.cumsum(sizes)[:-1], axis=-1)
        features = []
        for piece, shape, layer in zip(pieces, self.shapes, self.layers, strict=True):
            piece = piece.reshape(*batch, self.frames, *shape)
            piece = jnp.moveaxis(piece, len(batch), -2)  # [..., *shape[:-1], F, C]
            piece = piece.reshape(*batch, *shape[:-1], self.frames * shape[-1])
            features.append(piece if layer is None else layer(piece))
        return jnp.concatenate(features, axis=-1)
