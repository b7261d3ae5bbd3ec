"""Pictures cut into tiles, so that what does not change from one to the next is stored once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from envs import gif

SIDE = 20
"""Pixels of a tile, in height and width."""
COLOURS, SAMPLES = 128, 24
"""Colours of all pictures, and the pictures that they are taken from."""


class Tiling(NamedTuple):
    """P pictures of one size; T tiles; K colours."""

    pictures: np.ndarray  # int32 [P, tiles across × down]: the tile at each place, row by row
    tiles: np.ndarray  # uint8 [T, SIDE²]: indices of colours
    colours: np.ndarray  # uint8 [K, 3]
    size: tuple[int, int]  # width and height, pixels


def tile_pictures(pictures: Sequence[np.ndarray]) -> Tiling:
    """Pictures uint8 `[H, W, 3]` as tiles. Raises ValueError for none, and for different sizes."""
    sizes = {picture.shape for picture in pictures}
    if len(sizes) != 1:
        raise ValueError(f"got pictures of {len(sizes)} sizes; expected one or more, all alike")
    height, width = sizes.pop()[:2]
    sample_indices = sorted({round(i) for i in np.linspace(0, len(pictures) - 1, SAMPLES)})
    colours = gif.commonest_colours([pictures[i] for i in sample_indices], COLOURS)
    indexed = gif.quantizer(colours)
    numbers_by_tile: dict[bytes, int] = {}
    places = [_cut(np.asarray(indexed(Image.fromarray(x))), numbers_by_tile) for x in pictures]
    tiles = np.frombuffer(b"".join(numbers_by_tile), np.uint8).reshape(
        len(numbers_by_tile), SIDE * SIDE
    )
    return Tiling(np.stack(places), tiles, colours, (width, height))


def _cut(picture: np.ndarray, numbers_by_tile: dict[bytes, int]) -> np.ndarray:
    """The numbers of the tiles of a picture `[H, W]`; new ones are added."""
    beyond = [(0, -size % SIDE) for size in picture.shape]
    whole = np.pad(picture, beyond, mode="edge")
    rows, cols = (size // SIDE for size in whole.shape)
    blocks = whole.reshape(rows, SIDE, cols, SIDE).swapaxes(1, 2).reshape(rows * cols, -1)
    return np.array(
        [numbers_by_tile.setdefault(block.tobytes(), len(numbers_by_tile)) for block in blocks],
        np.int32,
    )
