"""Doors and openings drawn at random: how many, where, and that a way back is left."""

import numpy as np
import pytest

from envs.grid import layouts, mazes
from envs.grid.passages import Door, neighbour
from envs.grid.random_passages import with_doors, with_openings
from envs.grid.tables import dynamics, transition_matrix

ROOMS = mazes.layout_by_name("GridRoom-4")


def reachable_states(layout, start: int) -> set[int]:
    """The states that moves lead to from one, by plain search."""
    P, visited, waiting = transition_matrix(dynamics(layout)), {start}, [start]
    while waiting:
        for state in np.flatnonzero(P[waiting.pop()]):
            if state not in visited:
                visited.add(int(state))
                waiting.append(int(state))
    return visited


@pytest.mark.parametrize("seed", range(4))
def test_doors_are_in_different_passages_and_leave_a_way_back(seed):
    layout = with_doors(ROOMS, 30, seed)
    edges = {frozenset((door.cell, neighbour(door.cell, door.direction))) for door in layout.doors}
    assert len(edges) == len(layout.doors) == 30
    assert all(reachable_states(layout, state) == set(range(104)) for state in range(104))
    P = transition_matrix(dynamics(layout))
    for door in layout.doors:
        here, there = layout.index[door.cell], layout.index[neighbour(door.cell, door.direction)]
        assert (P[here, there], P[there, here]) == (0.25, 0)
    assert with_doors(ROOMS, 30, seed).doors == layout.doors
    assert with_doors(ROOMS, 30, seed + 1).doors != layout.doors


def test_directions_are_drawn_and_doors_may_let_back():
    layout = with_doors(ROOMS, 60, 0, back=0.25)
    assert {door.direction for door in layout.doors} == {0, 1, 2, 3}
    assert {door.back for door in layout.doors} == {0.25}
    corridor = layouts.parse("DR:0.5,.,.")
    assert set(with_doors(corridor, 1, 0, 0.5).doors[1:]) <= {
        Door((0, 1), 1, 0.5),
        Door((0, 2), 3, 0.5),
    }  # the other passage has a door already


def test_a_corridor_has_no_room_for_doors_without_a_way_back():
    with pytest.raises(ValueError, match=r"room for 0 random doors .*; expected 1: ask for fewer"):
        with_doors(mazes.layout_by_name("GridMaze-7"), 1, 0)
    assert len(with_doors(mazes.layout_by_name("GridMaze-7"), 10, 0, back=0.1).doors) == 10
    with pytest.raises(ValueError, match="room for 10 random doors"):
        with_doors(mazes.layout_by_name("GridMaze-7"), 11, 0, back=0.1)


def test_openings_are_walls_between_two_free_cells():
    layout = with_openings(ROOMS, 5, 3)
    opened_cells = np.argwhere(layout.free & ~ROOMS.free)
    assert len(opened_cells) == 5
    for row, col in opened_cells:
        is_between = [ROOMS.free[row - 1, col] and ROOMS.free[row + 1, col]]
        is_between += [ROOMS.free[row, col - 1] and ROOMS.free[row, col + 1]]
        assert any(is_between)
    with pytest.raises(ValueError, match="has 0 walls between two free cells"):
        with_openings(mazes.layout_by_name("GridRoomSmall-1"), 1, 0)
    assert with_openings(ROOMS, 0, 0) is ROOMS
    assert with_doors(ROOMS, 0, 0) is ROOMS
