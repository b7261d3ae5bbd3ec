"""Pictures of a game of two snakes: the learner in blue, the other in red, and its film."""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from PIL import Image

from envs.snake import drawing, tiles
from envs.snake.bitboard import Board
from envs.snake.drawing import ASHES, OCEAN, SMOOTH
from envs.two_snake.rules import ALIVE, LEARNER, OTHER, State

EMBERS = ("#7a1532", "#cf4a4a", "#f0b08a")
COLOURS = (OCEAN, EMBERS)
FRAMES = {
    "": "#233140",
    "won": "#1d6fa5",
    "lost": "#a8324a",
    "draw": "#5d6b78",
    "time up": "#5d6b78",
}
"""The colour of the frame by the ending for the learner; "" while the game continues."""


def draw(board: Board, state: State, title: str = "", ending: str = "") -> Image.Image:
    """The picture of one game; `ending` is one of `FRAMES`."""
    states = jax.tree.map(lambda x: np.asarray(x)[None], state)
    return _Game(board, states, ending).picture(0, title)


def film(
    board: Board,
    states: State,
    path: str | Path,
    ending: str = "",
    fps: float = 20.0,
    captions: Sequence[str] = (),
) -> None:
    """Writes the GIF of a game: `states` are NumPy arrays `[S, ...]`, the first axis being time.

    A snake that has just died is shown once more, in grey, where it lay before. `captions` are S
    strings or none; `ending`, one of `FRAMES`, is how the last position is framed.
    """
    drawing.write_film(path, _Game(board, states, ending), fps, captions)


class _Game:
    """The pictures of S positions, drawn when they are asked for."""

    def __init__(self, board: Board, states: State, ending: str):
        self.board, self.ending = board, ending
        self.states = jax.tree.map(np.asarray, states)  # [S, ...]
        self.count = len(self.states.time)
        if self.count == 0:
            raise ValueError("there are no positions to draw; give at least one")
        if ending not in FRAMES:
            raise ValueError(f"ending {ending!r} is unknown; expected one of {list(FRAMES)}")
        self.orders = [
            drawing.orders_of(board, jax.tree.map(lambda x, p=player: x[:, p], self.states.snakes))
            for player in (LEARNER, OTHER)
        ]

    def picture(self, i: int, title: str = "", levels: int = SMOOTH) -> Image.Image:
        """The picture of position i."""
        board, states = self.board, self.states
        cells = tiles.checkerboard(board, drawing.cell_size(board)).copy()
        drawing.paint_food(board, cells, int(states.food[i]))
        for player in (LEARNER, OTHER):
            self._paint(cells, player, i, levels)
        ending = self.ending if i == self.count - 1 else ""
        image = drawing.framed(board, cells, FRAMES[ending])
        mine, theirs = states.score[i]
        title = " · ".join(part for part in (title, ending) if part)
        drawing.write_caption(image, f"{mine} : {theirs}", f"step {states.time[i]}", title)
        return image

    def _paint(self, cells: np.ndarray, player: int, i: int, levels: int) -> None:
        """One snake; of one that died in the last step, what it was before."""
        alive = self.states.cause[:, player] == ALIVE
        shown = i if alive[i] or i == 0 else i - 1
        if alive[shown]:
            colours = COLOURS[player] if alive[i] else ASHES
            heading = int(self.states.snakes.heading[i, player])
            order = self.orders[player][shown]
            drawing.paint_snake(cells, order, heading, colours, bool(alive[i]), levels)
