"""The cells of a picture of Snake: checkerboard, apple, block, body and head as tiles of pixels.

The body is one smooth band. For each pair of sides by which it enters and leaves a cell, `band`
holds the distance of every pixel from the middle line of the band and its progress along it, which
give width and colour. Distances make edges smooth at any size, without supersampling.

Tiles are uint8 `[c, c, 3]`, c × c pixels. Lengths are in cells, points (row, col) from the cell's
centre.
"""

from functools import lru_cache

import numpy as np

from envs.snake.bitboard import Board
from envs.snake.rules import STEPS

CHECKERS = ("#f1ede3", "#e8e3d6")
APPLE, SHINE, STALK, LEAF = "#d4301f", "#f29b8f", "#5f3d20", "#3f8f3c"
STONE, EDGE = "#5c6570", "#8d97a3"
WHITE, INK = "#ffffff", "#101820"
RADIUS, HEAD, EYE, PUPIL = 0.37, 0.44, 0.13, 0.07  # radii; the first is of the body
TAPER, TIP = 2.5, 0.35  # over so many last cells the band narrows to this share of its width
FADE = 10  # least length, in cells, of the gradient from the head's colour to the tail's
NO_SIDE = 4  # instead of a side: the band begins in the tail's cell and ends in the head's

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
    """Paints the body on the tiles `[L, c, c, 3]` of the cells `path` `[L, 2]`, tail first."""
    headings = np.array([STEPS.index(tuple(step)) for step in np.diff(path, axis=0).tolist()], int)
    entry_side, exit_side = np.append(NO_SIDE, headings ^ 2), np.append(headings, NO_SIDE)
    distances, progress = band(tiles.shape[1])
    place = np.arange(len(path), dtype=np.float32)[:, None, None] + progress[entry_side, exit_side]
    radius = RADIUS * np.minimum(1, TIP + (1 - TIP) * place / TAPER)
    fade = (len(path) - place) / max(len(path), FADE)  # 0 at the head
    level = (levels * fade).astype(int).clip(0, levels - 1)
    return blend(tiles, radius - distances[entry_side, exit_side], gradient(colours, levels)[level])


@lru_cache(maxsize=8)
def band(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Distance from the middle line and progress along it, 0 to 1; both `[5, 5, c, c]`.

    The first two axes are the sides of entry and exit, as headings or NO_SIDE. The middle line is
    straight, a quarter of a circle, or begins or ends in the centre.
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
            projection = point @ line
            on_line = projection.clip(0 if a == NO_SIDE else -1, 0 if b == NO_SIDE else 1)
            distances[a, b] = np.linalg.norm(point - on_line[..., None] * line, axis=-1)
            progress[a, b] = 0.5 + projection
    return distances, progress


@lru_cache(maxsize=8)
def gradient(colours: Colours, levels: int) -> np.ndarray:
    """Float32 `[levels, 3]` from the head's colour to the tail's."""
    stops = np.stack([rgb(colour) for colour in colours])
    x = np.linspace(0, 1, levels)
    channels = [np.interp(x, [0, 0.5, 1], channel) for channel in stops.T]
    return np.stack(channels, -1).astype(np.float32)


def head(tile: np.ndarray, heading: int, colours: Colours, alive: bool) -> np.ndarray:
    """Paints the head, eyes looking forward; a dead one has crosses for eyes."""
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
    """Paints an apple with a stalk and a leaf."""
    tile = disc(tile, (0.07, -0.085), 0.27, APPLE)
    tile = disc(tile, (0.07, 0.085), 0.27, APPLE)
    tile = disc(tile, (-0.02, -0.17), 0.07, SHINE)
    tile = stroke(tile, (-0.12, 0), (-0.32, 0.05), 0.035, STALK)
    point = points(tile.shape[0])
    lens = [0.2 - np.linalg.norm(point - c, axis=-1) for c in ((-0.38, 0.17), (-0.14, 0.21))]
    return blend(tile, np.minimum(*lens), rgb(LEAF))


def block(tile: np.ndarray) -> np.ndarray:
    """Paints an obstacle: a block of stone, its upper left edges in the light."""
    for centre, half, colour in (((0, 0), 0.33, EDGE), ((0.035, 0.035), 0.3, STONE)):
        beyond = np.abs(points(tile.shape[0]) - np.array(centre)) - half
        tile = blend(tile, 0.14 - np.linalg.norm(beyond.clip(0), axis=-1), rgb(colour))
    return tile


def disc(tile: np.ndarray, centre, radius: float, colour: str) -> np.ndarray:
    """Paints a filled circle."""
    return stroke(tile, centre, centre, radius, colour)


def stroke(tile: np.ndarray, start, end, radius: float, colour: str) -> np.ndarray:
    """Paints a line with round ends."""
    start, direction = np.array(start), np.subtract(end, start)
    point = points(tile.shape[0]) - start
    share = (point @ direction / max(direction @ direction, 1e-9)).clip(0, 1)
    distance = np.linalg.norm(point - share[..., None] * direction, axis=-1)
    return blend(tile, radius - distance, rgb(colour))


def blend(tiles: np.ndarray, depth: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Paints float32 `colours` where `depth` inside a shape is positive, with smooth edges."""
    cover = (depth * tiles.shape[-2] + 0.5).clip(0, 1)[..., None].astype(np.float32)
    return np.rint(tiles + cover * (colours - tiles)).astype(np.uint8)


@lru_cache(maxsize=8)
def points(size: int) -> np.ndarray:
    """The (row, col) of each pixel of a cell, `[c, c, 2]`."""
    offset = (np.arange(size, dtype=np.float32) + 0.5) / size - 0.5
    return np.stack(np.meshgrid(offset, offset, indexing="ij"), -1)
