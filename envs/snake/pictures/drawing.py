"""Pictures of a game of Snake: one position, and a film of a whole game."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from envs import gif
from envs.snake import rules
from envs.snake.bitboard import WORD, Bits, Board
from envs.snake.pictures import tiles
from envs.snake.rules import Body, State

LONGER_SIDE, NARROWEST = 400, 280  # pixels: longer side of the board; least width of a caption
STRIP, MARGIN = 38, 8  # pixels above the board and around it
SMOOTH, BANDED = 64, 9  # colours along the body: in a picture; in a film, fewer for small files
GIF_COLOURS = 96
MOST_FRAMES = 2_000  # of a film; 100 seconds
HOLD = 2.0  # seconds that a film shows its last position
CHUNK = 256  # positions whose bodies are traced at once


class Look(NamedTuple):
    """Colours, which also differ in lightness, for the colour-blind; captions name the ending."""

    frame: str
    snake: tiles.Colours
    alive: bool = True


OCEAN = ("#12357f", "#1d7fb5", "#7cc9c0")
ASHES = ("#4a4a4a", "#858585", "#bdbdbd")
GOLD = ("#a86b00", "#dc9a00", "#f2cf63")
LOOKS = {
    "": Look("#233140", OCEAN),
    "time up": Look("#5d6b78", OCEAN),
    "crashed": Look("#b8400e", ASHES, alive=False),
    "starved": Look("#b8400e", ASHES, alive=False),
    "board full": Look("#8a5f00", GOLD),
}
"""The look of a game by its ending; "" while it continues."""


def draw(board: Board, state: State, title: str = "", ending: str | None = None) -> Image.Image:
    """The picture of one game; `ending` is one of `LOOKS`, by default whether the board is full."""
    states = jax.tree.map(lambda x: np.asarray(x)[None], state)
    return _Game(board, states, ending).picture(0, title)


def film(
    board: Board,
    states: State,
    path: str | Path,
    fps: float = 20.0,
    captions: Sequence[str] = (),
    ending: str | None = None,
) -> None:
    """Writes the GIF of a game: `states` are NumPy arrays `[S, ...]`, the first axis being time.

    Longer games are shown in `MOST_FRAMES` positions, evenly spread. `captions` are S strings, one
    for each position, or none. `ending`, one of `LOOKS`, is the look of the last position; by
    default, a head that did not move in the last step has crashed.
    """
    write_film(path, _Game(board, states, ending), fps, captions)


class Pictures:
    """The positions of a game as pictures of one size, drawn on demand.

    A subclass paints the snakes and writes the score.
    """

    def __init__(self, board: Board, states: Any, ending: str, frames: Mapping[str, str]):
        """`states` are `[S, ...]`; `frames` has the colour of the frame for each ending."""
        self.board, self.ending, self.frames = board, ending, frames
        self.states = jax.tree.map(np.asarray, states)
        self.count = len(self.states.time)
        if self.count == 0:
            raise ValueError("there are no positions to draw; give at least one")
        if ending not in frames:
            raise ValueError(f"ending {ending!r} is unknown; expected one of {list(frames)}")

    def paint_ground(self, cells: np.ndarray, i: int) -> None:
        """Paints what lies on the board of position i, on the cells `[rows, c, cols, c, 3]`."""
        paint_food(self.board, cells, int(self.states.food[i]))

    def paint_snakes(self, cells: np.ndarray, i: int, ending: str, levels: int) -> None:
        """Paints the snakes of position i on the cells `[rows, c, cols, c, 3]`."""
        raise NotImplementedError

    def score(self, i: int) -> str:
        """The score in the caption of position i."""
        raise NotImplementedError

    def picture(self, i: int, title: str = "", levels: int = SMOOTH) -> Image.Image:
        """The picture of position i; only the last one shows the ending."""
        ending = self.ending if i == self.count - 1 else ""
        cells = tiles.checkerboard(self.board, cell_size(self.board)).copy()
        self.paint_ground(cells, i)
        self.paint_snakes(cells, i, ending, levels)
        image = frame_board(self.board, cells, self.frames[ending])
        title = " · ".join(part for part in (title, ending) if part)
        write_caption(image, self.score(i), f"step {self.states.time[i]}", title)
        return image


def write_film(path: str | Path, game: Pictures, fps: float, captions: Sequence[str]) -> None:
    """Writes the pictures of a game as a GIF; `captions` are one for each of them, or none.

    Raises ValueError for another number of captions.
    """
    gif.check_fps(fps)
    if captions and len(captions) != game.count:
        raise ValueError(f"{len(captions)} captions for {game.count} positions; give one for each")
    sample = [np.asarray(game.picture(i, levels=BANDED)) for i in _spread_indices(game.count, 12)]
    colours = gif.commonest_colours(sample, GIF_COLOURS)  # all but mixtures on small edges
    quantize = gif.quantizer(colours)

    def frames() -> Iterator[tuple[np.ndarray, float]]:
        for i in _spread_indices(game.count, min(game.count, MOST_FRAMES)):
            picture = game.picture(i, captions[i] if captions else "", BANDED)
            yield np.asarray(quantize(picture)), 1 / fps if i < game.count - 1 else HOLD

    gif.write(path, frames(), colours)


def cell_size(board: Board) -> int:
    """Pixels of a cell's side."""
    return LONGER_SIDE // max(board.rows, board.cols)


