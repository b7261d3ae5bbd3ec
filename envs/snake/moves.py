"""The possible moves of a snake and their consequences, for scripted players.

Moves come in the order forward, left, right. A reversal is none of them, as it always kills.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import bounded_loop
from envs.snake import bitboard
from envs.snake import rules as game
from envs.snake.bitboard import Bits, Board
from envs.snake.rules import Rules, State

TURNS = np.array([0, 3, 1], np.int32)  # quarters to the right: forward, left, right


class Moves(NamedTuple):
    """The three moves, each `[3]`."""

    heading: jax.Array  # int32
    target: jax.Array  # int32, the cell that the head would enter, possibly off the board
    is_safe: jax.Array  # bool, it does not kill at once


def moves(board: Board, rules: Rules, state: State) -> Moves:
    """Where each of the three moves leads, and whether it is safe."""
    heading = (state.heading + TURNS) & 3
    target = state.head + game.offset(board, heading)
    return Moves(heading, target, bitboard.contains(game.free_cells(board, rules, state), target))


def first_heading(options: Moves, is_wanted: jax.Array) -> jax.Array:
    """The heading of the first move that is wanted `[3]`, else the first safe one, else forward."""
    first_wanted, first_safe = jnp.argmax(is_wanted), jnp.argmax(options.is_safe)
    return options.heading[jnp.where(jnp.any(is_wanted), first_wanted, first_safe)]


def leads_to_food(board: Board, rules: Rules, state: State, options: Moves) -> jax.Array:
    """Bool `[3]`: whether a shortest path to food, through free cells, begins with each move.

    All False if there is no path.
    """
    nearest, _ = _search(board, rules, state, game.food_cells(board, state))
    return bitboard.contains(nearest, options.target)


class Prospect(NamedTuple):
    """The consequences of a move."""

    is_sound: jax.Array  # bool, it fills the board, or leaves a path to the tail
    path: jax.Array  # int32, steps of that path but the first; meaningless if there is none
    room: jax.Array  # int32, cells that the head can reach afterwards


def prospect(board: Board, rules: Rules, state: State, heading: jax.Array) -> Prospect:
    """The consequences of a safe move, computed in the position after it."""
    next_state, event = game.move(board, rules, state, heading, jnp.uint32(0))
    tail = bitboard.single(next_state.tail, board.num_words)
    nearest, path = _search(board, rules, next_state, tail)
    doors, free = _doors(board, rules, next_state), game.free_cells(board, rules, next_state)
    room = bitboard.count(bitboard.flood(board, doors, free))
    return Prospect(event.filled | bitboard.intersects(nearest, doors), path, room)


def _doors(board: Board, rules: Rules, state: State) -> Bits:
    """The cells that the next move may enter."""
    head = bitboard.single(state.head, board.num_words)
    free = game.free_cells(board, rules, state)
    return bitboard.intersection(bitboard.neighbourhood(board, head), free)


def _search(board: Board, rules: Rules, state: State, goal: Bits) -> tuple[Bits, jax.Array]:
    """The cells of the next move from which the path to `goal` is shortest, and its length.

    No cells if there is no path.
    """
    free, doors = game.free_cells(board, rules, state), _doors(board, rules, state)

    def grow(carry: tuple[Bits, jax.Array, jax.Array]) -> tuple[Bits, jax.Array, jax.Array]:
        reached, _, steps = carry
        expanded = bitboard.intersection(bitboard.neighbourhood(board, reached), free)
        return (
            expanded,
            bitboard.intersects(bitboard.difference(expanded, reached), free),
            steps + 1,
        )

    def continues(carry: tuple[Bits, jax.Array, jax.Array]) -> jax.Array:
        reached, has_grown, _ = carry
        return has_grown & ~bitboard.intersects(reached, doors)

    start = goal, jnp.bool_(True), jnp.int32(0)
    reached, _, steps = bounded_loop.while_loop(
        continues, grow, start, most_rounds=board.longest_path
    )
    return bitboard.intersection(reached, doors), steps
