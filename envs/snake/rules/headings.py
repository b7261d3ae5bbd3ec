"""Headings: which one an action asks for, and where a step towards it leads.

Headings and directions are 0 up, 1 right, 2 down, 3 left everywhere.
"""

import jax
import jax.numpy as jnp

from envs.snake.bitboard import Board
from envs.snake.rules.state import Body

STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # (row, col) of up, right, down, left


def turn(state: Body, action: jax.Array, relative: bool) -> jax.Array:
    """The heading an action asks for.

    Relative actions are 0 forward, 1 left, 2 right. Absolute actions are headings; the reverse of
    the present one is ignored.
    """
    if relative:
        quarter_turns = jnp.array([0, 3, 1], jnp.int32)
        return (state.heading + quarter_turns[action]) & 3
    reverses = (action ^ state.heading) == 2
    return jnp.where(reverses, state.heading, action).astype(jnp.int32)


def turn_to(heading: jax.Array, new_heading: jax.Array | int) -> jax.Array:
    """The relative action that `turn`s one heading into another; for the reverse 0, forward."""
    return jnp.array([0, 2, 0, 1], jnp.int32)[(new_heading - heading) & 3]


def offset(board: Board, heading: jax.Array) -> jax.Array:
    """How much one step changes the index of a cell."""
    distance = jnp.where(heading & 1 != 0, 1, board.stride)
    return jnp.where((heading == 0) | (heading == 3), -distance, distance)


def candidates(board: Board, state: Body) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The cells forward, left and right of the head; possibly off the board."""
    headings = (state.heading, (state.heading + 3) & 3, (state.heading + 1) & 3)
    ahead, left, right = (state.head + offset(board, heading) for heading in headings)
    return ahead, left, right