def corner(board: Board) -> tuple[int, int]:
    """The top left pixel of the board in a picture, (row, col)."""
    return STRIP, (_width(board) - board.cols * cell_size(board)) // 2


def _width(board: Board) -> int:
    return max(board.cols * cell_size(board), NARROWEST) + 2 * MARGIN


class _Game(Pictures):
    def __init__(self, board: Board, states: State, ending: str | None):
        ending = _ending(board, states) if ending is None else ending
        super().__init__(board, states, ending, {name: look.frame for name, look in LOOKS.items()})
        self.orders = orders_of(board, self.states)
        if self.states.obstacles is not None:
            self.obstacles = members(board, self.states.obstacles)

    def paint_ground(self, cells: np.ndarray, i: int) -> None:
        foods = self.states.food if self.states.foods is None else self.states.foods
        for food in np.atleast_1d(foods[i]).tolist():
            paint_food(self.board, cells, food)
        if self.states.obstacles is not None:
            for row, col in np.argwhere(self.obstacles[i].reshape(self.board.rows, -1)):
                cells[row, :, col] = tiles.block(cells[row, :, col])

    def paint_snakes(self, cells: np.ndarray, i: int, ending: str, levels: int) -> None:
        look, heading = LOOKS[ending], int(self.states.heading[i])
        paint_snake(cells, self.orders[i], heading, look.snake, look.alive, levels)

    def score(self, i: int) -> str:
        return f"score {self.states.length[i] - rules.START_LENGTH}"


def paint_food(board: Board, cells: np.ndarray, food: int) -> None:
    """Puts an apple on the cell of index `food`, none for -1, of `[rows, c, cols, c, 3]`."""
    if food >= 0:
        row, col = divmod(food, board.stride)
        cells[row, :, col] = tiles.apple(cells[row, :, col])


def paint_snake(
    cells: np.ndarray,
    order: np.ndarray,
    heading: int,
    colours: tiles.Colours,
    alive: bool,
    levels: int,
) -> None:
    """Puts the snake of this `order` `[rows, cols]` on the cells `[rows, c, cols, c, 3]`."""
    path = np.argwhere(order)[np.argsort(order[order > 0])]  # [L, 2], tail first
    rows, cols = path.T
    cells[rows, :, cols] = tiles.body(cells[rows, :, cols], path, colours, levels)
    row, col = path[-1]
    cells[row, :, col] = tiles.head(cells[row, :, col], heading, colours, alive)


def frame_board(board: Board, cells: np.ndarray, frame: str) -> Image.Image:
    """The picture of a painted board, with a frame in the colour `frame` around it."""
    top, left = corner(board)
    height, width = (n * cell_size(board) for n in (board.rows, board.cols))
    canvas = np.empty((top + height + MARGIN, _width(board), 3), np.uint8)
    canvas[:] = tiles.rgb(frame)
    canvas[top : top + height, left : left + width] = cells.reshape(height, width, 3)
    return Image.fromarray(canvas)


def write_caption(image: Image.Image, score: str, step: str, title: str) -> None:
    """Score to the left, step to the right, and between them as much of the title as fits."""
    pen, middle = ImageDraw.Draw(image), (STRIP + 1) // 2
    large, small = _font(19), _font(15)
    left, right = MARGIN + 2, image.width - MARGIN - 2
    pen.text((left, middle), score, "white", large, anchor="lm")
    pen.text((right, middle), step, "white", large, anchor="rm")
    left += large.getlength(score)
    right -= large.getlength(step)
    room = right - left - 16
    if small.getlength(title) > room:
        while title and small.getlength(title + "…") > room:
            title = title[:-1]
        title += "…"
    pen.text(((left + right) / 2, middle), title, "white", small, anchor="mm")


@lru_cache(maxsize=4)
def _font(size: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow."""
    return ImageFont.load_default(size)  # pyright: ignore[reportReturnType]


def _spread_indices(total: int, count: int) -> list[int]:
    """At most `count` of `range(total)`, evenly spread, last and (from two on) first included."""
    return sorted({round(x) for x in np.linspace(total - 1, 0, count)})


def _ending(board: Board, states: State) -> str:
    """The ending that positions `[S, ...]` show; a head that did not move has crashed."""
    head, last = states.head[-2:], jax.tree.map(lambda x: x[-1:], states)
    if len(head) == 2 and head[0] == head[1]:
        return "crashed"
    return "board full" if np.any(last.length == rules.num_open(board, last)) else ""


def members(board: Board, bits: Bits) -> np.ndarray:
    """Whether each cell, row by row, is in the sets `[S]`: bool `[S, cells]`."""
    words = np.stack([np.asarray(word) for word in bits], axis=-1)  # [S, words]
    return words[:, board.indices // WORD] >> (board.indices % WORD).astype(np.uint32) & 1 != 0


@partial(jax.jit, static_argnums=0)
def _order_of_each(board: Board, snakes: Body) -> jax.Array:
    return jax.vmap(partial(rules.order, board))(snakes)


def orders_of(board: Board, snakes: Body) -> np.ndarray:
    """`rules.order` of S snakes, int32 `[S, rows, cols]`."""
    total = len(snakes.head)
    chunk = min(CHUNK, total)
    orders = []
    for first in range(0, total, chunk):
        # always `chunk` of them, so that one compilation serves all
        chosen = np.minimum(np.arange(first, first + chunk), total - 1)
        orders.append(_order_of_each(board, jax.tree.map(lambda x, c=chosen: x[c], snakes)))
    return np.concatenate(orders)[:total]
