"""Food: where it lies, where the next piece is drawn, and which of several is the nearest."""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard
from envs.snake.bitboard import Bits, Board
from envs.snake.rules.cells import num_open, open_cells
from envs.snake.rules.state import State


def draw_food(board: Board, state: State, random_word: jax.Array) -> jax.Array:
    """A uniform cell without snake, obstacle or other food; -1 if there is none."""
    empty = bitboard.difference(open_cells(board, state), state.occupied)
    if state.foods is None:
        return bitboard.draw(empty, num_open(board, state) - state.length, random_word)
    empty = bitboard.difference(empty, food_cells(board, state))
    return bitboard.draw(empty, bitboard.count(empty), random_word)


def scatter_food(board: Board, state: State, random_words: Sequence[jax.Array]) -> State:
    """A new game with as many pieces of food as random words."""
    if len(random_words) == 1:
        return replace(state, food=draw_food(board, state, random_words[0]))

    def add(foods: jax.Array, piece: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        place, random_word = piece
        cell = draw_food(board, replace(state, foods=foods), random_word)
        return jnp.where(places == place, cell, foods), None

    places = jnp.arange(len(random_words), dtype=jnp.int32)
    no_foods = jnp.full_like(places, -1)
    foods, _ = jax.lax.scan(add, no_foods, (places, jnp.stack(random_words)))
    return replace(state, foods=foods, food=nearest_food(board, state.head, foods))


def food_cells(board: Board, state: State) -> Bits:
    """The cells on which food lies."""
    if state.foods is None:
        return bitboard.single(state.food, board.num_words)
    pieces = bitboard.single(state.foods, board.num_words)  # words [K]
    no_cells = np.uint32(0)
    return tuple(jax.lax.reduce(word, no_cells, jax.lax.bitwise_or, (0,)) for word in pieces)


def nearest_food(board: Board, head: jax.Array, foods: jax.Array) -> jax.Array:
    """The nearest of `foods` `[K]`, of several the one in the first cell; -1 if there is none."""
    size, nowhere = board.rows * board.stride, np.iinfo(np.int32).max
    ranks = bitboard.distance(board, head, foods) * size + foods
    least = jnp.min(jnp.where(foods >= 0, ranks, nowhere))
    return jnp.where(least == nowhere, -1, least % size)


def is_food(state: State, cell: jax.Array) -> jax.Array:
    """Whether food lies on a cell of the board."""
    return cell == state.food if state.foods is None else jnp.any(cell == state.foods)


def replace_food(board: Board, state: State, ate: jax.Array, random_word: jax.Array) -> State:
    """The state in which food that the head has just eaten lies elsewhere."""
    food = draw_food(board, state, random_word)
    if state.foods is None:
        return replace(state, food=jnp.where(ate, food, state.food))
    foods = jnp.where(ate & (state.foods == state.head), food, state.foods)
    return replace(state, foods=foods, food=nearest_food(board, state.head, foods))
