"""Tables of moves against the slow walker, and the observations of every state."""

from fractions import Fraction

import numpy as np
import pytest

from envs.grid import layouts, mazes
from envs.grid.env import Grid
from envs.grid.layouts import Layout
from envs.grid.observations import OBSERVATIONS
from envs.grid.tables import Dynamics, dynamics, sparse_transitions, transition_matrix
from tests.envs.grid import oracle as grid_oracle

TRICKY = layouts.parse(
    ".,.,DDR:0.25,.,X,E1\n"
    ".,PD:1@3_2PR:2,.,.,.,.\n"
    "X,.,X,DR,.,X\n"
    ".,DUL:0.5,.,.,PL:1_2_3_1PU:3,E3\n"
    ".,X,.,E2DU:1,.,."
)
LAYOUTS = {
    "GridMaze-7": mazes.layout_by_name("GridMaze-7"),
    "corridors": mazes.layout_by_name("corridors-41-seed3"),
    "borderless": layouts.parse("..#\n...\n#.."),
    "tricky": TRICKY,
}
WINDS = [Fraction(0), Fraction(3, 10), Fraction(-9, 10)]


@pytest.mark.parametrize("wind", WINDS, ids=str)
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_law_is_that_of_the_slow_walker(name, wind):
    layout = LAYOUTS[name]
    table = dynamics(layout, float(wind))
    assert (table.successor.dtype, table.probability.dtype) == (np.int32, np.float32)
    most = 0
    for state, cell in enumerate(map(tuple, layout.cells.tolist())):
        for action in range(4):
            expected = grid_oracle.law(layout, cell, action, wind)
            most = max(most, len(expected))
            law = {}
            for end, chance in zip(
                table.successor[state, action], table.probability[state, action], strict=True
            ):
                if chance > 0:
                    assert tuple(layout.cells[end]) not in law  # each end has one slot
                    law[tuple(layout.cells[end].tolist())] = chance
                else:
                    assert end == state
            assert law == pytest.approx({end: float(p) for end, p in expected.items()}, abs=1e-6)
    assert table.successor.shape == table.probability.shape == (layout.num_states, 4, most)
    np.testing.assert_allclose(table.probability.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("wind", WINDS, ids=str)
def test_transition_matrix(wind):
    matrix = transition_matrix(dynamics(TRICKY, float(wind)))
    expected = np.array(grid_oracle.matrix(TRICKY, wind), float)
    assert matrix.dtype == np.float64
    np.testing.assert_allclose(matrix, expected, atol=1e-7)
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-12)


def test_transition_matrix_of_a_policy():
    table = dynamics(layouts.parse("..."))
    right = np.tile([0.0, 1.0, 0.0, 0.0], (3, 1))
    assert transition_matrix(table, right).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    with pytest.raises(ValueError, match=r"policy has shape \(4, 3\); expected \(3, 4\)"):
        transition_matrix(table, right.T)
    with pytest.raises(ValueError, match="a row that is not a distribution"):
        transition_matrix(table, 2 * right)


def test_what_is_deterministic_has_one_outcome():
    assert dynamics(mazes.layout_by_name("GridRoom-4")).successor.shape == (104, 4, 1)
    one_way = dynamics(layouts.parse("DR,.,PU:1,E1"))  # never back, and one end
    assert isinstance(one_way, Dynamics)
    assert one_way.successor[:, :, 0].tolist() == [
        [0, 1, 0, 0],
        [1, 2, 1, 1],
        [3, 3, 2, 1],
        [3, 3, 3, 2],
    ]


@pytest.mark.parametrize("wind", [1, -1.0, 2.5, float("nan")])
def test_wind_has_a_range(wind):
    with pytest.raises(ValueError, match="expected a number between -1 and 1"):
        dynamics(TRICKY, wind)


