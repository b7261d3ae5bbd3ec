"""A game from one snake's side: its own body, the other's, and the cells each can reach.

Moves are forward, left, right; a mask of moves is a uint32 with forward as its lowest bit.
"""

import operator
from dataclasses import replace
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs import bounded_loop
from envs.snake import bitboard
from envs.snake import rules as snake
from envs.snake.bitboard import Bits, Board, distance
from envs.snake.rules import START_LENGTH, Body
from envs.two_snake.rules import State, cells_of_others, lives, starts

NUM_MOVES = 3


class Crowd(struct.PyTreeNode):
    """All other snakes, where there are several; scalars unless said otherwise."""

    heads: Bits  # of those alive
    length: jax.Array  # the cells of all
    places: jax.Array | None  # float32 [cells]: 1 at each head falling to 1/length at each tail


class View(struct.PyTreeNode):
    """A game as one of its snakes sees it; scalars.

    Of several others, `other` is the nearest that is alive, by the distance of the heads, and of
    those the first; but its `occupied` and its `order` are those of all, and its score is the
    highest of them.
    """

    own: Body
    other: Body
    lives: jax.Array
    other_lives: jax.Array
    score: jax.Array
    other_score: jax.Array
    hunger: jax.Array
    food: jax.Array
    crowd: Crowd | None = None


class Regions(struct.PyTreeNode):
    """The cells that the snakes can reach."""

    reached: Bits  # words [3]: by paths that begin with each move; empty if it is blocked
    mine: jax.Array  # int32: empty cells with a shorter path to the own head than to the other's


def all_views(board: Board, state: State) -> View:
    """The game as each of its snakes sees it: leaves `[P, ...]`, the learner's first."""
    if len(state.score) > 2:
        views = [_crowded_view(board, state, player) for player in range(len(state.score))]
        return jax.tree.map(lambda *each: jnp.stack(each), *views)
    alive = lives(state)
    return View(
        own=state.snakes,
        other=jax.tree.map(lambda x: x[::-1], state.snakes),
        lives=alive,
        other_lives=alive[::-1],
        score=state.score,
        other_score=state.score[::-1],
        hunger=state.hunger,
        food=jnp.stack([state.food, state.food]),
    )


def view(board: Board, state: State, player: int) -> View:
    """The game as one player sees it: 0 is the learner."""
    if len(state.score) > 2:
        return _crowded_view(board, state, player)
    return jax.tree.map(lambda x: x[player], all_views(board, state))


def _crowded_view(board: Board, state: State, player: int) -> View:
    """`view` where there are several others."""
    others = jnp.array([i for i in range(len(state.score)) if i != player])
    of_others = lambda tree: jax.tree.map(lambda x: x[others], tree)
    own = jax.tree.map(lambda x: x[player], state.snakes)
    snakes, alive = of_others(state.snakes), of_others(lives(state))
    far = jnp.where(alive, distance(board, own.head, snakes.head), np.iinfo(np.int32).max)
    nearest = jax.tree.map(lambda x: x[jnp.argmin(far)], snakes)
    cells = tuple(word[player] for word in cells_of_others(state.snakes))
    heads = bitboard.single(snakes.head, board.num_words)  # words [P - 1]
    places = order = None
    if snakes.order is not None:
        order = jnp.sum(snakes.order, axis=0, dtype=snakes.order.dtype)
        shares = snakes.order.astype(jnp.float32) / jnp.maximum(snakes.length, 1)[:, None]
        places = jnp.sum(shares, axis=0)
    return View(
        own=own,
        other=replace(nearest, occupied=cells, order=order),
        lives=lives(state)[player],
        other_lives=jnp.any(alive),
        score=state.score[player],
        other_score=jnp.max(state.score[others]),
        hunger=state.hunger[player],
        food=state.food,
        crowd=Crowd(
            tuple(reduce(operator.or_, list(x)) for x in heads), jnp.sum(snakes.length), places
        ),
    )


def length_of_others(view: View) -> jax.Array:
    """The cells that all others cover, int32."""
    return view.other.length if view.crowd is None else view.crowd.length


