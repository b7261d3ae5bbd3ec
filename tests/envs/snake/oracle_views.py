"""The observations of the slow Snake, one function per name, entry by entry from their definitions.

Absolute order: up, right, down, left. Relative order: forward, left, right.
"""

from dataclasses import replace

import numpy as np

from tests.envs.snake.oracle import STEPS, TURNS, Cell, Game, neighbours, order, reachable_cells


def compass(game: Game, cell: Cell | None) -> list[float]:
    """Is `cell` strictly up, right, down, left of the head? Two can hold; none if no cell."""
    if cell is None:
        return [0.0] * 4
    (row, col), (r, c) = game.head, cell
    return [float(r < row), float(c > col), float(r > row), float(c < col)]


def component(game: Game, turn: int) -> set[Cell]:
    """All that can be reached if the snake's body stood still; empty if the move kills."""
    cell = game.candidate(turn)
    if game.is_blocked(cell):
        return set()
    return reachable_cells(game.rows, game.cols, cell, game.deadly_cells())


def danger(game: Game) -> list[float]:
    return [float(game.is_blocked(game.candidate(turn))) for turn in TURNS]


def space(game: Game) -> list[float]:
    """Reached cells over free cells, at most 1; a full board counts as having one free cell."""
    free = max(len(game.free_cells()), 1)
    return [min(1.0, len(component(game, turn)) / free) for turn in TURNS]


def escapes(game: Game) -> list[float]:
    """Free neighbours of each candidate, over 4; 0 if the candidate is blocked."""
    routes = []
    for turn in TURNS:
        cell = game.candidate(turn)
        free = [n for n in neighbours(cell) if not game.is_blocked(n)]
        routes.append(0.0 if game.is_blocked(cell) else len(free) / 4)
    return routes


def tail_reachable(game: Game) -> float:
    """Is there a path from the head to the tail that avoids the body between them?"""
    blocked = {*game.body[:-1], *game.obstacles}
    return float(game.tail in reachable_cells(game.rows, game.cols, game.head, blocked))


def features_view(game: Game) -> list[float]:
    """[10] danger 3, food direction 4, heading up, right, down (left is none of them)."""
    heading = [float(game.heading == h) for h in range(3)]
    return danger(game) + compass(game, game.food) + heading


def flood_view(game: Game) -> list[float]:
    """[13] features, then the reachable share of the free cells, forward, left, right."""
    return features_view(game) + space(game)


def selective_view(game: Game) -> list[float]:
    """[18] flood, tail direction 4, tail reachable."""
    return flood_view(game) + compass(game, game.tail) + [tail_reachable(game)]


def enhanced_view(game: Game) -> list[float]:
    """[23] flood, escapes 3, tail direction 4, tail reachable, tail distance, length."""
    (row, col), (r, c) = game.head, game.tail
    distance = (abs(row - r) + abs(col - c)) / (game.rows - 1 + game.cols - 1)
    last_entries = [tail_reachable(game), distance, len(game.body) / game.size]
    return flood_view(game) + escapes(game) + compass(game, game.tail) + last_entries


def head_frame(game: Game, cell: Cell | None) -> tuple[int, int]:
    """How far `cell` lies ahead of the head, and how far to its right; (0, 0) if no cell."""
    if cell is None:
        return 0, 0
    down, right = cell[0] - game.head[0], cell[1] - game.head[1]
    ahead, beside = STEPS[game.heading], STEPS[(game.heading + 1) % 4]
    return down * ahead[0] + right * ahead[1], down * beside[0] + right * beside[1]


def signs(offset: tuple[int, int]) -> list[float]:
    ahead, beside = offset
    return [float(ahead > 0), float(ahead < 0), float(beside > 0), float(beside < 0)]


def wall_distance(game: Game, turn: int) -> int:
    """Cells between the head and the wall or an obstacle, whatever else lies on them."""
    down, right = STEPS[(game.heading + TURNS[turn]) % 4]
    (row, col), count = game.head, 0
    while (
        game.is_inside((row + down, col + right))
        and (row + down, col + right) not in game.obstacles
    ):
        row, col, count = row + down, col + right, count + 1
    return count


