"""Mazes as text, in two formats; a text that contains a comma is in the second.

Plain, one character a tile: `#`, `X` or `x` wall, `.` or a blank free, `S` start, `G` goal.

Comma, the tiles of a row separated by commas: `#`, `X` or `x` wall, `.` or a blank free, or any of
these features in sequence:

    S, G        a start, a goal
    DRU:0.3     doors to the right and up: that way is open, the way back succeeds with probability
                0.3, or never where no probability is given
    E7          an end of portals, called 7 (digits and small letters)
    PL:7@2_8    the move to the left leads to end 7 or end 8, with weights 2 and 1 (the default)
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from envs.grid.passages import Cell, Door, Portal

MAX_TILES = 1_000_000  # of a maze, walls included
MAX_BYTES = 16 * MAX_TILES  # of a text; a tile with features takes several
WALLS, DIRECTIONS = "#Xx", "URDL"  # a direction is an index into this: 0 up, 1 right, ...
FEATURE = re.compile(
    r"(?P<mark>[.SG])"
    r"|D(?P<doors>[URDL]+)(:(?P<back>\d*\.?\d+))?"
    r"|E(?P<end>[0-9a-z]+)"
    r"|P(?P<move>[URDL]):(?P<ends>[0-9a-z]+(@\d*\.?\d+)?(_[0-9a-z]+(@\d*\.?\d+)?)*)"
)


class Content(NamedTuple):
    """The contents of a maze as text."""

    free: np.ndarray  # bool [H, W]
    starts: list[Cell]
    goals: list[Cell]
    doors: list[Door]
    portals: list[Portal]


def read(text: str) -> Content:
    """The tiles of a maze. Raises ValueError for a text in neither format, naming the line."""
    rows = _rows(text)
    check_size(len(rows), len(rows[0][1]))
    content = Content(np.ones((len(rows), len(rows[0][1])), bool), [], [], [], [])
    ends: dict[str, Cell] = {}
    portals: list[tuple[int, Cell, re.Match[str]]] = []
    for line, cell, tile in _tiles(rows):
        if tile.strip(" ") in tuple(WALLS):
            content.free[cell] = False
            continue
        for feature in _features(tile, line, cell[1] + 1):
            _add_feature(content, cell, feature)
            if feature["end"]:
                _add_end(ends, feature["end"], cell, line)
            if feature["ends"]:  # which may stand further below
                portals.append((line, cell, feature))
    for line, cell, feature in portals:
        move = DIRECTIONS.index(feature["move"])
        content.portals.append(Portal(cell, move, _destinations(feature["ends"], ends, line)))
    return content


def check_size(height: int, width: int) -> None:
    """Raises ValueError for more than `MAX_TILES`."""
    if height * width > MAX_TILES:
        raise ValueError(
            f"the maze has {height:,} x {width:,} tiles; expected at most {MAX_TILES:,} in"
            " all: make it smaller"
        )


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """The line number, from 1, and the tiles of every row; all of them are equally wide."""
    lines = list(enumerate(re.split(r"\r\n?|\n", text), start=1))
    filled_lines = [number for number, line in lines if line.strip()]
    if not filled_lines:
        raise ValueError("the maze is empty; expected rows of tiles, such as '#..#'")
    first, last = filled_lines[0] - 1, filled_lines[-1]
    split = (lambda line: line.split(",")) if "," in text else list
    rows = [(number, split(line)) for number, line in lines[first:last]]
    width = Counter(len(tiles) for _, tiles in rows).most_common(1)[0][0]
    for number, tiles in rows:
        if len(tiles) != width:
            raise ValueError(
                f"line {number} has {len(tiles)} tiles; expected {width} as in the others; trailing"
                " blanks may have been lost: write '.' for free"
            )
    for number, line in lines[:first] + lines[last:]:
        if len(split(line)) == width and line:
            raise ValueError(
                f"line {number} is as wide as the maze and all blank; remove it, or write '.' for"
                " free"
            )
    return rows


def _tiles(rows: list[tuple[int, list[str]]]) -> Iterator[tuple[int, Cell, str]]:
    """`(line number, cell, tile)` of every tile, row by row."""
    for i, (line, tiles) in enumerate(rows):
        for j, tile in enumerate(tiles):
            yield line, (i, j), tile


def _features(tile: str, line: int, column: int) -> Iterator[re.Match[str]]:
    """The features in a tile that is not a wall."""
    features, place = tile.strip(" "), 0
    if not tile:
        raise ValueError(f"line {line}: tile {column} is empty; write '.' for free")
    while place < len(features):
        feature = FEATURE.match(features, place)
        if feature is None:
            unknown = features[place : place + 20]
            raise ValueError(
                f"line {line}, tile {column}: {unknown!r} is not known; expected #, X, '.',"
                " blank, S or G, and in comma format also doors like DR:0.3, portals E1 or PU:1"
            )
        yield feature
        place = feature.end()


def _add_feature(content: Content, cell: Cell, feature: re.Match[str]) -> None:
    """Starts, goals and doors; a portal waits until all ends are known."""
    if feature["mark"] == "S":
        content.starts.append(cell)
    if feature["mark"] == "G":
        content.goals.append(cell)
    for letter in feature["doors"] or "":
        content.doors.append(Door(cell, DIRECTIONS.index(letter), float(feature["back"] or 0)))


def _add_end(ends: dict[str, Cell], name: str, cell: Cell, line: int) -> None:
    """Adds an end of portals. Raises ValueError for a second one of a name."""
    if name in ends:
        raise ValueError(f"line {line}: portal end E{name[:20]} occurs twice; rename it")
    ends[name] = cell


def _destinations(names: str, ends: dict[str, Cell], line: int) -> tuple[tuple[Cell, float], ...]:
    """The cells that a portal leads to, with probabilities that add up to one."""
    weights = []
    for part in names.split("_"):
        name, _, weight = part.partition("@")
        if name not in ends:
            labels = ", ".join(f"E{end}"[:20] for end in islice(ends, 10)) or "none"
            raise ValueError(
                f"line {line}: portal end E{name[:20]} is not in the maze; the ends are: {labels}"
            )
        weights.append((ends[name], float(weight or 1)))
    total = sum(weight for _, weight in weights)
    if min(weight for _, weight in weights) <= 0:
        raise ValueError(f"line {line}: a portal's weight is 0; expected more, or leave it out")
    return tuple((cell, weight / total) for cell, weight in weights)
