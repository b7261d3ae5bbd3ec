"""What a network sees of a position in open space: a picture of the maze and the walker.

h rows, w columns, C colours.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from envs.grid.layouts import Layout
from envs.grid.space import continuous, continuous_frames
from envs.grid.space.continuous_frames import Colours

PARTS = 4
"""Rows and columns of places in each tile over which pictures are averaged."""


class FrameInput(nn.Module):
    """Coordinates `[..., 2]` to pictures `[..., h, w, C]`, less the mean picture.

    It also takes the pictures themselves, as `ContinuousMaze` shows them. What all pictures share
    would drown what tells them apart. It has no parameters.
    """

    layout: Layout
    tile: int
    """Pixels along a tile."""
    colours: Colours

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        height, width = self.layout.height, self.layout.width
        free, tile, colours = self.layout.free, self.tile, self.colours
        if x.shape[-1] == 2:  # pictures have one or three colours
            places = continuous.positions(x, height, width)
            x = continuous_frames.frames(jnp.asarray(free), places, tile, colours, jnp)
        mean = mean_frame(self.layout, tile, colours)
        return x - mean.reshape((1,) * (x.ndim - 3) + mean.shape)


def mean_frame(layout: Layout, tile: int, colours: Colours) -> np.ndarray:
    """The mean of pictures with the walker anywhere, float32 `[h, w, C]`."""
    places = (continuous.fine_layout(layout, PARTS).cells + 0.5).astype(np.float32) / PARTS
    shape = continuous_frames.frame_shape(layout.height, layout.width, tile, colours)
    total = np.zeros(shape)
    for group in np.array_split(places, -(-len(places) // 500)):
        total += continuous_frames.frames(layout.free, group, tile, colours).sum(axis=0)
    return (total / len(places)).astype(np.float32)
