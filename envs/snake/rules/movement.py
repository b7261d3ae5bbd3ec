"""A move: the step of the snake, and whether it eats or dies; whether any move is left."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from envs.snake import bitboard
from envs.snake.bitboard import Board
from envs.snake.rules.body import advance
from envs.snake.rules.cells import free_cells, num_open
from envs.snake.rules.food import is_food, replace_food
from envs.snake.rules.headings import candidates, offset
from envs.snake.rules.state import Event, State
from envs.snake.rules.versions import Rules


def move(
    board: Board, rules: Rules, state: State, heading: jax.Array, random_word: jax.Array
) -> tuple[State, Event]:
    """One step towards `heading`. A deadly one advances only the time counters."""
    target = state.head + offset(board, heading)
    survives = bitboard.contains(free_cells(board, rules, state), target)
    ate = survives & is_food(state, target)

    hunger = jnp.where(ate, -1, state.hunger)
    moved_state = replace(advance(board, state, heading, ate), hunger=hunger)
    state = jax.tree.map(lambda new, old: jnp.where(survives, new, old), moved_state, state)
    state = replace_food(board, state, ate, random_word)
    state = replace(state, time=state.time + 1, hunger=state.hunger + 1)
    died, filled = ~survives, ate & (state.length == num_open(board, state))
    return state, Event(ate, died, filled)


def is_entrapped(board: Board, rules: Rules, state: State) -> jax.Array:
    """Whether every move kills."""
    free = free_cells(board, rules, state)
    ahead, left, right = (bitboard.contains(free, cell) for cell in candidates(board, state))
    return ~(ahead | left | right)
