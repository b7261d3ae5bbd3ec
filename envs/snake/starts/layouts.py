"""Obstacles of a new game of Snake: cells that no snake can enter, drawn for every game.

They are drawn one after the other, uniformly from the cells where one more does no harm:

* the cells that the snake leaves free stay connected: those around the new one are joined by a path
  within its eight neighbours, so that it can be gone around;
* every cell keeps two neighbours that are no obstacles, so that there are no dead ends;
* the cells ahead and to both sides of the head stay as they were.

What may be forbidden: the snake's body and the twelve cells around it; the eight cells beside the
corners, as these have two neighbours anyway; and for each obstacle its own cell and the eight
around it or, at an edge, the five around it and two more along the edge. So there is room for
obstacle N as long as 9 (N - 1) + 23 is less than the number of cells: see `most_obstacles`.
"""

import jax
import jax.numpy as jnp

from envs.snake import bitboard, rules
from envs.snake.bitboard import WORD, Bits, Board
from envs.snake.rules import START_LENGTH, State


def most_obstacles(board: Board) -> int:
    """The most obstacles for which there is always room."""
    return max(0, (board.num_cells - 15) // 9)


def check(board: Board, obstacles: int, foods: int, grown_starts: bool = False) -> None:
    """Raises ValueError for obstacles or food that may not fit on a board."""
    size, most = f"a {board.rows}×{board.cols} board", most_obstacles(board)
    if not (isinstance(obstacles, int) and 0 <= obstacles <= most):
        raise ValueError(
            f"obstacles is {obstacles!r}; {size} takes 0 to {most}: more might cut it apart"
        )
    room = board.num_cells - START_LENGTH - obstacles
    if not (isinstance(foods, int) and 1 <= foods <= room):
        raise ValueError(f"foods is {foods!r}; {size} has room for 1 to {room}")
    if obstacles and grown_starts:
        raise ValueError(
            "a snake that begins grown lies on a tour of all cells, which obstacles block: leave "
            "out one of them"
        )


def draw_obstacles(board: Board, state: State, random_words: jax.Array) -> Bits:
    """Draws as many obstacles as random words, uint32 `[N]`, around a straight snake of three.

    N is at most `most_obstacles(board)`.
    """
    ahead = bitboard.single(jnp.stack(rules.candidates(board, state)), board.num_words)  # words [3]
    body, cells = jnp.stack(state.occupied), jnp.stack(board.cells)
    off_limits = jnp.stack([word[0] | word[1] | word[2] for word in ahead])

    def add(free: jax.Array, random_word: jax.Array) -> tuple[jax.Array, None]:
        choices = free & passable_around(board, free) & ~beside(board, narrow(board, free | body))
        choices = tuple(choices & ~off_limits)
        cell = bitboard.draw(choices, bitboard.count(choices), random_word)
        return free & ~jnp.stack(bitboard.single(cell, board.num_words)), None

    free = cells & ~body
    left, _ = jax.lax.scan(add, free, random_words)
    return tuple(free & ~left)


# Sets of cells are one array here, uint32 `[words]`: a program that is far sooner compiled


def narrow(board: Board, cells: jax.Array) -> jax.Array:
    """The cells of a set with at most two neighbours in it."""
    up, right, down, left = _neighbours(board, cells)
    has_three = (up & down & (left | right)) | (left & right & (up | down))
    return cells & ~has_three


def beside(board: Board, cells: jax.Array) -> jax.Array:
    """The cells (and guards) that have a neighbour in a set."""
    up, right, down, left = _neighbours(board, cells)
    return up | right | down | left


def passable_around(board: Board, cells: jax.Array) -> jax.Array:
    """The cells (and guards) whose neighbours in a set are joined within the eight around them.

    Around that ring of eight, neighbours in the set form runs that corners in the set join. A run
    begins where the neighbour before, or the corner between them, is missing; there may be one.
    """
    sides, above, below = _neighbours(board, cells), board.stride, -board.stride
    corners = [shift(cells, by) for by in (above - 1, below - 1, below + 1, above + 1)]
    begins = [
        side & ~(before & corner)  # before up are left, and the corner between left and up
        for side, before, corner in zip(
            sides, (sides[-1], *sides), (corners[-1], *corners), strict=False
        )
    ]
    up, right, down, left = begins
    has_two = (up & right) | ((up | right) & (down | left)) | (down & left)
    return ~has_two


def _neighbours(board: Board, cells: jax.Array) -> list[jax.Array]:
    """The cells (and guards) whose upper, right, lower, left neighbour is in a set."""
    return [shift(cells, by) for by in (board.stride, -1, -board.stride, 1)]


def shift(words: jax.Array, distance: int) -> jax.Array:
    """Every cell moved by `distance` bits, upwards if positive: `bitboard.shift` of one array."""
    num_words, num_bits = divmod(abs(distance), WORD)
    words = words if distance >= 0 else words[::-1]
    words = jnp.concatenate([jnp.zeros(num_words + 1, jnp.uint32), words])[: len(words) + 1]
    low, high = words[:-1], words[1:]  # low are the words before high
    if num_bits == 0:
        shifted = high
    elif distance >= 0:
        shifted = high << num_bits | low >> (WORD - num_bits)
    else:
        shifted = high >> num_bits | low << (WORD - num_bits)
    return shifted if distance >= 0 else shifted[::-1]
