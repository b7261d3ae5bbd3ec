"""The free cells that the snake has left behind, and when cells become free, for `gaps`.

What decides whether a board is filled is in small numbers: with two free cells left, food may be
eaten only where the other one lies beside it, as nothing else becomes free for the head. Shares of
the length or of the board tell one or two moves, or free cells, hardly apart; reciprocals do.

A free cell that the snake surrounds can be moved only where its way turns around that cell: instead
of the corner the head takes the free cell, and the corner is left free, diagonally beside it.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard, rules
from envs.snake.bitboard import Board
from envs.snake.rules import State
from envs.snake.scene import cell_from_head, offset_from_head
from envs.snake.views import View, look, order_of

NUM_STRAYS = 18
"""Numbers of `stray_cells`."""
SPAN = 128
"""A power of two above all distances on a board, of 32×32 cells at most: shifts divide by it."""
NO_CELL = jnp.iinfo(jnp.int32).max
"""The rank of no cell."""
CORNERS = ((1, 2, 5), (5, 8, 7), (7, 6, 3), (3, 0, 1))
"""Ways around the middle of 3×3 cells: ahead and right, right and behind, and so on around it."""


class Stray(NamedTuple):
    """A free cell, or two of them that differ in nothing but on which side of the head they lie."""

    exists: jax.Array  # bool
    ahead: jax.Array  # int32, how far ahead of the head
    aside: jax.Array  # int32, how far to its side
    on_side: jax.Array  # bool [2], whether to the right and to the left
    from_food: jax.Array  # int32, distance
    from_head: jax.Array  # int32

    @property
    def right(self) -> jax.Array:
        """How far to the right of the head, int32; 0 of two, which is their mean."""
        to_right, to_left = self.on_side.astype(jnp.int32)
        return self.aside * (to_right - to_left)


def stray_cells(board: Board, state: State) -> list[jax.Array]:
    """One over the number of free cells, and facts of two of them, the food's own apart.

    These are the free cells nearest to the food and farthest from it. One over their distance from
    each other comes first, 0 where they are the same. Then of each how far ahead of the head and to
    its right it lies, over the longer side of the board; one over its distance from the food; one
    over one more than that from the head; and its `corners`. Of several as near to the food, the
    nearest to the head is meant, and of these the foremost; of one to the left and one to the
    right, the mean of both. All are 0 where there is no such cell.
    """
    num_free = rules.num_open(board, state) - state.length
    cells = jnp.asarray(board.indices)  # [C]
    free = bitboard.difference(rules.open_cells(board, state), state.occupied)
    candidates = bitboard.contains(free, cells) & (cells != state.food) & (state.food >= 0)
    from_food = bitboard.distance(board, cells, state.food)
    from_head = bitboard.distance(board, cells, state.head)
    ahead, right = offset_from_head(board, state, cells)

    def first(distance: jax.Array) -> Stray:
        """The candidates that come first, by distance, then nearness to the head."""
        rank = (distance * SPAN + from_head) * SPAN + (SPAN // 2 - ahead)
        least = lambda chosen: jnp.min(jnp.where(candidates & chosen, rank, NO_CELL))
        return _decode(least(right >= 0), least(right <= 0))

    nearest, farthest = first(from_food), first(-from_food)
    apart = jnp.abs(nearest.ahead - farthest.ahead) + jnp.abs(nearest.right - farthest.right)
    closeness = jnp.where(apart > 0, _reciprocal(apart), 0.0)
    facts = [_reciprocal(num_free), closeness]
    side = jnp.asarray(rules.longer_side(board, state) - 1, jnp.float32)
    for stray in (nearest, farthest):
        place = [jnp.float32(offset) / side for offset in (stray.ahead, stray.right)]
        nearness = [_reciprocal(stray.from_food), _reciprocal(1 + stray.from_head)]
        numbers = [*place, *nearness, *corners(board, state, stray)]
        facts += [jnp.where(stray.exists, number, 0.0) for number in numbers]
    return facts


def _reciprocal(count: jax.Array) -> jax.Array:
    """One over a whole number, float32; 1 for none."""
    return 1 / jnp.maximum(count, 1).astype(jnp.float32)


def _decode(least_right: jax.Array, least_left: jax.Array) -> Stray:
    """The cells of the least ranks to the right and to the left; one ahead or behind is of both."""
    rank = jnp.minimum(least_right, least_left)
    ahead, from_head = SPAN // 2 - rank % SPAN, rank // SPAN % SPAN
    return Stray(
        exists=rank != NO_CELL,
        ahead=ahead,
        aside=from_head - jnp.abs(ahead),
        on_side=jnp.stack([least_right, least_left]) == rank,
        from_food=jnp.abs(rank // SPAN**2),
        from_head=from_head,
    )


def corners(board: Board, state: State, stray: Stray) -> list[jax.Array]:
    """Whether the body turns around a free cell: its way over each of `CORNERS`, 0 or 1.

    Of two cells, the mean. Raises ValueError unless the game keeps the order of the body.
    """

    def turns(right: jax.Array) -> jax.Array:
        cell = cell_from_head(board, state, stray.ahead, right)
        _, square = look(board, replace(state, head=cell), 1, order_of(state), np.int16(0))
        before, corner, after = (square[np.array(way)] for way in zip(*CORNERS, strict=True))
        follows = (corner - before == after - corner) & (jnp.abs(after - corner) == 1)
        return (follows & (jnp.minimum(before, after) > 0)).astype(jnp.float32)

    weights = stray.on_side.astype(jnp.float32)
    of_both = jnp.stack([turns(stray.aside), turns(-stray.aside)])
    return list(jnp.sum(weights[:, None] * of_both, axis=0) / jnp.sum(weights))


def reflect_stray_cells(numbers: jax.Array) -> jax.Array:
    """`stray_cells` of the reflected game."""
    reflected_corners = [7, 6, 5, 4]  # of what is told of one cell
    places = np.array([0, 1, 2, 3, *reflected_corners])
    signs = jnp.array([1, 1, *(1, -1, 1, 1, 1, 1, 1, 1) * 2], numbers.dtype)
    return numbers[np.array([0, 1, *(2 + places), *(10 + places)])] * signs


def soonness(surroundings: View, state: State) -> jax.Array:
    """How soon each cell is free: 1 now, 1/2 after a move, 1/3 after two; 0 of walls."""
    moves = surroundings.vacated * state.length.astype(jnp.float32)
    return (1 - surroundings.wall) / (1 + moves)
