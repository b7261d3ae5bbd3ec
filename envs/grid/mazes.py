"""Mazes by name: published ones, and two families that are generated from a seed.

The named ones are the mazes of the experiments with proper Laplacian representations (Gomez,
Bowling and Machado, ICLR 2024, arXiv 2310.10833) whose shape can be said in a sentence.
GridMaze-17 keeps only what determines its spectrum: a path of 87 cells on 17 x 19 tiles.
"""

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from envs.grid.generators import closed_rooms, corridors, rooms
from envs.grid.layouts import Layout, from_free, require_connected
from envs.grid.passages import Door, Portal


def carve(free: np.ndarray, *openings) -> np.ndarray:
    """`free`, bool `[H, W]`, where each of `openings`, indices as of `np.s_`, is free as well."""
    for opening in openings:
        free[opening] = True
    return free


def serpentine(height: int, width: int, left: int, length: int) -> np.ndarray:
    """One path, bool `[height, width]`: back and forth in every second row, `length` cells each."""
    free = np.zeros((height, width), bool)
    free[1:-1:2, left : left + length] = True
    free[2:-1:4, left + length - 1] = True
    free[4:-1:4, left] = True
    return free


_solid = lambda *size: np.zeros(size, bool)
_room = lambda height, width: np.pad(np.ones((height, width), bool), 1)

FREE: dict[str, np.ndarray] = {
    "GridMaze-7": carve(_solid(7, 9), np.s_[3, 1:8], np.s_[1:6, 7]),
    "GridMaze-9": carve(_solid(9, 9), np.s_[4, 1:8], np.s_[1:8, 7]),
    "GridMaze-11": carve(_solid(11, 11), np.s_[5, 1:10], np.s_[1:10, 5]),
    "GridMaze-17": serpentine(17, 19, left=4, length=10),
    "GridRoom-1": _room(15, 15),
    "GridRoom-4": carve(
        _solid(13, 13),
        *[np.s_[1:6, 1:6], np.s_[1:6, 7:12], np.s_[7:12, 1:7], np.s_[7:12, 8:12]],
        *[(2, 6), (6, 3), (6, 10), (9, 7)],
    ),
    "GridRoomSym-4": carve(closed_rooms(2, 2, 5), (3, 6), (9, 6), (6, 3), (6, 9)),
    "GridRoom-16": carve(
        closed_rooms(4, 4, 4),
        *[(2, 5), (7, 5), (18, 5), (3, 10), (8, 10), (13, 10), (17, 10), (2, 15), (18, 15)],
        *[(5, 18), (10, 3), (10, 13), (10, 17), (15, 2), (15, 18)],
    ),
    "GridRoomSmall-1": _room(6, 6),
    "GridRoomSmallAsym-1": _room(5, 6),
}
"""The free cells, bool `[H, W]`."""


def one_way_rooms() -> Layout:
    """The four rooms, with doors that open clockwise; one move in ten against them succeeds."""
    clockwise = (((2, 6), 1), ((6, 10), 2), ((9, 7), 3), ((6, 3), 0))
    doors = tuple(Door(cell, direction, back=0.1) for cell, direction in clockwise)
    return require_connected(Layout(FREE["GridRoom-4"], "OneWayRooms-4", doors=doors))


def portal_room() -> Layout:
    """An open room of 11 x 11 cells, with portals from its upper right corner to the lower left.

    They take the place of three moves against the walls there: upwards in the corner and in the
    cell to its left, and to the right in the corner.
    """
    end = (((11, 1), 1.0),)
    corner = (((1, 10), 0), ((1, 11), 0), ((1, 11), 1))
    portals = tuple(Portal(cell, direction, end) for cell, direction in corner)
    return require_connected(Layout(_room(11, 11), "PortalRoom-1", portals=portals))


MAZES: dict[str, Callable[[], Layout]] = {
    **{name: partial(from_free, free, name) for name, free in FREE.items()},
    "OneWayRooms-4": one_way_rooms,
    "PortalRoom-1": portal_room,
}
"""Two of them, not published, have walks that cannot be reversed."""


def layout_by_name(name: str) -> Layout:
    """One of `MAZES`, or a generated one such as "corridors-400-seed7" or "rooms-4x4-size5-seed3".

    Without `-seed…` the seed is 0. Raises ValueError for any other name.
    """
    if name in MAZES:
        return MAZES[name]()
    if name_match := re.fullmatch(r"corridors-([0-9]{1,9})(?:-seed([0-9]{1,9}))?", name):
        return corridors(int(name_match[1]), int(name_match[2] or 0))
    pattern = r"rooms-([0-9]{1,5})x([0-9]{1,5})-size([0-9]{1,5})(?:-seed([0-9]{1,9}))?"
    if name_match := re.fullmatch(pattern, name):
        rows, cols, size, seed = (int(group or 0) for group in name_match.groups())
        return rooms(rows, cols, size, seed)
    raise ValueError(
        f"maze {name!r} is unknown; expected one of {', '.join(MAZES)}, or a generated one such as"
        " corridors-400-seed7 or rooms-4x4-size5-seed3"
    )
