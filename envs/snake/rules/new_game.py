"""A new game: where a straight snake of three may begin, and its state with food."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard
from envs.snake.bitboard import Board
from envs.snake.rules.body import order_of
from envs.snake.rules.food import draw_food
from envs.snake.rules.headings import STEPS, offset
from envs.snake.rules.state import State
from envs.snake.rules.versions import Rules

START_LENGTH = 3


def starts(board: Board, rules: Rules) -> np.ndarray:
    """All (head row, head col, heading) a game may begin with: int32 `[S, 3]`."""
    if not rules.random_start:
        return np.array([[board.rows // 2, board.cols // 2, 1]], np.int32)
    back = START_LENGTH - 1

    def fits(row, col, heading):
        row, col = row - back * STEPS[heading][0], col - back * STEPS[heading][1]
        return 0 <= row < board.rows and 0 <= col < board.cols

    return np.array(
        [
            (row, col, heading)
            for row in range(board.rows)
            for col in range(board.cols)
            for heading in range(4)
            if fits(row, col, heading)
        ],
        np.int32,
    )


def start(
    board: Board,
    rules: Rules,
    random_words: jax.Array,
    keep_order: bool = False,
    place: tuple[jax.Array, jax.Array, jax.Array] | None = None,
) -> State:
    """A new game: a straight snake of three, and food. Consumes uint32 `[2]` random words.

    `keep_order` keeps the order of the body as a grid in the state, which costs time and memory,
    for observations that need it at every step; `order` computes it otherwise. `place` is row and
    column of the head, and the heading; None: one of `starts`.
    """
    row, col, heading = _draw_start(board, rules, random_words) if place is None else place
    head = row * board.stride + col
    step = offset(board, heading)
    cells = [head, head - step, head - 2 * step]
    occupied = bitboard.single(cells[0], board.num_words)
    for cell in cells[1:]:
        occupied = bitboard.union(occupied, bitboard.single(cell, board.num_words))
    no_cells = tuple(jnp.zeros_like(word) for word in occupied)
    zero = jnp.zeros_like(head)
    state = State(
        occupied=occupied,
        exits=(
            bitboard.where(heading & 1 != 0, occupied, no_cells),
            bitboard.where(heading & 2 != 0, occupied, no_cells),
        ),
        head=head,
        tail=cells[-1],
        food=zero,
        heading=heading,
        length=zero + START_LENGTH,
        time=zero,
        hunger=zero,
        order=order_of(board, cells) if keep_order else None,
    )
    return replace(state, food=draw_food(board, state, random_words[0]))


def _draw_start(board: Board, rules: Rules, random_words: jax.Array) -> list[jax.Array]:
    """One of `starts`, by the second random word where there are several."""
    choices = starts(board, rules)
    if len(choices) == 1:
        return [jnp.int32(x) for x in choices[0]]
    # 32 bits modulo a few thousand: uniform within one in a million
    choice = jnp.asarray(choices)[random_words[1] % np.uint32(len(choices))]
    return [choice[0], choice[1], choice[2]]


def uniform(random_word: jax.Array) -> jax.Array:
    """Float32 in [0, 1) from 32 random bits."""
    return (random_word >> 8).astype(jnp.float32) * 2**-24
