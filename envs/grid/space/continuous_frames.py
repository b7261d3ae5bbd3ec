"""Pictures of a walker between walls: what a camera above a maze sees, as arrays of numbers.

H x W tiles, each of `tile` x `tile` pixels: h = H tile, w = W tile. C is 3 for colour, 1 for grey.
"""

from typing import Any, Literal

import numpy as np

from envs.grid.observations import AGENT, FREE, WALL

Colours = Literal["rgb", "grey"]
RADIUS = 0.5
"""Of the walker, a disc, in tiles."""
DARK = 0.0
"""The walker's grey; walls are between it and the floor."""


def frame_shape(height: int, width: int, tile: int, colours: Colours) -> tuple[int, int, int]:
    """The shape of a picture of so many tiles."""
    return height * tile, width * tile, 1 if colours == "grey" else 3


def ground(free: Any, tile: int, colours: Colours, xp: Any = np) -> Any:
    """The maze without a walker, float32 `[h, w, C]`; `free` is bool `[H, W]`.

    `xp`, here and below, is NumPy or jax.numpy.
    """
    channels = slice(0, 1) if colours == "grey" else slice(None)
    floor, wall = (xp.asarray(colour, xp.float32)[channels] for colour in (FREE, WALL))
    tiles = xp.where(free[:, :, None], floor, wall)
    return xp.repeat(xp.repeat(tiles, tile, axis=0), tile, axis=1)


def frames(free: Any, positions: Any, tile: int, colours: Colours, xp: Any = np) -> Any:
    """Pictures with a walker at each of the positions `[..., 2]`, float32 `[..., h, w, C]`.

    The walker's edge is smooth, a pixel wide, so that moves of less than a pixel are seen.
    """
    positions = xp.asarray(positions, xp.float32)
    background = ground(free, tile, colours, xp)
    rows, cols, channels = background.shape
    pixels = [(np.arange(n, dtype=np.float32) + 0.5) / tile for n in (rows, cols)]
    down, right = (
        (positions[..., axis, None] - middle.reshape((1,) * (positions.ndim - 1) + (-1,))) ** 2
        for axis, middle in enumerate(pixels)
    )
    distance = xp.sqrt(down[..., :, None] + right[..., None, :])
    cover = xp.clip(0.5 + (RADIUS - distance) * tile, 0.0, 1.0)[..., None]  # of each pixel
    walker = xp.asarray([DARK] if colours == "grey" else AGENT, xp.float32)
    one = (1,) * (positions.ndim - 1)
    picture = cover * walker.reshape(*one, 1, 1, channels)
    return (1 - cover) * background.reshape(one + background.shape) + picture
