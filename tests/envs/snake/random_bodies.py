"""Snakes of every length and shape, for tests: random bodies, head first, and their boards."""

import random

from tests.envs.snake.oracle import STEPS, Cell, Game, Rules, classic_body, neighbours
from tests.envs.snake.policies import greedy


def self_avoiding_walk(rows: int, cols: int, length: int, rng: random.Random) -> list[Cell]:
    """A random walk that never crosses itself; shorter than `length` where it gets stuck."""
    body = [(rng.randrange(rows), rng.randrange(cols))]
    while len(body) < length:
        options = [
            cell
            for cell in neighbours(body[-1])
            if 0 <= cell[0] < rows and 0 <= cell[1] < cols and cell not in body
        ]
        if not options:
            break
        body.append(rng.choice(options))
    return body


def covering_path(rows: int, cols: int, rng: random.Random) -> list[Cell]:
    """A random path over all cells, by backbite moves from a boustrophedon (Mansfield 1982).

    An end of the path grabs a neighbouring cell, and the piece between them is reversed.
    """
    path = [(r, c if r % 2 == 0 else cols - 1 - c) for r in range(rows) for c in range(cols)]
    for _ in range(rows * cols):
        if rng.random() < 0.5:
            path.reverse()
        row, col = rng.choice(neighbours(path[0]))
        if 0 <= row < rows and 0 <= col < cols:
            cut = path.index((row, col))
            path[:cut] = path[:cut][::-1]
    return path


def random_body(rows: int, cols: int, rng: random.Random) -> list[Cell]:
    """At least three cells: a walk, or a piece of a covering path, which may fill the board."""
    while True:
        if rng.random() < 0.3:
            body = self_avoiding_walk(rows, cols, rng.randint(3, rows * cols), rng)
        else:
            path = covering_path(rows, cols, rng)
            length = rng.randint(3, rows * cols)
            first = rng.randint(0, rows * cols - length)
            body = path[first : first + length]
        if len(body) >= 3:
            return body


def heading_of(body: list[Cell]) -> int:
    """The direction from the neck to the head."""
    step = (body[0][0] - body[1][0], body[0][1] - body[1][1])
    return next(heading for heading, other in STEPS.items() if other == step)


def random_game(
    rows: int, cols: int, rules: Rules, rng: random.Random, obstacles: int = 0, pieces: int = 1
) -> Game:
    """A game in the middle of things, with food on free cells if there are any.

    Obstacles lie anywhere, so that they may cut the board apart.
    """
    body = random_body(rows, cols, rng)
    game = Game(rows, cols, body, heading_of(body), None, rules)
    free = game.free_cells()
    game.obstacles = frozenset(rng.sample(free, min(obstacles, len(free))))
    free = game.free_cells()
    game.food = rng.choice(free) if free else None
    if pieces > 1:
        game.pieces = set(rng.sample(free, min(pieces, len(free))))
        game.food = game.nearest_piece()
    return game


def played_game(rows: int, cols: int, rules: Rules, rng: random.Random) -> Game:
    """A game that was greedy for the food for a while; dead, alive or full."""
    body = classic_body(rows, cols)
    game = Game(rows, cols, body, heading_of(body), None, rules)
    game.food = rng.choice(game.free_cells())
    for _ in range(rng.randint(0, 6 * max(rows, cols))):
        free = [cell for cell in game.free_cells() if cell != game.food]
        report = game.step(greedy(game, rng), rng.choice(free) if free else None)
        if report.terminated or report.truncated:
            break
    return game
