"""A game of Snake as arrays to draw: cells row by row, moment after moment.

Axis letters: M moments of a game, C cells of the board, row by row. A cell is its number in that
order, -1 for none.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from envs.snake import bitboard, rules, scene
from envs.snake.bitboard import Bits, Board
from envs.snake.pictures import drawing
from envs.snake.rules import Body, Rules, State

NEVER = np.iinfo(np.int32).min


def game_arrays(board: Board, rules_: Rules, states: State) -> dict[str, np.ndarray]:
    """The game `states` `[M, ...]`: its snake, its food, and what may happen next.

    `reach` is uint8 `[M, C]`: bit 0, 1, 2 of a cell is set where a flood fill that begins forward,
    left, right of the head gets there. `ahead` int32 `[M, 3]` are these three cells, `danger` bool
    `[M, 3]` whether moving there kills. Of several pieces of food, `food` is the nearest and
    `foods` int32 `[M, K]` are all; where there are obstacles, `obstacles` is uint8 `[M, C]`, 1 at
    each.
    """
    reach, ahead, danger = (
        np.asarray(x) for x in _prospects(board, rules_, jax.tree.map(jnp.asarray, states))
    )
    layout = {}
    if states.foods is not None:
        layout["foods"] = number_of(board, states.foods)
    if states.obstacles is not None:
        layout["obstacles"] = drawing.members(board, states.obstacles).astype(np.uint8)
    return {
        **body_arrays(board, states),
        **layout,
        "food": number_of(board, states.food),
        "reach": reach,
        "ahead": number_of(board, ahead),
        "danger": danger,
    }


def body_arrays(board: Board, bodies: Body) -> dict[str, np.ndarray]:
    """One snake `[M, ...]`: `head` and `heading` `[M]`, and `entered` int32 `[M, C]`.

    `entered` is the moment at which the head came to a cell of the body, negative if that was
    before the game began, and `NEVER` elsewhere. From one moment to the next only the cells of head
    and tail change, so that a game takes few bytes when compressed.
    """
    order = drawing.orders_of(board, bodies).reshape(len(bodies.head), -1)  # [M, C]
    length, moment = np.asarray(bodies.length)[:, None], np.arange(len(order))[:, None]
    num_still = np.cumsum(np.diff(np.asarray(bodies.head), prepend=-1) == 0)[:, None]  # a crash
    entered = np.where(order > 0, order - length + moment - num_still, NEVER)
    return {
        "head": number_of(board, bodies.head),
        "heading": np.asarray(bodies.heading, np.uint8),
        "entered": entered.astype(np.int32),
    }


def number_of(board: Board, cell: ArrayLike) -> np.ndarray:
    """The numbers of cells given as `Board.index`, int32; -1 for cells that are not on the board.

    Beyond an edge lies the guard bit of a row, or no row.
    """
    row, col = np.divmod(np.asarray(cell), board.stride)
    is_inside = (row >= 0) & (row < board.rows) & (col < board.cols)
    return np.where(is_inside, row * board.cols + col, -1).astype(np.int32)


def cell_at(board: Board, place: tuple[float, float]) -> jax.Array:
    """The index of the cell that holds the point (x, y), in cells from the upper left corner.

    Raises ValueError if there is none.
    """
    col, row = (int(np.floor(x)) for x in place)
    if not (0 <= row < board.rows and 0 <= col < board.cols):
        raise ValueError(f"there is no cell in row {row}, column {col}; choose one of the board")
    return jnp.int32(board.index(row, col))


def empty_cell_at(board: Board, occupied: Bits, place: tuple[float, float]) -> jax.Array:
    """The same; raises ValueError where a snake lies, too.

    `occupied` may have leading axes, of several snakes.
    """
    cell = cell_at(board, place)
    if bool(jnp.any(bitboard.contains(occupied, cell))):
        raise ValueError("a snake lies there; choose an empty cell")
    return cell


@partial(jax.jit, static_argnums=(0, 1))
def _prospects(
    board: Board, rules_: Rules, states: State
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`(reach [M, C], ahead [M, 3], danger [M, 3])` of `game_arrays`."""

    def game_prospects(state: State):
        regions = scene.flood_regions(board, rules_, state)
        is_inside = bitboard.contains(
            regions.reached, jnp.asarray(board.indices)[:, None]
        )  # [C, 3]
        bits = jnp.sum(is_inside * jnp.array([[1, 2, 4]], jnp.uint8), axis=1, dtype=jnp.uint8)
        free = rules.free_cells(board, rules_, state)
        ahead = jnp.stack(rules.candidates(board, state))
        return bits, ahead, ~bitboard.contains(free, ahead)

    return jax.lax.map(game_prospects, states, batch_size=256)
