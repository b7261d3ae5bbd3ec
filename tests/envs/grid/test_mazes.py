"""The mazes: printed sizes of the named ones, and what every generated one is."""

import re

import numpy as np
import pytest

from envs.grid import layouts, mazes, tables

PRINTED = {  # rows, columns, free cells
    "GridMaze-7": (7, 9, 11),
    "GridMaze-9": (9, 9, 13),
    "GridMaze-11": (11, 11, 17),
    "GridMaze-17": (17, 19, 87),
    "GridRoom-1": (17, 17, 225),
    "GridRoom-4": (13, 13, 104),
    "GridRoomSym-4": (13, 13, 104),
    "GridRoom-16": (21, 21, 271),
    "GridRoomSmall-1": (8, 8, 36),
    "GridRoomSmallAsym-1": (7, 8, 30),
    "OneWayRooms-4": (13, 13, 104),
    "PortalRoom-1": (13, 13, 121),
}


def degrees(layout) -> np.ndarray:
    """The number of free neighbours of every state."""
    free = np.pad(layout.free, 1).astype(int)
    around = free[:-2, 1:-1] + free[2:, 1:-1] + free[1:-1, :-2] + free[1:-1, 2:]
    return around[layout.free]


def test_printed_sizes():
    assert set(mazes.MAZES) == set(PRINTED)
    for name, size in PRINTED.items():
        layout = mazes.layout_by_name(name)
        assert (layout.height, layout.width, layout.num_states) == size
        assert layout.name == name
        assert not layout.free[[0, -1]].any()
        assert not layout.free[:, [0, -1]].any()


def test_mazes_with_doors_and_portals_have_walks_that_cannot_be_reversed():
    rooms = tables.transition_matrix(tables.dynamics(mazes.layout_by_name("OneWayRooms-4")))
    free = tables.transition_matrix(tables.dynamics(mazes.layout_by_name("GridRoom-4")))
    changed = np.argwhere(np.abs(rooms - free) > 1e-9)
    assert len({state for state, _ in changed}) == 4, "a cell behind each of four doors"
    assert rooms[rooms > 0].min() == pytest.approx(0.1 / 4)
    portal = mazes.layout_by_name("PortalRoom-1")
    P = tables.transition_matrix(tables.dynamics(portal))
    corner, end = portal.index[1, 11], portal.index[11, 1]
    assert P[corner, end] == pytest.approx(2 / 4)
    assert P[portal.index[1, 10], end] == pytest.approx(1 / 4)
    assert P[end, corner] == 0


def test_shapes_in_print():
    free = mazes.layout_by_name("GridMaze-7").free
    assert ["".join(row) for row in np.where(free, ".", "#")] == [
        "#########",
        "#######.#",
        "#######.#",
        "#.......#",
        "#######.#",
        "#######.#",
        "#########",
    ]
    # A path: two ends, all others have two neighbours.
    path = degrees(mazes.layout_by_name("GridMaze-17"))
    assert sorted(path) == [1, 1] + [2] * 85
    symmetric = mazes.layout_by_name("GridRoomSym-4").free
    np.testing.assert_array_equal(symmetric, symmetric.T)
    np.testing.assert_array_equal(symmetric, symmetric[::-1])
    # 15 openings that join 16 rooms form a tree: closing any one of them cuts the maze
    sixteen = mazes.layout_by_name("GridRoom-16")
    openings = [cell for cell in sixteen.cells if cell[0] % 5 == 0 or cell[1] % 5 == 0]
    assert len(openings) == 15
    for cell in openings:
        free = sixteen.free.copy()
        free[tuple(cell)] = False
        assert len(layouts.regions(layouts.from_free(free, allow_disconnected=True))) == 2


def test_corridors_have_the_exact_size_and_are_connected():
    for num_states in [*range(2, 60), 100, 400, 1088]:
        for loops in (0.0, 0.1, 1.0):
            layout = mazes.corridors(num_states, seed=num_states, loops=loops)
            assert layout.num_states == num_states
            assert abs(layout.height - layout.width) <= 2
            assert len(layouts.regions(layout)) == 1
            edges = degrees(layout).sum() // 2
            if loops == 0:
                assert edges == num_states - 1  # a tree
            # one tile wide: nowhere are 2 x 2 tiles free
            free = layout.free
            assert not (free[1:, 1:] & free[:-1, 1:] & free[1:, :-1] & free[:-1, :-1]).any()


def test_the_share_of_loops():
    count = lambda layout: degrees(layout).sum() // 2 - layout.num_states + 1
    loops = [count(mazes.corridors(401, 0, share)) for share in (0.0, 0.1, 0.5, 1.0)]
    assert loops[0] == 0
    assert loops == sorted(loops)
    # n junctions in a square have about n - 2√n + 1 loops, and with them 2n - 1 + loops cells
    np.testing.assert_allclose(loops[1:], [0.1 * 166, 0.5 * 143, 119], atol=2)


def test_rooms_have_their_size_and_are_connected():
    for rows, cols, size in [(4, 4, 5), (1, 3, 2), (3, 1, 2), (5, 2, 1), (1, 1, 3), (1, 2, 1)]:
        walls = rows * (cols - 1) + cols * (rows - 1)
        tree = rows * cols - 1
        for extra in (0.0, 0.2, 1.0):
            layout = mazes.rooms(rows, cols, size, seed=5, extra=extra)
            openings = tree + round(extra * (walls - tree))
            assert layout.num_states == rows * cols * size**2 + openings
            assert layout.free.shape == (rows * (size + 1) + 1, cols * (size + 1) + 1)
            assert len(layouts.regions(layout)) == 1


@pytest.mark.parametrize("family", ["corridors-100", "rooms-4x4-size3"])
def test_seeds_decide(family):
    seed_layouts = [mazes.layout_by_name(f"{family}-seed{seed}") for seed in range(30)]
    assert len({layout.free.tobytes() for layout in seed_layouts}) == 30
    assert len({layout.free.shape for layout in seed_layouts}) == 1
    repeated = mazes.layout_by_name(f"{family}-seed7")
    np.testing.assert_array_equal(repeated.free, seed_layouts[7].free)
    assert repeated.name == f"{family}-seed7"
    np.testing.assert_array_equal(mazes.layout_by_name(family).free, seed_layouts[0].free)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "GridRoom-5",
            "maze 'GridRoom-5' is unknown; expected one of GridMaze-7, .* corridors-400",
        ),
        ("corridors-", "is unknown"),
        ("corridors-10-seed1\n", "is unknown"),
        ("corridors-1", "num_states is 1; expected a whole number from 2 to 100000"),
        ("corridors-100001", "num_states is 100001"),
        ("rooms-0x4-size5", "rows is 0; expected a whole number from 1"),
        ("rooms-1x1-size1", re.escape("rows * cols * size² is 1; expected a whole number from 2")),
        ("rooms-99x99-size9", re.escape("rows * cols * size² is 793881")),
    ],
)
def test_names_that_are_refused(name, message):
    with pytest.raises(ValueError, match=message) as caught:
        mazes.layout_by_name(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_that_are_refused(share):
    with pytest.raises(ValueError, match="expected a share between 0 and 1"):
        mazes.corridors(50, 0, loops=share)
    with pytest.raises(ValueError, match="expected a share between 0 and 1"):
        mazes.rooms(2, 2, 2, 0, extra=share)
