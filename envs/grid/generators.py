"""Mazes generated from a seed: corridors, and rooms. Any size, always connected."""

import numpy as np

from envs.grid.layouts import MAX_STATES, Layout, from_free

Edge = tuple[int, int]


def corridors(num_states: int, seed: int, loops: float = 0.1) -> Layout:
    """A maze of corridors one tile wide with exactly `num_states` free cells, nearly square.

    A random spanning tree joins the junctions, which are two tiles apart; of the walls that then
    separate two of them, at most the share `loops` is opened: as many as the number of states
    asks for. Raises ValueError for sizes other than 2 to
    100,000 states and shares other than 0 to 1.
    """
    _check_int("num_states", num_states, 2, MAX_STATES)
    _check_share("loops", loops)
    count = num_states // 4 + 1
    while 2 * count - 1 + loops * _num_closed(count) < num_states:
        count += 1
    num_loops = num_states - (2 * count - 1)
    rows, cols = _near_square(count)
    edges = [(a, b) for a, b in _neighbours(rows, cols) if b < count]
    tree, closed = _spanning_tree(count, edges, np.random.default_rng(seed))
    free = np.zeros((2 * rows + 1, 2 * cols + 1), bool)
    place = lambda junction: np.array([junction // cols, junction % cols]) * 2 + 1
    free[tuple(np.stack([place(i) for i in range(count)]).T)] = True
    for a, b in tree + closed[: max(num_loops, 0)]:
        free[tuple((place(a) + place(b)) // 2)] = True
    if num_loops < 0:  # one cell too many: a dead end becomes shorter
        ends = np.bincount(np.ravel(tree), minlength=count)
        free[tuple(place(int(np.flatnonzero(ends == 1)[0])))] = False
    return from_free(free, f"corridors-{num_states}-seed{seed}")


def rooms(rows: int, cols: int, size: int, seed: int, extra: float = 0.2) -> Layout:
    """`rows` x `cols` rooms of `size` x `size` cells, joined by openings of one cell.

    The openings follow a random spanning tree; of the walls between rooms that it leaves closed,
    the share `extra` is opened as well. Raises ValueError for fewer than two cells, more than
    100,000, and shares other than 0 to 1.
    """
    for name, number in (("rows", rows), ("cols", cols), ("size", size)):
        _check_int(name, number, 1, MAX_STATES)
    _check_int("rows * cols * size²", rows * cols * size**2, 2, MAX_STATES)
    _check_share("extra", extra)
    rng = np.random.default_rng(seed)
    tree, closed = _spanning_tree(rows * cols, _neighbours(rows, cols), rng)
    pitch = size + 1
    free = closed_rooms(rows, cols, size)
    for a, b in tree + closed[: round(extra * len(closed))]:
        top, left = pitch * (a // cols) + 1, pitch * (a % cols) + 1
        along = int(rng.integers(size))
        is_horizontal = b == a + 1 and cols > 1
        free[(top + along, left + size) if is_horizontal else (top + size, left + along)] = True
    return from_free(free, f"rooms-{rows}x{cols}-size{size}-seed{seed}")


def closed_rooms(rows: int, cols: int, size: int) -> np.ndarray:
    """`rows` x `cols` rooms of `size` x `size` cells and the walls around them, without a way out.

    bool `[rows * (size + 1) + 1, cols * (size + 1) + 1]`, True where free.
    """
    room = np.pad(np.ones((size, size), bool), ((1, 0), (1, 0)))
    return np.pad(np.tile(room, (rows, cols)), ((0, 1), (0, 1)))


def _check_int(name: str, number: int, least: int, most: int) -> None:
    if not (isinstance(number, int | np.integer) and least <= number <= most):
        raise ValueError(f"{name} is {number}; expected a whole number from {least} to {most}")


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"{name} is {share}; expected a share between 0 and 1")


def _near_square(count: int) -> tuple[int, int]:
    """Rows and columns of the grid whose first `count` places, row by row, are the junctions."""
    cols = int(np.ceil(np.sqrt(count)))
    return -(-count // cols), cols


def _num_closed(count: int) -> int:
    """How many walls between neighbours a spanning tree of `count` junctions leaves closed."""
    rows, cols = _near_square(count)
    return (count - rows) + (count - cols) - (count - 1)


def _neighbours(rows: int, cols: int) -> list[Edge]:
    """The pairs of places beside or below each other, numbered row by row, the smaller first."""
    index = np.arange(rows * cols).reshape(rows, cols)
    beside = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1)
    below = np.stack([index[:-1].ravel(), index[1:].ravel()], 1)
    return [(int(a), int(b)) for a, b in np.concatenate([beside, below])]


def _spanning_tree(
    count: int, edges: list[Edge], rng: np.random.Generator
) -> tuple[list[Edge], list[Edge]]:
    """The edges in random order: those of a spanning tree (Kruskal 1956), and all others."""
    root = list(range(count))

    def find(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    tree, others = [], []
    for i in rng.permutation(len(edges)):
        a, b = find(edges[i][0]), find(edges[i][1])
        (others if a == b else tree).append(edges[i])
        root[a] = b
    return tree, others
