"""Observations of a maze: each is one table with the observation of every state."""

import math
from collections.abc import Callable

import numpy as np

from envs.grid import drawing
from envs.grid.layouts import Layout

FREE, WALL = (1.0, 1.0, 1.0), (110 / 255, 110 / 255, 110 / 255)
TILE = 6  # pixels of a tile's side in a rendered picture
MAX_BYTES = 2 * 2**30  # of the observations of all states
AGENT, GOAL = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)


def index(layout: Layout) -> np.ndarray:
    """The state index, int32 `[S]`."""
    return np.arange(layout.num_states, dtype=np.int32)


def coordinates(layout: Layout) -> np.ndarray:
    """(row, col), float32 `[S, 2]`: the longer side of the maze spans -1 to 1, 0 is its middle."""
    size = np.array(layout.free.shape)
    return ((2 * layout.cells - (size - 1)) / (size.max() - 1)).astype(np.float32)


def one_hot(layout: Layout) -> np.ndarray:
    """float32 `[S, S]`."""
    return np.eye(layout.num_states, dtype=np.float32)


def pixels(layout: Layout) -> np.ndarray:
    """A picture with one pixel a tile, red, green and blue in 0 to 1, float32 `[S, H, W, 3]`."""
    ground = np.where(layout.free[:, :, None], FREE, WALL).astype(np.float32)
    for cell in layout.goals:
        ground[cell] = GOAL
    pictures = np.tile(ground, (layout.num_states, 1, 1, 1))
    rows, cols = layout.cells.T
    pictures[np.arange(layout.num_states), rows, cols] = AGENT
    return pictures


def renderings(layout: Layout) -> np.ndarray:
    """The maze as people see it, `TILE` pixels a tile, the agent a disc: float32 `[S, h, w, 3]`.

    The pictures of `envs.grid.drawing`, doors and portals included; colours are in 0 to 1.
    """
    size = TILE * max(layout.height, layout.width)
    return np.stack(
        [
            np.asarray(drawing.picture(layout, state, size=size), np.float32) / 255
            for state in range(layout.num_states)
        ]
    )


def shape(observation: str, layout: Layout) -> tuple[int, ...]:
    """The shape of one observation, without computing them all."""
    return {
        "index": (),
        "coordinates": (2,),
        "one_hot": (layout.num_states,),
        "pixels": (layout.height, layout.width, 3),
        "rendered": (TILE * layout.height, TILE * layout.width, 3),
    }[observation]


def check_size(observation: str, layout: Layout) -> None:
    """Raises ValueError if the table of all observations would be larger than `MAX_BYTES`."""
    size = 4 * layout.num_states * math.prod(shape(observation, layout))
    if size > MAX_BYTES:
        raise ValueError(
            f"observation {observation!r} of {layout.num_states:,} states needs"
            f" {size / 2**30:.1f} GiB; expected at most {MAX_BYTES / 2**30:.0f} GiB: choose"
            " coordinates, or a smaller maze"
        )


OBSERVATIONS: dict[str, Callable[[Layout], np.ndarray]] = {
    "index": index,
    "coordinates": coordinates,
    "one_hot": one_hot,
    "pixels": pixels,
    "rendered": renderings,
}
