"""Hamiltonian cycles of a board, or Hamiltonian paths where it has no cycle.

On a chessboard colouring every step changes the colour, so a cycle needs as many dark cells as
light ones, which a board with two odd sides does not have.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from envs.snake.bitboard import WORD, Board


class Cycle(NamedTuple):
    """The tour of a board, as read-only tables. Cells are indices of `Board.index`."""

    order: np.ndarray  # int32 [cells], the cells one after the other
    rank: np.ndarray  # int32 [rows * stride], the place of each index in `order`; -1 for a guard
    is_closed: bool  # the last cell lies beside the first


@lru_cache(maxsize=32)
def cycle(board: Board) -> Cycle:
    """A Hamiltonian cycle of the board if a side is even, else a Hamiltonian path.

    The path covers the rows from the top, in alternating directions. The cycle does so in all
    columns but one, along which it returns (or rows and columns exchanged).
    """
    if board.rows % 2 == 0:
        path = _closed_zigzag(board.rows, board.cols)
    elif board.cols % 2 == 0:
        path = _closed_zigzag(board.cols, board.rows)[:, ::-1]
    else:
        path = _zigzag(board.rows, board.cols)
    order = (path[:, 0] * board.stride + path[:, 1]).astype(np.int32)
    rank = np.full(board.rows * board.stride, -1, np.int32)
    rank[order] = np.arange(board.num_cells)
    return Cycle(_make_read_only(order), _make_read_only(rank), is_closed=board.num_cells % 2 == 0)


@lru_cache(maxsize=32)
def prefixes(board: Board) -> tuple[np.ndarray, ...]:
    """The first i cells of the tour as a set of `envs.snake.bitboard`, for i from 0 to all.

    Returns one read-only uint32 `[cells + 1]` for each word: word w of set i is `[w][i]`. The cells
    at places a to b - 1 of the tour are those of set b without those of set a.
    """
    order = cycle(board).order
    bits = np.zeros((board.num_cells + 1, board.num_words), np.uint32)
    places = np.arange(1, board.num_cells + 1)
    bits[places, order // WORD] = np.uint32(1) << (order % WORD).astype(np.uint32)
    sets = np.bitwise_or.accumulate(bits, axis=0)
    return tuple(_make_read_only(np.ascontiguousarray(word)) for word in sets.T)


def _make_read_only(table: np.ndarray) -> np.ndarray:
    """The table, made read-only, because the cache shares it."""
    table.flags.writeable = False
    return table


def _zigzag(rows: int, cols: int) -> np.ndarray:
    """(row, col) `[rows * cols, 2]`: the rows from the top, in alternating directions."""
    row, col = np.indices((rows, cols))
    col[1::2] = col[1::2, ::-1]
    return np.stack([row, col], -1).reshape(-1, 2)


def _closed_zigzag(rows: int, cols: int) -> np.ndarray:
    """(row, col) `[rows * cols, 2]` of a cycle; `rows` is even.

    A path as of `_zigzag` over all columns but the first, which leads back to the top.
    """
    zigzag = _zigzag(rows, cols - 1) + np.array([0, 1])
    return_path = np.stack([np.arange(rows)[::-1], np.zeros(rows, int)], -1)
    return np.concatenate([zigzag, return_path])
