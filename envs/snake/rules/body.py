"""The body of a snake: its step, and the order of its cells from the tail to the head."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from envs.snake import bitboard
from envs.snake.bitboard import Board
from envs.snake.rules.headings import offset
from envs.snake.rules.state import AnyBody, Body


def exit_heading(body: Body, cell: jax.Array) -> jax.Array:
    """The direction in which the snake left a cell of its body."""
    low, high = (bitboard.contains(plane, cell).astype(jnp.int32) for plane in body.exits)
    return low + 2 * high


def advance(board: Board, body: AnyBody, heading: jax.Array, grows: jax.Array) -> AnyBody:
    """The body one step towards `heading`, whatever is there; its tail stays where it `grows`."""
    target = body.head + offset(board, heading)
    tail_bit = bitboard.single(body.tail, board.num_words)
    head_bit = bitboard.single(body.head, board.num_words)
    kept_cells = bitboard.where(grows, body.occupied, bitboard.difference(body.occupied, tail_bit))
    low, high = body.exits
    tail_heading = exit_heading(body, body.tail)
    without_head = tuple(bitboard.difference(plane, head_bit) for plane in (low, high))
    return replace(
        body,
        occupied=bitboard.union(kept_cells, bitboard.single(target, board.num_words)),
        exits=(
            bitboard.where(heading & 1 != 0, bitboard.union(low, head_bit), without_head[0]),
            bitboard.where(heading & 2 != 0, bitboard.union(high, head_bit), without_head[1]),
        ),
        head=target,
        tail=jnp.where(grows, body.tail, body.tail + offset(board, tail_heading)),
        heading=heading,
        length=body.length + grows.astype(jnp.int32),
        order=_advance_order(board, body, target, grows),
    )


def order(board: Board, state: Body) -> jax.Array:
    """Int32 `[rows, cols]`: 1 at the tail, rising along the body to `length` at the head, else 0.

    Walks the body, in time proportional to its length: for pictures and tests.
    """

    def walk(rank, carry):
        ranks, cell = carry
        ranks = ranks.at[board.row(cell), board.col(cell)].set(rank)
        return ranks, cell + offset(board, exit_heading(state, cell))

    no_ranks = jnp.zeros((board.rows, board.cols), jnp.int32)
    return jax.lax.fori_loop(1, state.length + 1, walk, (no_ranks, state.tail))[0]


def order_of(board: Board, cells: list[jax.Array]) -> jax.Array:
    """`Body.order` of a snake that covers `cells`, head first."""
    order = jnp.zeros(board.num_cells, jnp.int16)
    for rank, cell in enumerate(reversed(cells), start=1):
        order = jnp.where(board.indices == cell, jnp.int16(rank), order)
    return order


def _advance_order(
    board: Board, body: Body, target: jax.Array, grows: jax.Array
) -> jax.Array | None:
    """`Body.order` once the head is on `target`: all ranks fall by one unless the tail stays."""
    if body.order is None:
        return None
    lowered_ranks = jnp.maximum(body.order - (~grows).astype(jnp.int16), 0)
    length = (body.length + grows.astype(jnp.int32)).astype(jnp.int16)
    return jnp.where(board.indices == target, length, lowered_ranks)
