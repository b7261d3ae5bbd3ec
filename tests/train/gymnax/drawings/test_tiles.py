"""Pictures cut into tiles, and put together again tile by tile, as the page does."""

import numpy as np
import pytest

from train.gymnax.drawings import tiles

COLOURS = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0], [10, 20, 30]], np.uint8)


def pictures(count: int, height: int, width: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [COLOURS[random.integers(0, 4, (height, width))] for _ in range(count)]


@pytest.mark.parametrize("size", [(40, 60), (33, 47), (7, 5)])
def test_pictures_of_few_colours_come_back_as_they_were(size):
    originals = pictures(3, *size)
    tiling = tiles.tile_pictures(originals)
    across = -(-size[1] // tiles.SIDE)
    for numbers, picture in zip(tiling.pictures, originals, strict=True):
        for place, number in enumerate(numbers):
            row, col = (tiles.SIDE * x for x in divmod(place, across))
            part = picture[row : row + tiles.SIDE, col : col + tiles.SIDE]
            tile = tiling.colours[tiling.tiles[number].reshape(tiles.SIDE, tiles.SIDE)]
            np.testing.assert_array_equal(tile[: part.shape[0], : part.shape[1]], part)
    assert tiling.size == size[::-1]


def test_what_stays_is_stored_once():
    still = pictures(1, 60, 60)[0]
    moved = still.copy()
    moved[:5, :5] = 255 - moved[:5, :5]
    tiling = tiles.tile_pictures([still, still, moved])
    assert len(tiling.tiles) == 9 + 1
    np.testing.assert_array_equal(tiling.pictures[0], tiling.pictures[1])
    assert (tiling.pictures[0] != tiling.pictures[2]).sum() == 1


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match="2 sizes"):
        tiles.tile_pictures([np.zeros((4, 4, 3), np.uint8), np.zeros((4, 5, 3), np.uint8)])
    with pytest.raises(ValueError, match="0 sizes"):
        tiles.tile_pictures([])
