"""The slow maze: one move at a time, in exact fractions, from sets of cells."""

from fractions import Fraction

from envs.grid.layouts import Layout

MOVES = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}


def law(layout: Layout, cell, action: int, wind: Fraction = Fraction(0)) -> dict:
    """The probability of every cell that an action in `cell` can lead to."""
    for portal in layout.portals:
        if portal.cell == cell and portal.direction == action:
            return _sum((end, Fraction(p).limit_denominator(1000)) for end, p in portal.ends)
    pass_probability = Fraction(1)
    for door in layout.doors:
        target = tuple(a + b for a, b in zip(door.cell, MOVES[door.direction], strict=True))
        back = tuple(-step for step in MOVES[door.direction])
        if target == cell and back == MOVES[action]:
            pass_probability = Fraction(door.back).limit_denominator(1000)
    gust = 0 if wind == 0 else 1 if wind > 0 else -1
    return _sum(
        [
            (cell, 1 - pass_probability),
            (_land(layout, cell, action, 0), pass_probability * (1 - abs(wind))),
            (_land(layout, cell, action, gust), pass_probability * abs(wind)),
        ]
    )


def matrix(layout: Layout, wind: Fraction = Fraction(0)) -> list[list[Fraction]]:
    """P(s' | s) under the uniform policy, states row by row."""
    cells = _cells(layout)
    rows = []
    for cell in cells:
        uniform_law = _sum(
            (end, p / 4) for action in MOVES for end, p in law(layout, cell, action, wind).items()
        )
        rows.append([uniform_law.get(end, Fraction(0)) for end in cells])
    return rows


def _cells(layout: Layout) -> list[tuple[int, int]]:
    height, width = layout.free.shape
    return [(r, c) for r in range(height) for c in range(width) if layout.free[r][c]]


def _land(layout: Layout, cell, action: int, gust: int):
    height, width = layout.free.shape
    row, col = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1] + gust
    row = 0 if row < 0 else height - 1 if row >= height else row
    col = 0 if col < 0 else width - 1 if col >= width else col
    return (row, col) if (row, col) in _cells(layout) else cell


def _sum(pairs) -> dict:
    total = {}
    for cell, probability in pairs:
        if probability:
            total[cell] = total.get(cell, Fraction(0)) + probability
    return total