def tail_view(game: Game) -> list[float]:
    """[28] danger 3, space 3, tail and food within reach 3 + 3, offsets 12, walls 3, length."""
    spaces = [component(game, turn) for turn in TURNS]
    beside_tail = {game.tail, *neighbours(game.tail)}
    tail_reach = [float(bool(cells & beside_tail)) for cells in spaces]
    food_reach = [float(bool(game.food_cells & cells)) for cells in spaces]
    longest = max(game.rows, game.cols) - 1
    to_food, to_tail = head_frame(game, game.food), head_frame(game, game.tail)
    offsets = [number / longest for number in (*to_food, *to_tail)]
    walls = [wall_distance(game, turn) / longest for turn in TURNS]
    entries = danger(game) + space(game) + tail_reach + food_reach
    return (
        entries + offsets + signs(to_food) + signs(to_tail) + walls + [len(game.body) / game.size]
    )


def planes_view(game: Game) -> np.ndarray:
    """[rows, cols, 5] body with head and obstacles, head, tail, food, order over length."""
    board = np.zeros((game.rows, game.cols, 5), np.float32)
    for cell in (*game.body, *game.obstacles):
        board[cell][0] = 1
    board[game.head][1] = 1
    board[game.tail][2] = 1
    for cell in game.food_cells:
        board[cell][3] = 1
    board[..., 4] = order(game) / len(game.body)
    return board


def surrounding_cells(game: Game, radius: int) -> list[Cell]:
    """The cells of the square around the head, row by row, the first row farthest ahead."""
    (row, col), ahead, beside = game.head, STEPS[game.heading], STEPS[(game.heading + 1) % 4]
    return [
        (row + a * ahead[0] + b * beside[0], col + a * ahead[1] + b * beside[1])
        for a in range(radius, -radius - 1, -1)
        for b in range(-radius, radius + 1)
    ]


def cell_lifetime(game: Game, cell: Cell) -> float:
    """Moves until the tail has left a cell, over length; 1 for what is no cell, 0 if it is free."""
    if not game.is_inside(cell) or cell in game.obstacles:
        return 1.0
    if cell not in game.body:
        return 0.0
    return (len(game.body) - game.body.index(cell)) / len(game.body)


def hunger_share(game: Game) -> float:
    """The share of the steps without food that have been used up."""
    return 0.0 if game.rules.starvation == "off" else game.hunger / game.starvation_limit()


def near_view(game: Game) -> list[float]:
    """[191] tail, hunger, and of the 9 × 9 cells around the head: blocked, how long."""
    cells = surrounding_cells(game, 4)
    blocked = [
        float(not game.is_inside(cell) or cell in game.body or cell in game.obstacles)
        for cell in cells
    ]
    return [
        *tail_view(game),
        hunger_share(game),
        *blocked,
        *(cell_lifetime(game, cell) for cell in cells),
    ]


def far_view(game: Game) -> list[float]:
    """[913] near, and of the 19 × 19 cells around the head: free, how long a body cell stays."""
    cells = surrounding_cells(game, 9)
    free = set(game.free_cells())
    return [
        *near_view(game),
        *(float(cell in free or cell in game.food_cells) for cell in cells),
        *(cell_lifetime(game, cell) if cell in game.body else 0.0 for cell in cells),
    ]


def gaps_view(game: Game) -> list[float]:
    """[290] near, what free cells are left, how soon the 9 × 9 cells around the head are free."""
    cells = surrounding_cells(game, 4)
    num_free = game.size - len(game.body) - len(game.obstacles)
    steps_left = {cell: len(game.body) - i for i, cell in enumerate(game.body)}
    soon = [
        float(game.is_inside(cell) and cell not in game.obstacles) / (1 + steps_left.get(cell, 0))
        for cell in cells
    ]
    nearest, farthest = stray_cells(game, 1), stray_cells(game, -1)
    facts, apart = [[0.0] * 8] * 2, 0.0
    if nearest:
        mean = lambda function, cells: np.mean([function(game, cell) for cell in cells], axis=0)
        facts = [mean(stray_facts, cells) for cells in (nearest, farthest)]
        apart = np.abs(mean(head_frame, nearest) - mean(head_frame, farthest)).sum()
    numbers = [1 / max(num_free, 1), 1 / apart if apart else 0.0, *facts[0], *facts[1]]
    return [*near_view(game), *numbers, *soon]


