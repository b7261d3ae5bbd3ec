"""Games that begin where an earlier game was late, so that endings are practised more often.

Each environment keeps one position of its own games, the one in which as many cells were free as
was drawn for the game, and begins a share of the later games there, with food elsewhere: restarts
from states of the agent's own experience (Tavakoli et al. 2018, arXiv:1811.11298).
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
from flax import struct

from envs.base import select
from envs.snake import rules
from envs.snake.bitboard import Board
from envs.snake.rules import State

NUM_WORDS = 2
"""Random words that a start consumes besides one for each piece of food."""
LEAST_FREE, MOST_FREE = 0.1, 0.5
"""Shares of the cells that are free in a position that is kept: with fewer, whether the game can
still be won is often decided."""


class Practice(struct.PyTreeNode):
    """What an environment remembers from game to game."""

    position: State  # a late one of a game before, or any as long as there is none
    has_position: jax.Array  # bool
    is_late: jax.Array  # bool, whether the present game began late
    num_free: jax.Array  # int32, cells that will be free when the present game is kept


def start(board: Board, first: State, random_words: jax.Array) -> State:
    """The first game of an environment, in which nothing is kept. Consumes uint32 `[2]`."""
    no, num_free = jnp.zeros((), bool), draw_num_free(board, first, random_words[0])
    return replace(first, practice=Practice(first, no, no, num_free))


def start_after(
    board: Board,
    last: State,
    fresh: State,
    share: float | jax.Array,
    random_words: jax.Array,
    food_words: Sequence[jax.Array],
) -> State:
    """The game after one that ended in `last`: `fresh` or, with probability `share`, a late one.

    The position that is kept is given up after a late game that was lost, also where that game was
    kept in its turn: there may be no way to win.
    Consumes uint32 `[2]` random words, and one for each piece of food.
    """
    practice = last.practice
    is_lost = last.length < rules.num_open(board, last)
    has_position = practice.has_position & ~(practice.is_late & is_lost)
    is_late = has_position & (rules.uniform(random_words[1]) < share)
    late = rules.scatter_food(board, practice.position, food_words)
    late = replace(late, time=fresh.time, hunger=fresh.hunger, mirrored=fresh.mirrored)
    state = select(is_late, late, fresh)
    num_free = draw_num_free(board, state, random_words[0])
    return replace(state, practice=Practice(practice.position, has_position, is_late, num_free))


def keep(board: Board, before: State, state: State) -> State:
    """The state after a move, which is kept if the move left as many cells free as were drawn."""
    practice = state.practice
    num_free = rules.num_open(board, state) - state.length
    is_due = (state.length > before.length) & (num_free == practice.num_free)
    position = select(is_due, replace(state, practice=None), practice.position)
    has_position = practice.has_position | is_due
    return replace(state, practice=practice.replace(position=position, has_position=has_position))


def draw_num_free(board: Board, state: State, random_word: jax.Array) -> jax.Array:
    """A tenth to half of the cells, int32: every doubling as likely as any other."""
    free_share = LEAST_FREE * (MOST_FREE / LEAST_FREE) ** rules.uniform(random_word)
    return (free_share * rules.num_cells(board, state)).astype(jnp.int32)
