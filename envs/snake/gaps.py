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
AHEAD = 64  # more than any distance on a board in one direction


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
    real = lambda x: jnp.asarray(x, jnp.float32)
    side = real(rules.longer_side(board, state) - 1)
    nearness = 1 / real(jnp.maximum(from_food, 1)), 1 / real(1 + from_head)
    facts = jnp.stack([real(ahead) / side, real(right) / side, *nearness])  # [4, C]

    def of_first(distance: jax.Array) -> list[jax.Array]:
        """The facts of the candidates that come first, by distance, then nearness to the head."""
        rank = (distance * 2 * AHEAD + from_head) * 2 * AHEAD + AHEAD - ahead
        rank = jnp.where(candidates, rank, jnp.iinfo(jnp.int32).max)
        is_first = candidates & (rank == jnp.min(rank))
        sums = jnp.sum(jnp.where(is_first, facts, 0.0), axis=1)
        return list(sums / real(jnp.maximum(jnp.sum(is_first), 1)))

    return [1 / real(jnp.maximum(num_free, 1)), *of_first(from_food), *of_first(-from_food)]


def reflect_stray_cells(numbers: jax.Array) -> jax.Array:
    """`stray_cells` of the reflected game."""
    signs = jnp.array([1, 1, -1, 1, 1, 1, -1, 1, 1], numbers.dtype)
    return numbers * signs


def soonness(surroundings: View, state: State) -> jax.Array:
    """How soon each cell is free: 1 now, 1/2 after a move, 1/3 after two; 0 of walls."""
    moves = surroundings.vacated * state.length.astype(jnp.float32)
    return (1 - surroundings.wall) / (1 + moves)
