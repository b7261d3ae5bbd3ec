"""Pictures of a game of two snakes: the learner in blue, the other in red, and its film.

A third is yellow, a fourth purple.
"""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from PIL import Image

from envs.snake.bitboard import Board
from envs.snake.pictures import drawing
from envs.snake.pictures.drawing import ASHES, OCEAN
from envs.two_snake.rules import ALIVE, State

EMBERS = ("#7a1532", "#cf4a4a", "#f0b08a")
HONEY = ("#7d5200", "#d49a1c", "#f4dd92")
PLUM = ("#4b1d6b", "#9a5fc0", "#dcc0ee")
COLOURS = (OCEAN, EMBERS, HONEY, PLUM)
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
    strings or none; `ending`, one of `FRAMES`, decides the frame of the last position.
    """
    drawing.write_film(path, _Game(board, states, ending), fps, captions)


class _Game(drawing.Pictures):
    def __init__(self, board: Board, states: State, ending: str):
        super().__init__(board, states, ending, FRAMES)
        self.orders = [
            drawing.orders_of(board, jax.tree.map(lambda x, p=player: x[:, p], self.states.snakes))
            for player in range(self.states.score.shape[1])
        ]

    def paint_snakes(self, cells: np.ndarray, i: int, ending: str, levels: int) -> None:
        for player in range(len(self.orders)):
            self._paint_one(cells, player, i, levels)

    def score(self, i: int) -> str:
        return " : ".join(str(score) for score in self.states.score[i])

    def _paint_one(self, cells: np.ndarray, player: int, i: int, levels: int) -> None:
        """Paints one snake; one that died in the last step is shown where it was before."""
        alive = self.states.cause[:, player] == ALIVE
        moment = i if alive[i] or i == 0 else i - 1
        if alive[moment]:
            colours = COLOURS[player] if alive[i] else ASHES
            heading = int(self.states.snakes.heading[i, player])
            order = self.orders[player][moment]
            drawing.paint_snake(cells, order, heading, colours, bool(alive[i]), levels)