def stray_cells(game: Game, sign: int) -> list[Cell]:
    """The free cell nearest to the food (1) or farthest from it (-1), or both that are."""
    food, free = game.food, set(game.free_cells()) - {game.food}
    if food is None or not free:
        return []
    ahead = lambda cell: head_frame(game, cell)[0]
    rank = lambda c: (sign * distance(c, food), distance(c, game.head), -ahead(c))
    first = min(map(rank, free))
    return [cell for cell in free if rank(cell) == first]


def stray_facts(game: Game, cell: Cell) -> list[float]:
    """[8] Offset and nearness of a free cell, and on which sides of it the body turns around it."""
    assert game.food is not None
    side = max(game.rows, game.cols) - 1
    ahead, right = head_frame(game, cell)
    nearness = 1 / distance(cell, game.food), 1 / (1 + distance(cell, game.head))
    ways = {*zip(game.body, game.body[1:], game.body[2:], strict=False)}
    turns = []
    for turn in range(4):
        one, other = (STEPS[(game.heading + turn + i) % 4] for i in range(2))
        shift = lambda *steps: tuple(map(sum, zip(cell, *steps, strict=True)))
        way = shift(one), shift(one, other), shift(other)
        turns.append(float(way in ways or way[::-1] in ways))
    return [ahead / side, right / side, *nearness, *turns]


def distance(one: Cell, other: Cell) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def egocentric_view(game: Game) -> np.ndarray:
    """[side, side, 5] wall, how long a body cell stays, food, length, hunger."""
    radius = max(game.rows, game.cols) - 1
    share = len(game.body) / game.size
    entries = [
        (
            float(not game.is_inside(cell) or cell in game.obstacles),
            cell_lifetime(game, cell) if cell in game.body else 0.0,
            float(cell in game.food_cells),
            share,
            hunger_share(game),
        )
        for cell in surrounding_cells(game, radius)
    ]
    return np.array(entries, np.float32).reshape(2 * radius + 1, 2 * radius + 1, 5)


def compass_view(game: Game) -> list[float]:
    """[19] heading 4, danger 4, food along its longer way 4, food right, down, length, head, tail.

    Ways of equal length count as sideways, and food in no column's way as to the left.
    """
    heading = [float(game.heading == h) for h in range(4)]
    blocked = [float(game.is_blocked(cell)) for cell in neighbours(game.head)]
    along, right, down = [0.0] * 4, 0, 0
    if game.food is not None:
        down, right = game.food[0] - game.head[0], game.food[1] - game.head[1]
        if abs(down) > abs(right):
            along[0 if down < 0 else 2] = 1.0
        else:
            along[1 if right > 0 else 3] = 1.0
    places = [x for row, col in (game.head, game.tail) for x in (col / game.cols, row / game.rows)]
    offsets = [right / game.cols, down / game.rows, len(game.body) / game.size]
    return heading + blocked + along + offsets + places


def board_view(game: Game) -> np.ndarray:
    """[rows * cols] a third for the body, two for the head, three for food, -1 at obstacles."""
    board = np.zeros((game.rows, game.cols), np.float32)
    for cell in game.body:
        board[cell] = 1 / 3
    board[game.head] = 2 / 3
    for cell in game.food_cells:
        board[cell] = 1
    for cell in game.obstacles:
        board[cell] = -1
    return board.reshape(-1)


def mirror_game(game: Game) -> Game:
    """The game seen in a mirror that stands beside the board."""
    flip = lambda cell: None if cell is None else (cell[0], game.cols - 1 - cell[1])
    body = [(row, game.cols - 1 - col) for row, col in game.body]
    obstacles = frozenset((row, game.cols - 1 - col) for row, col in game.obstacles)
    mirrored = replace(game, body=body, obstacles=obstacles, heading=-game.heading % 4)
    if game.pieces is not None:
        mirrored.pieces = {(row, game.cols - 1 - col) for row, col in game.pieces}
    mirrored.food = flip(game.food)  # the same piece, also where another is as near
    return mirrored


VIEWS = {
    "features": features_view,
    "flood": flood_view,
    "selective": selective_view,
    "enhanced": enhanced_view,
    "tail": tail_view,
    "near": near_view,
    "far": far_view,
    "gaps": gaps_view,
    "compass": compass_view,
    "board": board_view,
    "planes": planes_view,
    "egocentric": egocentric_view,
}


def observe(game: Game, name: str) -> np.ndarray:
    return np.asarray(VIEWS[name](game), np.float32)
