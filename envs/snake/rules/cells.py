"""The cells that are played on, and those that the head may enter."""

import jax
import jax.numpy as jnp

from envs.snake import bitboard
from envs.snake.bitboard import Bits, Board
from envs.snake.rules.state import State
from envs.snake.rules.versions import Rules


def size_of(board: Board, state: State) -> tuple[int, int] | tuple[jax.Array, jax.Array]:
    """The rows and columns that are played on."""
    return (board.rows, board.cols) if state.size is None else (state.size[0], state.size[1])


def num_cells(board: Board, state: State) -> int | jax.Array:
    """The number of cells that are played on, obstacles among them."""
    rows, cols = size_of(board, state)
    return rows * cols


def longer_side(board: Board, state: State) -> int | jax.Array:
    """The larger number of the rows and columns that are played on."""
    return max(board.rows, board.cols) if state.size is None else jnp.max(state.size)


def open_cells(board: Board, state: State) -> Bits:
    """The cells of the board that are no obstacles, the snake's among them."""
    if state.obstacles is None:
        return board.cells
    return bitboard.difference(board.cells, state.obstacles)


def num_open(board: Board, state: State) -> jax.Array | int:
    """The number of `open_cells`: the length of a snake that has filled the board."""
    if state.obstacles is None or state.size is not None:
        return num_cells(board, state)
    return board.num_cells - bitboard.count(state.obstacles)


def deadly_body(board: Board, rules: Rules, state: State) -> Bits:
    """The body cells that are deadly to move into now."""
    if rules.tail_is_fatal:
        return state.occupied
    return bitboard.difference(state.occupied, bitboard.single(state.tail, board.num_words))


def free_cells(board: Board, rules: Rules, state: State) -> Bits:
    """The cells the head may move into."""
    return bitboard.difference(open_cells(board, state), deadly_body(board, rules, state))
