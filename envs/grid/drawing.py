"""Pictures of a maze: with an agent, as a film of a walk, or as a heat map of the states."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from envs import gif
from envs.grid.layouts import Layout
from envs.grid.passages import STEPS, Cell

Colour = tuple[int, int, int]

SIZE = 400  # pixels of the longer side, at most
WALL, FREE, GOAL, AGENT = (35, 49, 64), (241, 237, 227), (212, 48, 31), (29, 79, 181)
WHITE, DOOR, PORTAL = (255, 255, 255), (168, 107, 0), (47, 125, 108)
# From negative to positive; blue and orange-red differ for every kind of colour vision, and
# lightness falls alike on both sides of the white in the middle.
DIVERGING = np.array(
    [
        *[(12, 44, 104), (44, 103, 174), (137, 182, 219), (250, 250, 248)],
        *[(245, 175, 127), (206, 88, 41), (115, 31, 12)],
    ],
    np.float64,
)
RADIUS, HALO = 0.32, 0.40  # of the agent and the light ring around it, in cells
HOLD = 1.5  # seconds that a film shows its last position


def heat_map(layout: Layout, values: np.ndarray) -> np.ndarray:
    """`values` `[S]` where their states are, float64 `[H, W]`; NaN in walls.

    Raises ValueError for another shape, and for values that are not finite.
    """
    values = np.asarray(values, np.float64)
    if values.shape != (layout.num_states,):
        raise ValueError(
            f"values have shape {values.shape}; expected {(layout.num_states,)}, one per state"
        )
    if not np.isfinite(values).all():
        raise ValueError("values are not all finite; expected a number for every state")
    cells = np.full(layout.free.shape, np.nan)
    cells[layout.free] = values
    return cells


def picture(
    layout: Layout,
    position: int | None = None,
    values: np.ndarray | None = None,
    size: int = SIZE,
) -> Image.Image:
    """The maze, with an agent on the state `position` and coloured by `values` `[S]`.

    The longer side has at most `size` pixels; cells have a whole number of pixels. Without values
    goals are red, doors brown arrows in the open direction, and portals green arrows. With
    values blue is negative, red positive, and the largest magnitude darkest; goals and arrows are
    left out.

    Raises ValueError for a position or values that do not fit the maze.
    """
    canvas = _background(layout, values, size)
    place = None if position is None else _place(layout, position)
    return Image.fromarray(_with_agent(canvas, place, _cell_size(layout, size)))


def film(
    layout: Layout, positions: np.ndarray, path: str | Path, fps: float = 10.0, size: int = SIZE
) -> None:
    """Writes the GIF of a walk; `positions` are states, int `[T]`.

    Raises ValueError for no positions, for one that is not in the maze, and for a frame rate
    that viewers do not play.
    """
    gif.check_fps(fps)
    places = [_place(layout, int(position)) for position in positions]
    if not places:
        raise ValueError("there are no positions to draw; expected at least one state")
    canvas, cell = _background(layout, None, size), _cell_size(layout, size)
    sample_indices = np.linspace(0, len(places) - 1, num=min(len(places), 12)).astype(int)
    colours = gif.commonest_colours([_with_agent(canvas, places[i], cell) for i in sample_indices])
    quantize = gif.quantizer(colours)

    def frames() -> Iterator[tuple[np.ndarray, float]]:
        for i, place in enumerate(places):
            image = Image.fromarray(_with_agent(canvas, place, cell))
            yield np.asarray(quantize(image)), 1 / fps if i < len(places) - 1 else HOLD

    gif.write(path, frames(), colours)


def _place(layout: Layout, position: int) -> Cell:
    if not 0 <= position < layout.num_states:
        raise ValueError(
            f"position is {position}; expected a state from 0 to {layout.num_states - 1}"
        )
    row, col = layout.cells[position]
    return int(row), int(col)


def _cell_size(layout: Layout, size: int) -> int:
    """Pixels of a cell's side; one at least."""
    if size < 1:
        raise ValueError(f"size is {size}; expected at least 1 pixel")
    return max(1, size // max(layout.height, layout.width))


def _background(layout: Layout, values: np.ndarray | None, size: int) -> np.ndarray:
    """The maze without an agent, float64 `[H * c, W * c, 3]` in 0 to 255, with c pixels a cell."""
    cell = _cell_size(layout, size)
    if values is None:
        colours = np.where(layout.free[:, :, None], FREE, WALL).astype(np.float64)
        for goal in layout.goals:
            colours[goal] = GOAL
    else:
        colours = _heat(heat_map(layout, values))
    canvas = colours.repeat(cell, axis=0).repeat(cell, axis=1)
    if values is None:
        for passages, colour in ((layout.doors, DOOR), (layout.portals, PORTAL)):
            for passage in passages:
                _paint(canvas, passage.cell, _arrow(cell, passage.direction), colour)
    return canvas


def _heat(cells: np.ndarray) -> np.ndarray:
    """Colours of a heat map, float64 `[H, W, 3]`; 0 is white whatever the range."""
    largest = np.nanmax(np.abs(cells))
    share = np.nan_to_num(cells) / (largest if largest > 0 else 1)  # -1 to 1
    stops = np.linspace(-1, 1, len(DIVERGING))
    colours = np.stack([np.interp(share, stops, channel) for channel in DIVERGING.T], -1)
    return np.where(np.isnan(cells)[:, :, None], WALL, colours)


def _with_agent(canvas: np.ndarray, place: Cell | None, cell: int) -> np.ndarray:
    """uint8, the canvas and an agent on it."""
    if place is not None:
        canvas = canvas.copy()
        _paint(canvas, place, _disc(cell, HALO), WHITE)
        _paint(canvas, place, _disc(cell, RADIUS), AGENT)
    return np.rint(canvas).astype(np.uint8)


def _paint(canvas: np.ndarray, place: Cell, cover: np.ndarray, colour: Colour) -> None:
    """Mixes a colour into one cell of the canvas, as far as `cover` `[c, c]` says."""
    size = len(cover)
    top, left = place[0] * size, place[1] * size
    tile = canvas[top : top + size, left : left + size]
    tile += cover[:, :, None] * (np.array(colour) - tile)


@lru_cache(maxsize=8)
def _disc(size: int, radius: float) -> np.ndarray:
    """How much of each pixel of a cell a disc covers, `[c, c]` in 0 to 1."""
    depth = radius - np.linalg.norm(_points(size), axis=-1)
    return np.clip(depth * size + 0.5, 0, 1)


@lru_cache(maxsize=8)
def _arrow(size: int, direction: int) -> np.ndarray:
    """The same of a triangle at the cell's side, whose tip touches that side."""
    along = _points(size) @ np.array(STEPS[direction])
    across = _points(size) @ np.array(STEPS[(direction + 1) % 4])
    depth = np.minimum(along - 0.22, 0.5 - along - np.abs(across))
    return np.clip(depth * size + 0.5, 0, 1)


def _points(size: int) -> np.ndarray:
    """(row, col) of each pixel of a cell, from its centre, in cells; `[c, c, 2]`."""
    offset = (np.arange(size) + 0.5) / size - 0.5
    return np.stack(np.meshgrid(offset, offset, indexing="ij"), -1)