def free_cells(board: Board, view: View) -> Bits:
    """The cells that the head may enter without any risk from what is there now.

    The own tail moves on and is free. The other's whole body is not: its tail stays if it eats.
    """
    tail = bitboard.single(view.own.tail, board.num_words)
    body = bitboard.difference(view.own.occupied, tail)
    return bitboard.difference(board.cells, bitboard.union(body, view.other.occupied))


def num_free(board: Board, view: View) -> jax.Array:
    """The number of `free_cells` of a living snake, int32, at least 1: its own tail."""
    return board.num_cells - view.own.length - length_of_others(view) + 1


def cells_ahead(board: Board, view: View) -> Bits:
    """The cells forward, left and right of the head as sets: words `[3]`."""
    return bitboard.single(jnp.stack(snake.candidates(board, view.own)), board.num_words)


def open_moves(board: Board, view: View) -> jax.Array:
    """The mask of moves to a free cell."""
    return mask(bitboard.intersects(cells_ahead(board, view), free_cells(board, view)))


def mask(moves: jax.Array) -> jax.Array:
    """The uint32 mask of bools `[3]`."""
    bits = moves.astype(jnp.uint32)
    return bits[0] | bits[1] << 1 | bits[2] << 2


def reachable_cells(board: Board, view: View) -> Bits:
    """Flood fill through the free cells from each of the three ahead: words `[3]`."""
    free = free_cells(board, view)
    return jax.vmap(lambda seed: bitboard.flood(board, seed, free))(cells_ahead(board, view))


def regions(board: Board, view: View) -> Regions:
    """The regions of a game, by search."""
    return Regions(reachable_cells(board, view), bitboard.count(territory(board, view)))


def territory(board: Board, view: View) -> Bits:
    """The empty cells that the own head reaches in fewer moves than any other.

    All heads flood the empty cells in step. A cell that both reach at once belongs to neither but
    is passable for both: each set holds what its head reaches first or at the same time, and the
    difference is what it reaches first.
    """
    covered = bitboard.union(view.own.occupied, view.other.occupied)
    empty = bitboard.difference(board.cells, covered)

    def grow(carry: tuple[Bits, Bits, jax.Array]) -> tuple[Bits, Bits, jax.Array]:
        mine, theirs, _ = carry
        unreached = bitboard.difference(empty, bitboard.union(mine, theirs))
        my_new, their_new = (
            bitboard.intersection(bitboard.neighbourhood(board, cells), unreached)
            for cells in (mine, theirs)
        )
        grew = bitboard.intersects(bitboard.union(my_new, their_new), empty)
        return bitboard.union(mine, my_new), bitboard.union(theirs, their_new), grew

    head, their_head = (
        bitboard.single(body.head, board.num_words) for body in (view.own, view.other)
    )
    their_heads = their_head if view.crowd is None else view.crowd.heads
    start = head, their_heads, jnp.bool_(True)
    mine, theirs, _ = bounded_loop.while_loop(
        lambda carry: carry[2], grow, start, most_rounds=board.longest_path, to_fixed_point=True
    )
    return bitboard.intersection(bitboard.difference(mine, theirs), empty)


def initial_regions(board: Board, view: View) -> Regions:
    """`regions` of a new game; of two snakes without a search.

    Two straight snakes that face each other in one row divide nothing, so every move leads to all
    free cells. The head whose column is nearer to a cell's is nearer to it: the rows between are
    the same for both, and so is the detour to what lies in their row behind a tail.
    """
    if view.crowd is not None:
        return regions(board, view)
    (_, left), (_, right) = (cells[0] for cells in starts(board))
    to_left, to_right = (abs(np.arange(board.cols) - head) for head in (left, right))
    mine, theirs = (
        int(np.sum(columns)) * board.rows - START_LENGTH
        for columns in (to_left < to_right, to_left > to_right)
    )
    return Regions(
        reached=tuple(jnp.broadcast_to(word, (NUM_MOVES,)) for word in free_cells(board, view)),
        mine=jnp.where(board.col(view.own.head) == left, mine, theirs),
    )