def test_wind_blows_around_corners_and_over_walls_but_not_through_them():
    layout = layouts.parse("..#.\n.#..\n....")
    law = lambda cell, action: {
        tuple(layout.cells[end].tolist())
        for end, chance in zip(*(part[layout.index[cell], action] for part in table), strict=True)
        if chance > 0
    }
    table = dynamics(layout, 0.5)
    assert law((0, 1), 1) == {(0, 1), (0, 3)}  # into the wall, or over it
    assert law((1, 0), 0) == {(0, 0), (0, 1)}  # up, or around the corner
    assert law((0, 3), 0) == {(0, 3)}  # the edge holds both
    assert law((2, 1), 3) == {(2, 0), (2, 1)}  # against the wind


def test_index_and_one_hot():
    layout = mazes.layout_by_name("GridMaze-7")
    assert OBSERVATIONS["index"](layout).tolist() == list(range(11))
    assert OBSERVATIONS["index"](layout).dtype == np.int32
    np.testing.assert_array_equal(OBSERVATIONS["one_hot"](layout), np.eye(11, dtype=np.float32))


def test_coordinates_keep_the_aspect():
    layout = Layout(np.ones((3, 5), bool))
    observations = OBSERVATIONS["coordinates"](layout)
    assert observations.dtype == np.float32
    expected = [[r, c] for r in (-0.5, 0, 0.5) for c in (-1, -0.5, 0, 0.5, 1)]
    np.testing.assert_allclose(observations, expected)


def test_pixels():
    layout = layouts.parse("#S\nG.")
    observations = OBSERVATIONS["pixels"](layout)
    wall, free, agent, goal = [110 / 255] * 3, [1, 1, 1], [0, 0, 1], [1, 0, 0]
    expected = [
        [[wall, agent], [goal, free]],
        [[wall, free], [agent, free]],
        [[wall, free], [goal, agent]],
    ]
    assert observations.dtype == np.float32
    np.testing.assert_allclose(observations, expected, rtol=1e-6)


def test_sparse_transitions_are_the_same_without_zeros():
    table = dynamics(mazes.layout_by_name("GridRoom-16"), 0.3)
    sparse, dense = sparse_transitions(table), transition_matrix(table)
    np.testing.assert_array_equal(sparse.toarray(), dense)
    assert sparse.nnz == np.count_nonzero(dense)


@pytest.mark.parametrize("observation", ["one_hot", "pixels"])
def test_observations_too_large_are_refused_before_they_are_made(observation):
    open_square = Layout(np.ones((160, 160), bool))
    with pytest.raises(ValueError, match=r"of 25,600 states needs [0-9.]+ GiB; .* choose coord"):
        Grid(open_square, observation)


def test_rendered_pictures_show_the_agent_alone_moving():
    layout = layouts.parse("#S\nG.")
    observations = OBSERVATIONS["rendered"](layout)
    assert (observations.shape, observations.dtype) == ((3, 12, 12, 3), np.float32)
    assert 0 <= observations.min() < observations.max() <= 1
    wall, blue = np.array([35, 49, 64]) / 255, np.array([29, 79, 181]) / 255
    np.testing.assert_allclose(
        observations[:, :6, :6], np.broadcast_to(wall, (3, 6, 6, 3)), atol=1e-6
    )
    for state, (row, col) in enumerate(layout.cells):
        middle = observations[state, 6 * row + 2 : 6 * row + 4, 6 * col + 2 : 6 * col + 4]
        np.testing.assert_allclose(middle, np.broadcast_to(blue, (2, 2, 3)), atol=1e-6)
        others = np.ones((12, 12), bool)
        others[6 * row : 6 * row + 6, 6 * col : 6 * col + 6] = False
        for other in range(3):  # elsewhere two pictures differ only at the other agent
            is_unaffected = others.copy()
            is_unaffected[tuple(slice(6 * x, 6 * x + 6) for x in layout.cells[other])] = False
            np.testing.assert_array_equal(
                observations[state][is_unaffected], observations[other][is_unaffected]
            )
    assert Grid(layout, "rendered").observation_space().shape == (12, 12, 3)
