"""A maze without cells: a point moves freely between its walls.

Positions are (row, col) in tiles from the upper left corner of the maze: (0.5, 0.5) is the middle
of its first tile. Moves are at most one tile long on each axis, so that none can jump a wall.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces
from scipy import sparse

from envs.arguments import check_name
from envs.base import Environment
from envs.grid.layouts import Layout
from envs.grid.mazes import layout_by_name
from envs.grid.space import continuous_frames
from envs.grid.space.continuous_frames import Colours

OBSERVATIONS = ("coordinates", "rendered")
TOGETHER = 1e-9  # two walls closer than this on the way of a move are met together


@struct.dataclass
class State:
    position: jax.Array  # float32 [2], row and column in tiles
    time: jax.Array  # int32, steps since the start


@struct.dataclass
class Params:
    """The maze as numbers. H rows and W columns of tiles, and a border of walls around them."""

    free: jax.Array  # bool [H + 2, W + 2]
    cells: jax.Array  # int32 [S, 2], the free tiles
    step: float = 0.5
    """Largest move along each axis, in tiles; at most 1."""
    max_steps_in_episode: int = 50
    """Steps after which an episode is truncated."""


class ContinuousMaze(Environment):
    """A walk in the space between the walls of a maze, a name or a `Layout`.

    Action: float32 `[2]` in -1 to 1, the move along rows and columns in units of `step`. A move
    whose straight way is not free is not made. Observation: `coordinates`, float32 `[2]`, see the
    function; or `rendered`, a picture with `tile` pixels along each tile, see
    `continuous_frames.frames`. There is no reward; only the time limit ends an episode. Episodes
    start anywhere. Goals, doors and portals of the maze are ignored.

    Raises ValueError for unknown mazes, observations and colours, for steps that are not above 0
    and at most 1, and for tiles of less than one pixel.
    """

    def __init__(
        self,
        maze: str | Layout = "GridRoom-4",
        step: float = 0.5,
        observation: str = "coordinates",
        tile: int = 2,
        colours: Colours = "rgb",
    ):
        super().__init__()
        if not 0 < step <= 1:
            raise ValueError(f"step is {step}; expected a number above 0 and at most 1")
        if tile < 1:
            raise ValueError(f"tile is {tile}; expected at least one pixel")
        check_name("observation", observation, OBSERVATIONS)
        check_name("colours", colours, ("rgb", "grey"))
        self.observation, self.tile = observation, tile
        self.colours: Colours = colours
        self.layout = layout_by_name(maze) if isinstance(maze, str) else maze
        self.step_size = step
        self.height, self.width = self.layout.height, self.layout.width

    def identity(self) -> dict[str, Any]:
        sizes = {"height": self.height, "width": self.width, "cells": self.layout.num_states}
        return sizes | {name: getattr(self, name) for name in ("observation", "tile", "colours")}

    @property
    def default_params(self) -> Params:  # pyright: ignore[reportIncompatibleVariableOverride]
        with jax.ensure_compile_time_eval():
            free, cells = jnp.asarray(np.pad(self.layout.free, 1)), jnp.asarray(self.layout.cells)
            return Params(free, cells, self.step_size)

    def start(self, chance: jax.Array, params: Params) -> State:
        cell_key, place_key = jax.random.split(chance)
        cell = params.cells[jax.random.randint(cell_key, (), 0, self.num_starts(params))]
        position = cell + jax.random.uniform(place_key, (2,))
        # a sum that was rounded up would be in the next tile, perhaps in a wall for ever
        inside = jnp.nextafter((cell + 1).astype(jnp.float32), 0.0)
        return State(jnp.minimum(position, inside), jnp.zeros((), jnp.int32))

    def num_starts(self, params: Params) -> Any:
        """How many of the free tiles, the first ones, episodes start in: all of them."""
        return len(params.cells)

    def transition(
        self, chance: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        del chance  # moves are certain
        target = state.position + params.step * jnp.clip(action, -1.0, 1.0)
        is_free = is_free_way(params.free, state.position, target, jnp)
        position = jnp.where(is_free, target, state.position)
        is_terminal = jnp.zeros((), bool)
        return State(position, state.time + 1), jnp.zeros(()), is_terminal, {}

    def describe(self, state: State, features: Any, params: Params) -> jax.Array:
        if self.observation == "coordinates":
            return coordinates(state.position, self.height, self.width)
        free = params.free[1:-1, 1:-1]
        return continuous_frames.frames(free, state.position, self.tile, self.colours, jnp)

    @property
    def name(self) -> str:
        return "ContinuousMaze-v0"

    @property
    def num_actions(self) -> int:
        return 2

    def action_space(self, params: Params | None = None) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (2,), jnp.float32)

    def observation_space(self, params: Params | None = None) -> spaces.Box:
        if self.observation == "coordinates":
            return spaces.Box(-1.0, 1.0, (2,), jnp.float32)
        size = continuous_frames.frame_shape(self.height, self.width, self.tile, self.colours)
        return spaces.Box(0.0, 1.0, size, jnp.float32)


def coordinates(position, height: int, width: int):
    """Positions `[..., 2]` as the network sees them: the longer side of the maze is -1 to 1."""
    return (2 * position - _size(position, height, width)) / max(height, width)


def positions(obs, height: int, width: int):
    """The inverse of `coordinates`."""
    return (obs * max(height, width) + _size(obs, height, width)) / 2


def _size(like, height: int, width: int) -> np.ndarray:
    """Height and width, with as many axes as `like`."""
    return np.array([height, width], np.float32).reshape((1,) * (like.ndim - 1) + (2,))


def is_free_way(free, start, end, xp: Any = np):
    """Whether all tiles on the straight way between positions `[..., 2]` are free, bool `[...]`.

    `free` is bool `[H + 2, W + 2]` with a border of walls; the way is at most a tile long on each
    axis. A way through the corner of four tiles needs all of them. `xp` is NumPy or jax.numpy.
    """
    (row, col), (to_row, to_col) = (
        (xp.floor(x[..., 0]).astype(int), xp.floor(x[..., 1]).astype(int)) for x in (start, end)
    )
    # When the way crosses the line between two rows, and between two columns, from 0 to 1.
    crossings = []
    for axis, (first, last) in enumerate(((row, to_row), (col, to_col))):
        move = end[..., axis] - start[..., axis]
        line = xp.maximum(first, last)
        crossings.append((line - start[..., axis]) / xp.where(first == last, 1.0, move))
    turns = (row != to_row) & (col != to_col)
    rows_first = turns & (crossings[0] <= crossings[1] + TOGETHER)
    columns_first = turns & (crossings[1] <= crossings[0] + TOGETHER)
    open_at = lambda i, j: free[i + 1, j + 1]
    through_rows = ~rows_first | open_at(to_row, col)
    through_columns = ~columns_first | open_at(row, to_col)
    return open_at(row, col) & open_at(to_row, to_col) & through_rows & through_columns


def fine_layout(layout: Layout, parts: int) -> Layout:
    """The maze with `parts` x `parts` cells in each tile, to draw and count positions in."""
    free = np.kron(layout.free, np.ones((parts, parts), bool))
    return Layout(free, f"{layout.name}, continuous")


def fine_chain(layout: Layout, step: float, parts: int) -> sparse.csr_array:
    """P `[F, F]` on the cells of `fine_layout`, which tends to the walk's kernel with `parts`.

    The walk's moves are uniform in a square. P moves from the middle of a cell to middles of cells,
    with the variance that moves really have, and asks for walls between the two. It is symmetric.
    Raises ValueError if cells are longer than the step.
    """
    if step * parts < 1:
        raise ValueError(
            f"moves of up to {step} tiles are not seen with {parts} cells along a tile; expected "
            f"at least {int(np.ceil(1 / step))}"
        )
    fine, half = fine_layout(layout, parts), step * parts  # half the square, in fine cells
    walls, middles = np.pad(layout.free, 1), (fine.cells + 0.5) / parts
    reach = int(np.ceil(half + 1))
    law = _moves(np.arange(-reach, reach + 1), half)
    states = np.arange(fine.num_states)
    entries = []
    for i, j in np.ndindex(len(law), len(law)):
        shift, chance = np.array([i, j]) - reach, law[i] * law[j]
        if chance == 0 or (i == j == reach):
            continue
        target = middles + shift / parts
        inside = ((target > 0) & (target < layout.free.shape)).all(axis=1)
        inside = np.flatnonzero(inside)
        inside = inside[is_free_way(walls, middles[inside], target[inside])]
        target_states = fine.index[tuple((fine.cells[inside] + shift).T)]
        entries.append((states[inside], target_states, np.full(len(target_states), chance)))
    rows, columns, chances = map(np.concatenate, zip(*entries, strict=True))
    moves = sparse.coo_array((chances, (rows, columns)), shape=(len(states),) * 2).tocsr()
    stay_chances = 1 - moves.sum(axis=1)
    return sparse.csr_array(moves + sparse.diags_array(stay_chances))


def _moves(shift: np.ndarray, half: float) -> np.ndarray:
    """Probabilities of moves by `shift` cells, for moves that are uniform in -half..half.

    The share of a uniform law that falls on each cell has 1/12 more variance than the law: so it is
    that of a law whose own variance is so much smaller.
    """
    narrower = np.sqrt(half**2 - 0.25)
    shares = np.minimum(shift + 0.5, narrower) - np.maximum(shift - 0.5, -narrower)
    return np.maximum(shares, 0) / (2 * narrower)
