"""Doors and portals: one-way passages and moves that lead elsewhere.

A cell is (row, col), a direction 0 up, 1 right, 2 down, 3 left.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Cell = tuple[int, int]  # row, col
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
MAX_ENDS = 4


class Door(NamedTuple):
    """A passage that is open in one direction, and not always in the other."""

    cell: Cell
    direction: int
    back: float
    """Probability that the move back from the neighbour succeeds."""


class Portal(NamedTuple):
    """A move that leads to cells elsewhere."""

    cell: Cell
    direction: int
    ends: tuple[tuple[Cell, float], ...]
    """The cells it leads to, at most four, with probabilities that add up to one."""


def neighbour(cell: Cell, direction: int) -> Cell:
    """The neighbour of a cell; possibly a wall or off the grid."""
    return cell[0] + STEPS[direction][0], cell[1] + STEPS[direction][1]


def ways_back(doors: Sequence[Door]) -> dict[tuple[Cell, int], float]:
    """The probability that a move against a door succeeds, by cell and direction."""
    return {(neighbour(door.cell, door.direction), door.direction ^ 2): door.back for door in doors}


def check_free(free: np.ndarray, what: str, cells: Iterable[Cell]) -> None:
    """Raises ValueError for a cell that is not free; `free` is bool `[H, W]`."""
    for row, col in cells:
        inside = 0 <= row < free.shape[0] and 0 <= col < free.shape[1]
        if not (inside and free[row, col]):
            raise ValueError(
                f"{what} cell {(row, col)} is a wall or off the grid; expected a free cell"
            )


def check_doors(free: np.ndarray, doors: Sequence[Door]) -> None:
    """Raises ValueError for doors in or into walls, or that face each other."""
    _check_once("door", doors)
    back_probabilities = ways_back(doors)
    for cell, direction, back in doors:
        check_free(free, "door", [cell])
        check_free(free, f"the door in {cell} leads into a wall:", [neighbour(cell, direction)])
        if not 0 <= back <= 1:
            raise ValueError(f"the door in cell {cell} has {back=}; expected 0 to 1")
        if (cell, direction) in back_probabilities:
            other = neighbour(cell, direction)
            raise ValueError(f"doors in cells {cell} and {other} face each other; remove one")


def check_portals(free: np.ndarray, portals: Sequence[Portal]) -> None:
    """Raises ValueError for portals in or into walls, and for ends with invalid probabilities."""
    _check_once("portal", portals)
    for cell, _, ends in portals:
        check_free(free, "portal", [cell, *(end for end, _ in ends)])
        if not 1 <= len(ends) <= MAX_ENDS:
            raise ValueError(
                f"the portal in cell {cell} has {len(ends)} ends; expected 1 to {MAX_ENDS}"
            )
        chances = [probability for _, probability in ends]
        if not (min(chances) > 0 and abs(sum(chances) - 1) < 1e-6):
            raise ValueError(
                f"the portal in cell {cell} has probabilities {chances}; expected positive ones"
                " that add up to 1"
            )


def _check_once(what: str, passages: Sequence[Door] | Sequence[Portal]) -> None:
    occupied = set()
    for cell, direction, _ in passages:
        if direction not in range(4):
            raise ValueError(
                f"the {what} in cell {cell} has direction {direction}; expected 0 up, 1 right,"
                " 2 down or 3 left"
            )
        if (cell, direction) in occupied:
            raise ValueError(
                f"cell {cell} has two {what}s in direction {direction}; expected one; remove one"
            )
        occupied.add((cell, direction))
