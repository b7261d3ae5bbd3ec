"""The cells around the head of a Snake, rotated so that it always moves upwards."""

import math
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard
from envs.snake.bitboard import Board
from envs.snake.rules import STEPS, Body, State


class View(NamedTuple):
    """The cells of a square with the head in its middle, row by row, the first row farthest ahead.

    Each is float32 `[side * side]` with side = 2 * radius + 1.
    """

    wall: jax.Array  # 1 where there is no board, and at obstacles
    vacated: jax.Array  # moves until the tail has left a cell of the body, over length; else 0
    food: jax.Array  # 1 at food


def view(board: Board, state: State, radius: int) -> View:
    """The square of `radius` cells each way; `full_radius(board)` is the least to show all cells.

    Raises ValueError unless the game keeps the order of the body.
    """
    order = order_of(state)
    if state.obstacles is not None:
        is_obstacle = bitboard.contains(state.obstacles, jnp.asarray(board.indices))
        order = jnp.where(is_obstacle, np.int16(-1), order)
    cells, ranks = look(board, state, radius, order, np.int16(-1))
    on_board = ranks >= 0
    length = state.length.astype(jnp.float32)
    if state.foods is None:
        food = (cells == _padded_place(board, radius, state.food)) & (state.food >= 0)
    else:
        places = _padded_place(board, radius, state.foods)[:, None]  # [K, 1]
        food = jnp.any((cells[None, :] == places) & (state.foods >= 0)[:, None], axis=0)
    return View(
        wall=(~on_board).astype(jnp.float32),
        vacated=jnp.maximum(ranks, 0).astype(jnp.float32) * (1 / length),
        food=food.astype(jnp.float32),
    )


def middle(square: View, radius: int) -> View:
    """The cells of a square within a smaller radius of the head."""

    def cut(values: jax.Array) -> jax.Array:
        side = math.isqrt(values.size)
        rim = side // 2 - radius
        return values.reshape(side, side)[rim : side - rim, rim : side - rim].reshape(-1)

    return View(*(cut(values) for values in square))


def order_of(body: Body) -> jax.Array:
    """The order of a body. Raises ValueError for one that was started without."""
    if body.order is None:
        raise ValueError("the game was started without the order of its body: use keep_order=True")
    return body.order


def look(
    board: Board, body: Body, radius: int, values: jax.Array, outside: np.generic
) -> tuple[jax.Array, jax.Array]:
    """`values` `[cells]` of the board in the square around a head, `outside` where there is none.

    Returns `(places, values)`, both `[side * side]`: where each cell of the square lies in the
    board that is padded by `radius`, and its value.
    """
    places = (
        _padded_place(board, radius, body.head) + jnp.asarray(_offsets(board, radius))[body.heading]
    )
    padded = jnp.pad(values.reshape(board.rows, board.cols), radius, constant_values=outside)
    return places, padded.reshape(-1).at[places].get(mode="promise_in_bounds")


def full_radius(board: Board) -> int:
    """The radius within which every cell of the board lies, wherever the head is."""
    return max(board.rows, board.cols) - 1


def _padded_place(board: Board, radius: int, cell: jax.Array) -> jax.Array:
    """Where a cell lies in the board that is padded by `radius` on all sides, flattened."""
    return (board.row(cell) + radius) * (board.cols + 2 * radius) + board.col(cell) + radius


@lru_cache
def _offsets(board: Board, radius: int) -> np.ndarray:
    """Int32 `[4, side * side]`: for each heading, the offset from the head to each cell."""
    near_to_far = np.arange(-radius, radius + 1)
    ahead, right = np.meshgrid(near_to_far[::-1], near_to_far, indexing="ij")
    tables = []
    for heading in range(4):
        (down, along), (down_right, along_right) = STEPS[heading], STEPS[(heading + 1) % 4]
        rows, cols = ahead * down + right * down_right, ahead * along + right * along_right
        tables.append(rows * (board.cols + 2 * radius) + cols)
    return np.stack(tables).reshape(4, -1).astype(np.int32)
