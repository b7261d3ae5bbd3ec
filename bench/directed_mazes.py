"""Twelve mazes of 40 to 277 states whose walks cannot be reversed, as texts of `envs.grid.texts`.

Each is hard in a way of its own: moves that lead elsewhere, doors without a way back, rooms that a
walk hardly ever leaves, wind, symmetries that make eigenvalues equal, and long ways round, whose
eigenvalues are complex and may be cut by the number of eigenvectors that are asked for.
"""

from typing import NamedTuple

Tiles = list[list[str]]


class Walk(NamedTuple):
    """A maze as text, and the wind in it."""

    text: str
    wind: float = 0.0


def room(rows: int, cols: int) -> Tiles:
    return [["."] * cols for _ in range(rows)]


def rooms(rows: int, cols: int, size: int) -> Tiles:
    """Rooms of `size` x `size` cells with walls of one tile between them, and no way out."""
    wall = lambda i, j: (i + 1) % (size + 1) == 0 or (j + 1) % (size + 1) == 0
    height, width = rows * (size + 1) - 1, cols * (size + 1) - 1
    return [["#" if wall(i, j) else "." for j in range(width)] for i in range(height)]


def with_features(tiles: Tiles, *features: tuple[int, int, str]) -> Tiles:
    """The maze with features at row and column; a wall there becomes free."""
    out = [list(row) for row in tiles]
    for i, j, feature in features:
        out[i][j] = out[i][j].replace("#", ".") + feature
    return out


def text(tiles: Tiles) -> str:
    return "\n".join(",".join(row) for row in tiles) + "\n"


def ring(rows: int, cols: int, back: float) -> Tiles:
    """One corridor round a block of wall, with a door clockwise out of every fourth cell."""
    inside = lambda i, j: 0 < i < rows - 1 and 0 < j < cols - 1
    tiles = [["#" if inside(i, j) else "." for j in range(cols)] for i in range(rows)]
    around = [(0, j, "R") for j in range(cols - 1)] + [(i, cols - 1, "D") for i in range(rows - 1)]
    around += [(rows - 1, j, "L") for j in range(cols - 1, 0, -1)]
    around += [(i, 0, "U") for i in range(rows - 1, 0, -1)]
    return with_features(tiles, *((i, j, f"D{way}:{back}") for i, j, way in around[::4]))


def cylinder(rows: int, cols: int) -> Tiles:
    """A room whose upper and lower edges are joined, and which goes round to the right only.

    A turn by a row changes nothing, so that many eigenvalues are double.
    """
    names = "0123456789abcdefghijklmnopqrstuvwxyz"
    end = lambda i, j: names[{0: 0, rows - 1: 1}[i] * cols + j]
    top = [(0, j, f"E{end(0, j)}PU:{end(rows - 1, j)}") for j in range(cols)]
    low = [(rows - 1, j, f"E{end(rows - 1, j)}PD:{end(0, j)}") for j in range(cols)]
    left = [(i, 0, f"E{names[2 * cols + i]}") for i in range(1, rows - 1)]
    begin = lambda i: end(i, 0) if i in (0, rows - 1) else names[2 * cols + i]
    right = [(i, cols - 1, f"PR:{begin(i)}") for i in range(rows)]
    doors = [(i, cols // 2 - 1, "DR") for i in range(rows)]
    return with_features(room(rows, cols), *top, *low, *left, *right, *doors)


def stairs(length: int, every: int) -> Tiles:
    """Rows of `length` cells, joined at the ends; portals throw the walk back to the beginning."""
    tiles = [["."] * length if i % 2 == 0 else ["#"] * length for i in range(7)]
    joints = [(1, length - 1, ""), (3, 0, ""), (5, length - 1, "")]
    throws = [(i, j, "PD:0") for i in (0, 2, 4, 6) for j in range(every, length - 1, every)]
    return with_features(tiles, (0, 0, "E0"), *joints, *throws)


QUARTERS = rooms(2, 2, 5)
CLOCKWISE = ((2, 5, "DR:0.1"), (5, 8, "DD:0.1"), (8, 5, "DL:0.1"), (5, 2, "DU:0.1"))
"""Doors of four rooms which a quarter turn leaves as they are."""
PORTALS = with_features(
    [*room(2, 8), [".", ".", ".", "#", "#", ".", ".", "."], *room(3, 8)],
    *[(0, 0, "E1"), (2, 2, "E2"), (4, 7, "E3")],
    *[(0, 7, "PR:1"), (3, 7, "PD:2"), (4, 0, "PL:1PD:2"), (5, 2, "PD:3")],
)
HARDLY_JOINED = with_features(
    rooms(1, 2, 5),
    *[(0, 0, "E3"), (2, 4, "E1PR:1@199_2"), (2, 6, "E2PL:2@99_1"), (4, 9, "E4")],
    *[(4, 2, "PD:3"), (4, 10, "PD:3@1_4@60")],
)
ONE_WAY_ROOMS = with_features(
    rooms(3, 3, 5),
    *[(2, 5, "DR"), (2, 11, "DR"), (5, 14, "DD"), (11, 14, "DD"), (14, 11, "DL")],
    *[(14, 5, "DL"), (11, 2, "DU"), (5, 2, "DU"), (8, 5, "DR"), (8, 11, "DR:0.2")],
)
FAR_PORTALS = with_features(
    room(15, 15),
    *[(0, 0, "E1"), (7, 7, "E2"), (14, 2, "E3")],
    *[(0, 14, "PU:2"), (3, 14, "PR:3"), (7, 0, "PL:1@2_3"), (14, 14, "PD:1PR:2")],
)
MANY_DOORS = with_features(
    rooms(4, 4, 4),
    *[(1, 4, "DR:0.3"), (1, 9, ""), (1, 14, "DR"), (4, 1, "DU"), (4, 11, "DU:0.2")],
    *[(4, 17, "DD:0.05"), (6, 4, "DR"), (6, 9, ""), (6, 14, "DL:0.1"), (9, 1, "DU:0.3")],
    *[(9, 6, "DD"), (9, 17, "DD"), (11, 4, "DL"), (11, 9, "DR:0.2"), (11, 14, "")],
    *[(14, 1, "DU"), (14, 11, "DU"), (14, 17, "DD"), (17, 4, ""), (17, 9, "DL:0.5")],
    *[(17, 14, "DL")],
)
DEAD_END = with_features(ring(34, 34, back=0.2), *((i, 17, "") for i in range(1, 9)))
"""The 11th and 12th eigenvalues are conjugates."""
MEANDER = with_features(
    [["." if i % 2 == 0 else "#"] * 13 for i in range(13)],
    *[(i, 12 * (i // 2 % 2 == 0), "") for i in range(1, 12, 2)],
)
MAZES = {
    "portals": Walk(text(PORTALS)),
    "ring": Walk(text(ring(11, 11, back=0.0))),
    "hardly joined": Walk(text(HARDLY_JOINED)),
    "cylinder": Walk(text(cylinder(7, 10))),
    "stairs": Walk(text(stairs(18, 6))),
    "hall in wind": Walk(text(room(9, 9)), 0.3),
    "meander in wind": Walk(text(MEANDER), 0.15),
    "quarters": Walk(text(with_features(QUARTERS, *CLOCKWISE))),
    "ring with a dead end": Walk(text(DEAD_END)),
    "far portals": Walk(text(FAR_PORTALS)),
    "one-way rooms": Walk(text(ONE_WAY_ROOMS)),
    "many doors": Walk(text(MANY_DOORS)),
}
