"""Boards to search, with the longest ways that fit on them, and plain breadth-first search."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import rules as snake
from envs.snake.rules import Body
from envs.two_snake import views
from tests.envs.snake.stacked_boards import pack, unpack

Cell = tuple[int, int]
NUM_BOARDS = 24


class Boards(NamedTuple):
    """`[N]`, each with food and two snakes: their ends, and obstacles that are of the first one."""

    rows: int
    cols: int
    obstacles: np.ndarray  # bool [N, rows, cols], apart from what follows
    heads: list[tuple[Cell, Cell]]
    tails: list[tuple[Cell, Cell]]
    food: list[Cell]


def around(cell: Cell) -> list[Cell]:
    row, col = cell
    return [(row - 1, col), (row, col + 1), (row + 1, col), (row, col - 1)]


def distances(free: set[Cell], source: Cell) -> dict[Cell, int]:
    """How many steps the cells of `free` are away from `source`, be it free or not."""
    steps, layer = {source: 0}, [source]
    while layer:
        beside = dict.fromkeys(x for cell in layer for x in around(cell))
        ahead = [x for x in beside if x in free and x not in steps]
        steps |= dict.fromkeys(ahead, steps[layer[0]] + 1)
        layer = ahead
    return steps


def induced_paths(rows: int, cols: int) -> list[list[Cell]]:
    """The longest paths without a shortcut, by trying all that begin on a board."""
    best: list[list[Cell]] = []

    def extend(path: list[Cell], blocked: set[Cell]) -> None:
        if not best or len(path) >= len(best[0]):
            best[:] = [*(x for x in best if len(x) == len(path)), list(path)]
        for cell in around(path[-1]):
            if cell not in blocked and 0 <= cell[0] < rows and 0 <= cell[1] < cols:
                extend([*path, cell], blocked | set(around(path[-1])) | {cell})

    for row in range(rows):
        for col in range(cols):
            extend([(row, col)], {(row, col)})
    return best


def serpentine(rows: int, cols: int) -> list[Cell]:
    """A corridor through every second row."""
    path: list[Cell] = []
    for row in range(0, rows, 2):
        cells = [(row, col) for col in range(cols)][:: 1 if row % 4 == 0 else -1]
        path += [*cells, *([(row + 1, cells[-1][1])] if row + 2 < rows else [])]
    return path


def many_boards(rows: int, cols: int) -> Boards:
    """Obstacles at every density, and corridors, with a head or its food at each end."""
    rng = np.random.default_rng(100 * rows + cols)
    boards = Boards(rows, cols, np.zeros((NUM_BOARDS, rows, cols), bool), [], [], [])
    corridors = [serpentine(rows, cols), [(c, r) for r, c in serpentine(cols, rows)]]
    if rows * cols <= 20:
        corridors += induced_paths(rows, cols)
    corridors += [path[::-1] for path in corridors]
    for i in range(NUM_BOARDS):
        if i < len(corridors):
            path = corridors[i]
            boards.obstacles[i] = True
            boards.obstacles[i][tuple(np.transpose(path))] = False
            food = path[-1]
            if i % 2:  # the first snake begins, the other one stands beside
                cells = [divmod(int(x), cols) for x in rng.permutation(rows * cols)]
                head, (tail, other, other_tail) = path[0], [x for x in cells if x not in path][:3]
            else:
                other_tail, tail, other, head = path[:4]
        else:
            boards.obstacles[i] = rng.uniform(size=(rows, cols)) < rng.uniform(0, 0.7)
            cells = [divmod(int(x), cols) for x in rng.permutation(rows * cols)[:5]]
            head, food, other, tail, other_tail = cells
        boards.obstacles[i][tuple(np.transpose([head, food, other, tail, other_tail]))] = False
        boards.heads.append((head, other))
        boards.tails.append((tail, other_tail))
        boards.food.append(food)
    return boards


def indices(cells: list[Cell], cols: int) -> jax.Array:
    return jnp.array([row * (cols + 1) + col for row, col in cells], jnp.int32)


def body(boards: Boards, player: int) -> Body:
    """The snake of a player `[N]`; the first one has the obstacles."""
    heads, tails = ([pair[player] for pair in ends] for ends in (boards.heads, boards.tails))
    occupied = boards.obstacles & (player == 0)
    for i, ends in enumerate(zip(heads, tails, strict=True)):
        occupied[i][tuple(np.transpose(ends))] = True
    words = pack(occupied)
    return Body(
        occupied=words,
        exits=(words, words),
        head=indices(heads, boards.cols),
        tail=indices(tails, boards.cols),
        heading=jnp.arange(NUM_BOARDS, dtype=jnp.int32) % 4,
        length=jnp.array(occupied.sum((1, 2)), jnp.int32),
        order=None,
    )


def state_of(boards: Boards) -> snake.State:
    zeros, first = jnp.zeros(NUM_BOARDS, jnp.int32), body(boards, 0)
    return snake.State(
        **vars(first), food=indices(boards.food, boards.cols), time=zeros, hunger=zeros
    )


def view_of(boards: Boards) -> views.View:
    zeros, alive = jnp.zeros(NUM_BOARDS, jnp.int32), jnp.ones(NUM_BOARDS, bool)
    food = indices(boards.food, boards.cols)
    return views.View(body(boards, 0), body(boards, 1), alive, alive, zeros, zeros, zeros, food)


def cells_without(boards: Boards, i: int, *taken: Cell) -> set[Cell]:
    """The cells of board i but for obstacles and what else is taken."""
    blocked = boards.obstacles[i]
    return {(int(row), int(col)) for row, col in np.argwhere(~blocked)} - {*taken}


def cells_of(words: Any, boards: Boards) -> list[set[Cell]]:
    """The set of each board."""
    return [
        {(int(row), int(col)) for row, col in np.argwhere(board)}
        for board in unpack(words, boards.rows, boards.cols)
    ]


def ahead_of(boards: Boards, i: int) -> set[Cell]:
    """The cells forward, left and right of the first head."""
    headings = [(i + quarters) % 4 for quarters in (0, 3, 1)]
    return {around(boards.heads[i][0])[heading] for heading in headings}
