"""The free cells that the snake has left behind, and when cells become free, for `gaps`.

What decides whether a board is filled is in small numbers: with two free cells left, food may be
eaten only where the other one lies beside it, as nothing else becomes free for the head. Shares of
the length or of the board tell one or two moves, or free cells, hardly apart; reciprocals do.
"""

import jax
import jax.numpy as jnp

from envs.snake import bitboard, rules
from envs.snake.bitboard import Board
from envs.snake.rules import State
from envs.snake.scene import offset_from_head
from envs.snake.views import View

NUM_STRAYS = 9
"""Numbers of `stray_cells`."""
SPAN = 128
"""A power of two above all distances on a board, of 32×32 cells at most: shifts divide by it."""
NO_CELL = jnp.iinfo(jnp.int32).max
"""The rank of no cell."""


def stray_cells(board: Board, state: State) -> list[jax.Array]:
    """One over the number of free cells, and four facts each of two of them.

    These are the free cells nearest to the food and farthest from it, the food's own apart: how far
    ahead of the head and to its right they lie, over the longer side of the board; one over their
    distance from the food; one over one more than that from the head. Of several as near to the
    food, the nearest to the head is meant, and of these the foremost; of one to the left and one to
    the right, their mean. All are 0 where there is no such cell.
    """
    num_free = rules.num_open(board, state) - state.length
    cells = jnp.asarray(board.indices)  # [C]
    free = bitboard.difference(rules.open_cells(board, state), state.occupied)
    candidates = bitboard.contains(free, cells) & (cells != state.food) & (state.food >= 0)
    from_food = bitboard.distance(board, cells, state.food)
    from_head = bitboard.distance(board, cells, state.head)
    ahead, right = offset_from_head(board, state, cells)
    side = (rules.longer_side(board, state) - 1) * jnp.float32(1)

    def of_first(distance: jax.Array) -> list[jax.Array]:
        """The facts of the candidates that come first, by distance, then nearness to the head."""
        rank = (distance * SPAN + from_head) * SPAN + (SPAN // 2 - ahead)
        least = lambda chosen: jnp.min(jnp.where(candidates & chosen, rank, NO_CELL))
        return _facts(least(right >= 0), least(right <= 0), side)

    inverse_count = 1 / jnp.maximum(num_free, 1).astype(jnp.float32)
    return [inverse_count, *of_first(from_food), *of_first(-from_food)]


def _facts(least_right: jax.Array, least_left: jax.Array, side: jax.Array) -> list[jax.Array]:
    """The facts of the least rank, from the least to either side; a cell ahead is of both."""
    rank = jnp.minimum(least_right, least_left)
    from_food, from_head = jnp.abs(rank // SPAN**2), rank // SPAN % SPAN
    ahead = SPAN // 2 - rank % SPAN
    is_right, is_left = least_right == rank, least_left == rank
    right = (from_head - jnp.abs(ahead)) * (is_right * 1 - is_left * 1)
    facts = [ahead / side, right / side, 1 / from_food, 1 / (1 + from_head)]
    return [jnp.where(rank == NO_CELL, 0.0, fact) for fact in facts]


def reflect_stray_cells(numbers: jax.Array) -> jax.Array:
    """`stray_cells` of the reflected game."""
    signs = jnp.array([1, 1, -1, 1, 1, 1, -1, 1, 1], numbers.dtype)
    return numbers * signs


def soonness(surroundings: View, state: State) -> jax.Array:
    """How soon each cell is free: 1 now, 1/2 after a move, 1/3 after two; 0 of walls."""
    moves = surroundings.vacated * state.length.astype(jnp.float32)
    return (1 - surroundings.wall) / (1 + moves)
