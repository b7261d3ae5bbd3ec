"""The tour of a board, against the definition of a Hamiltonian path in a graph of cells."""

from itertools import pairwise

import networkx
import numpy as np
import pytest

from envs.snake.bitboard import Board
from envs.snake.cycles import cycle, prefixes

BOARDS = [Board(rows, cols) for rows in range(4, 9) for cols in range(4, 9)] + [Board(20, 20)]


@pytest.mark.parametrize("board", BOARDS, ids=str)
def test_the_tour_meets_every_cell_once_and_comes_home_on_even_boards(board: Board):
    graph = networkx.grid_2d_graph(board.rows, board.cols)
    tour = cycle(board)
    path = [divmod(int(index), board.stride) for index in tour.order]
    assert sorted(path) == sorted(graph.nodes)
    assert all(graph.has_edge(*step) for step in pairwise(path))
    assert tour.is_closed == graph.has_edge(path[-1], path[0])
    assert tour.is_closed == (board.rows % 2 == 0 or board.cols % 2 == 0)


@pytest.mark.parametrize("board", [Board(4, 7), Board(5, 5), Board(20, 20)], ids=str)
def test_ranks_undo_the_order_and_prefixes_are_its_beginnings(board: Board):
    tour = cycle(board)
    places = {int(index): place for place, index in enumerate(tour.order)}
    assert tour.rank.tolist() == [places.get(i, -1) for i in range(board.rows * board.stride)]
    words = prefixes(board)
    assert {word.dtype for word in words} == {np.dtype(np.uint32)}
    for count in range(board.num_cells + 1):
        first = sum(1 << int(index) for index in tour.order[:count])
        assert sum(int(word[count]) << 32 * w for w, word in enumerate(words)) == first
