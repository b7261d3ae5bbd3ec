"""Boards of many sizes in one program: a game on the first rows and columns of a larger board.

The cells beyond are closed. Such a game is that of a board of its own size, move by move, and
looks the same to every observation whose size does not depend on the board, so that one policy can
learn all boards at once and then play any of them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake.bitboard import WORD, Bits, Board
from envs.snake.rules import START_LENGTH, Rules

SMALLEST, LARGEST = 4, 32
"""Cells along a side of a board, at least and at most."""
NUM_WORDS = 2
"""Random words that `draw_size` consumes."""


def check_sides(rows: int, cols: int) -> None:
    """Raises ValueError for a board that is too small or too large."""
    for name, size in (("rows", rows), ("cols", cols)):
        if not (isinstance(size, int) and SMALLEST <= size <= LARGEST):
            raise ValueError(f"{name} is {size!r}; expected {SMALLEST} to {LARGEST} cells")


def check(
    board: Board,
    smallest_side: int,
    square_boards: bool,
    obstacles: int,
    foods: int,
    grown_starts: bool,
) -> None:
    """Raises ValueError for boards of many sizes that cannot be, or with what they cannot have."""
    most = min(board.rows, board.cols)
    if smallest_side == 0:
        if square_boards:
            raise ValueError("square_boards needs smallest_side: only boards of many sizes vary")
        return
    if not (isinstance(smallest_side, int) and SMALLEST <= smallest_side <= most):
        raise ValueError(
            f"smallest_side is {smallest_side!r}; expected {SMALLEST} to {most} cells, the shorter "
            "side of the board, or 0"
        )
    if obstacles or foods > 1 or grown_starts:
        raise ValueError(
            "boards of many sizes have no obstacles, one piece of food and short snakes at the "
            "start: leave out smallest_side, or obstacles, foods and grown starts"
        )


def draw_size(board: Board, smallest: int, square: bool, random_words: jax.Array) -> jax.Array:
    """Int32 `[2]`: rows and columns, each uniform from `smallest` to those of the board.

    If `square`, as many rows as columns, up to the shorter side of the board. Consumes uint32 `[2]`
    random words.
    """
    if square:
        side = random_words[0] % np.uint32(min(board.rows, board.cols) - smallest + 1)
        return jnp.full(2, smallest, jnp.int32) + side.astype(jnp.int32)
    choices = np.array([board.rows - smallest + 1, board.cols - smallest + 1], np.uint32)
    return smallest + (random_words % choices).astype(jnp.int32)


def draw_start(
    rules: Rules, size: jax.Array, random_word: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Head row, head column and heading: uniform among `rules.starts` of a board of `size` `[2]`.

    `rules.starts` lists them for a size that is known before the program runs.
    """
    rows, cols = size[0], size[1]
    if not rules.random_start:
        return rows // 2, cols // 2, jnp.int32(1)
    back = START_LENGTH - 1
    upright, sideways = (rows - back) * cols, rows * (cols - back)  # places of each direction
    choice = (random_word % (2 * (upright + sideways)).astype(jnp.uint32)).astype(jnp.int32)
    is_reverse, place = choice & 1 != 0, choice >> 1
    is_upright = place < upright
    place = jnp.where(is_upright, place, place - upright)
    width = jnp.where(is_upright, cols, cols - back)
    # the body lies below a head that heads up, and before one that heads right
    row = place // width + jnp.where(is_upright & is_reverse, back, 0)
    col = place % width + jnp.where(~is_upright & ~is_reverse, back, 0)
    heading = jnp.where(is_upright, 0, 1) + jnp.where(is_reverse, 2, 0)
    return row, col, heading


def cells_beyond(board: Board, size: jax.Array) -> Bits:
    """The cells of the board that are not in its first `size` `[2]` rows and columns."""
    place = np.arange(board.num_words * WORD, dtype=np.int32).reshape(board.num_words, WORD)
    row, col = place // board.stride, place % board.stride
    is_cell = (row < board.rows) & (col < board.cols)
    is_beyond = is_cell & ((row >= size[0]) | (col >= size[1]))
    bits = jnp.where(is_beyond, np.uint32(1) << np.arange(WORD, dtype=np.uint32), np.uint32(0))
    return tuple(jnp.sum(word, dtype=jnp.uint32) for word in bits)
