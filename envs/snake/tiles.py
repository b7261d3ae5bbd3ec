"""The cells of a picture of Snake: checkerboard, apple, body and head as tiles of pixels.

The body is one smooth band. For the sides by which it enters and leaves a cell there is a tile of
distances to its middle line, and a tile of how far along it a pixel is; width and colour follow.
Distances give smooth edges at any size, without drawing anything larger first.

Tiles are uint8 `[c, c, 3]`, c × c pixels. Lengths are in cells, places (row, col) from the cell's
centre.
"""

from functools import lru_cache

import numpy as np

from envs.snake.bitboard import Board
from envs.snake.rules import STEPS

CHECKERS = ("#f1ede3", "#e8e3d6")
APPLE, SHINE, STALK, LEAF = "#d4301f", "#f29b8f", "#5f3d20", "#3f8f3c"
WHITE, INK = "#ffffff", "#101820"
RADIUS, HEAD, EYE, PUPIL = 0.37, 0.44, 0.13, 0.07
TAPER, TIP = 2.5, 0.35  # the band narrows over its last cells to this share of its width
FADE = 10  # cells over which, at least, the colour goes from the head's to the tail's
NO_SIDE = 4  # where the band enters the tail's cell and leaves the head's

Colours = tuple[str, str, str]  # of head, middle and tail


def rgb(colour: str) -> np.ndarray:
    """Float32 `[3]` of "#rrggbb"."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], np.float32)


@lru_cache(maxsize=8)
def checkerboard(board: Board, size: int) -> np.ndarray:
    """The empty board, uint8 `[rows, c, cols, c, 3]`."""
    odd = np.indices((board.rows, board.cols)).sum(0) % 2
    colours = np.stack([rgb(colour) for colour in CHECKERS]).astype(np.uint8)[odd]
    return colours[:, None, :, None].repeat(size, axis=1).repeat(size, axis=3)


def body(tiles: np.ndarray, path: np.ndarray, colours: Colours, levels: int) -> np.ndarray:
    """The band over the tiles `[L, c, c, 3]` of the cells `path` `[L, 2]`, tail first."""
    headings = np.array([STEPS.index(tuple(step)) for step in np.diff(path, axis=0).tolist()], int)
    entry, leave = np.append(NO_SIDE, headings ^ 2), np.append(headings, NO_SIDE)
    distances, progress = band(tiles.shape[1])
    place = np.arange(len(path), dtype=np.float32)[:, None, None] + progress[entry, leave]
    radius = RADIUS * np.minimum(1, TIP + (1 - TIP) * place / TAPER)
    faded = (len(path) - place) / max(len(path), FADE)  # 0 at the head
    level = (levels * faded).astype(int).clip(0, levels - 1)
    return blend(tiles, radius - distances[entry, leave], gradient(colours, levels)[level])


@lru_cache(maxsize=8)
def band(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Distance to the middle line and progress along it, 0 to 1; both `[5, 5, c, c]`.

    The axes are the sides of entry and of leaving, as headings or NO_SIDE; the middle line is a
    straight one, a quarter of a circle, or ends in the centre.
    """
    point = points(size)
    distances, progress = np.zeros((2, 5, 5, size, size), np.float32)
    side = np.array([*STEPS, (0, 0)], np.float32)
    for a, b in np.ndindex(5, 5):
        if NO_SIDE not in (a, b) and (a ^ b) & 1:
            corner = (side[a] + side[b]) / 2
            ahead, behind = (corner - point) @ side[a], (corner - point) @ side[b]
            distances[a, b] = np.abs(np.hypot(ahead, behind) - 0.5)
            progress[a, b] = np.arctan2(ahead, behind).clip(0, np.pi / 2) / (np.pi / 2)
        else:
            line = (side[b] - side[a]) / (1 if NO_SIDE in (a, b) else 2)  # unit vector
            along = point @ line
            on_line = along.clip(0 if a == NO_SIDE else -1, 0 if b == NO_SIDE else 1)
            distances[a, b] = np.linalg.norm(point - on_line[..., None] * line, axis=-1)
            progress[a, b] = 0.5 + along
    return distances, progress


@lru_cache(maxsize=8)
def gradient(colours: Colours, levels: int) -> np.ndarray:
    """Float32 `[levels, 3]` from the head's colour to the tail's."""
    stops = np.stack([rgb(colour) for colour in colours])
    x = np.linspace(0, 1, levels)
    channels = [np.interp(x, [0, 0.5, 1], channel) for channel in stops.T]
    return np.stack(channels, -1).astype(np.float32)


def head(tile: np.ndarray, heading: int, colours: Colours, alive: bool) -> np.ndarray:
    """A head whose eyes look where it is going; crosses for eyes once it is dead."""
    tile = disc(tile, (0, 0), HEAD, colours[0])
    ahead, aside = np.array(STEPS[heading]), np.array(STEPS[(heading + 1) % 4])
    for eye in (0.1 * ahead + 0.2 * aside, 0.1 * ahead - 0.2 * aside):
        if alive:
            tile = disc(tile, eye, EYE, WHITE)
            tile = disc(tile, eye + 0.045 * ahead, PUPIL, INK)
        else:
            for slope in ((1, 1), (1, -1)):
                arm = 0.1 * np.array(slope)
                tile = stroke(tile, eye - arm, eye + arm, 0.035, WHITE)
    return tile


def apple(tile: np.ndarray) -> np.ndarray:
    """An apple with a stalk and a leaf."""
    tile = disc(tile, (0.07, -0.085), 0.27, APPLE)
    tile = disc(tile, (0.07, 0.085), 0.27, APPLE)
    tile = disc(tile, (-0.02, -0.17), 0.07, SHINE)
    tile = stroke(tile, (-0.12, 0), (-0.32, 0.05), 0.035, STALK)
    point = points(tile.shape[0])
    lens = [0.2 - np.linalg.norm(point - c, axis=-1) for c in ((-0.38, 0.17), (-0.14, 0.21))]
    return blend(tile, np.minimum(*lens), rgb(LEAF))


def disc(tile: np.ndarray, centre, radius: float, colour: str) -> np.ndarray:
    """A filled circle."""
    return stroke(tile, centre, centre, radius, colour)


def stroke(tile: np.ndarray, start, end, radius: float, colour: str) -> np.ndarray:
    """A line with round ends."""
    start, along = np.array(start), np.subtract(end, start)
    point = points(tile.shape[0]) - start
    share = (point @ along / max(along @ along, 1e-9)).clip(0, 1)
    distance = np.linalg.norm(point - share[..., None] * along, axis=-1)
    return blend(tile, radius - distance, rgb(colour))


def blend(tiles: np.ndarray, depth: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Float32 `colours` where the depth below a surface is positive, mixed on the edge of it."""
    cover = (depth * tiles.shape[-2] + 0.5).clip(0, 1)[..., None].astype(np.float32)
    return np.rint(tiles + cover * (colours - tiles)).astype(np.uint8)


@lru_cache(maxsize=8)
def points(size: int) -> np.ndarray:
    """The (row, col) of each pixel of a cell, `[c, c, 2]`."""
    offset = (np.arange(size, dtype=np.float32) + 0.5) / size - 0.5
    return np.stack(np.meshgrid(offset, offset, indexing="ij"), -1)
