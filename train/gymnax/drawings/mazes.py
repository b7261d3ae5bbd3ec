"""Drawings of boards that something moves on: Catch, DeepSea, FrozenLake and rooms.

Each function gives a picture uint8 `[H, W, 3]` of one state.
"""

from typing import Any

import numpy as np
from gymnax.environments.misc.frozen_lake import GOAL as GOAL_TILE
from gymnax.environments.misc.frozen_lake import HOLE, START

from envs.grid import drawing as maze
from train.gymnax.drawings.canvas import BLUE, INK, PALE, PAPER, RED, WIDTH, Canvas

WALL, FREE, GOAL, AGENT = INK, PAPER, RED, BLUE
BALL = RED
ICE, WATER, BANK = "#dcebf3", "#12357f", PALE
TREASURE, SAND = "#dc9a00", "#c8b58a"
HIGHEST = 440  # pixels; boards that are higher than wide are drawn narrower


def catch(env: Any, params: Any, state: Any) -> np.ndarray:
    """The ball, and the paddle below."""
    board = _Board(np.full((env.rows, env.columns), FREE))
    row, col = int(state.paddle_y), int(state.paddle_x)
    board.canvas.rectangle((col + 0.08, -row - 0.3), (col + 0.92, -row - 0.7), AGENT)
    board.disc(state.ball_y, state.ball_x, BALL)
    return board.image()


def deep_sea(env: Any, params: Any, state: Any) -> np.ndarray:
    """The diver, one row deeper with each step, and the place of the treasure.

    The treasure is taken by going right from its cell; the lowest row is where a dive ends.
    """
    size = env.size
    colours = np.full((size + 1, size), ICE)
    colours[np.triu_indices(size, 1)] = BANK  # out of reach: right is one column a row
    colours[size] = SAND
    board = _Board(colours)
    corner = size - 1
    board.canvas.rectangle((corner + 0.2, -corner - 0.3), (size - 0.2, -corner - 0.7), TREASURE)
    board.disc(state.row, state.column)
    return board.image()


def frozen_lake(env: Any, params: Any, state: Any) -> np.ndarray:
    """Ice, holes, the bank at the start, and the goal in gold."""
    tiles = np.asarray(env.desc)
    colours = np.full(tiles.shape, ICE)
    for tile, colour in ((START, BANK), (HOLE, WATER), (GOAL_TILE, TREASURE)):
        colours[tiles == tile] = colour
    board = _Board(colours)
    board.disc(*divmod(int(state.position), tiles.shape[1]), RED)  # plain to see in a hole, too
    return board.image()


def rooms(env: Any, params: Any, state: Any) -> np.ndarray:
    """FourRooms and MetaMaze: walls, the goal and the agent."""
    colours = np.where(np.asarray(env.env_map), FREE, WALL)
    row, col = np.asarray(state.goal)
    colours[row, col] = GOAL
    board = _Board(colours)
    board.disc(*np.asarray(state.pos))
    return board.image()


def grid(env: Any, params: Any, state: Any) -> np.ndarray:
    """Ours, as its own module draws it."""
    return np.asarray(maze.picture(env.layout, int(state.position), size=WIDTH))


class _Board:
    """Cells of one colour each, with a thin line between them; row 0 is at the top."""

    def __init__(self, colours: np.ndarray):
        """`colours` are strings `[R, C]`."""
        rows, cols = colours.shape
        share = min(1.0, HIGHEST / WIDTH * cols / rows)  # of the width that the board takes
        spare = cols * (1 / share - 1) / 2
        self.canvas = Canvas((-spare, cols + spare), (-rows, 0), INK)
        line = self.canvas.pixels(0.5)
        for (row, col), colour in np.ndenumerate(colours):
            self.canvas.rectangle(
                (col + line, -row - line), (col + 1 - line, -row - 1 + line), str(colour)
            )

    def disc(self, row: Any, col: Any, colour: str = AGENT) -> None:
        """What moves, in the middle of a cell."""
        centre = int(col) + 0.5, -int(row) - 0.5
        self.canvas.disc(centre, 0.38, "white")
        self.canvas.disc(centre, 0.32, colour)

    def image(self) -> np.ndarray:
        return self.canvas.image()
