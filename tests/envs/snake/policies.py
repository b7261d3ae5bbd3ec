"""Ways to play the slow Snake: from a game to a relative move."""

import random
from functools import cache

from tests.envs.snake.oracle import FORWARD, TURNS, Cell, Game


def random_turn(game: Game, rng: random.Random) -> int:
    return rng.choice(list(TURNS))


def safe_turns(game: Game) -> list[int]:
    return [turn for turn in TURNS if not game.is_blocked(game.candidate(turn))]


def greedy(game: Game, rng: random.Random) -> int:
    """The safe move that comes nearest to the food; ties by chance."""
    if game.food is None:
        return FORWARD
    row, col = game.food
    distance = lambda turn: sum(
        abs(a - b) for a, b in zip(game.candidate(turn), (row, col), strict=True)
    )
    return min(safe_turns(game), key=lambda turn: (distance(turn), rng.random()), default=FORWARD)


def idle(game: Game, rng: random.Random) -> int:
    """Any safe move that does not eat, as long as there is one."""
    safe = safe_turns(game)
    hungry = [turn for turn in safe if game.candidate(turn) != game.food]
    return rng.choice(hungry or safe or [FORWARD])


def follow_cycle(game: Game, rng: random.Random) -> int:
    """Follows a cycle through all cells, which fills the board in the end."""
    next_cell = cycle(game.rows, game.cols)[game.head]
    safe = safe_turns(game)
    ahead = [turn for turn in safe if game.candidate(turn) == next_cell]
    return (ahead or safe or [FORWARD])[0]


@cache
def cycle(rows: int, cols: int) -> dict[Cell, Cell]:
    """The next cell of a Hamiltonian cycle: back and forth beside a lane that leads home."""
    if rows % 2:
        return {(r, c): (n, m) for (c, r), (m, n) in cycle(cols, rows).items()}
    path = [
        (row, col if row % 2 == 0 else cols - col) for row in range(rows) for col in range(1, cols)
    ]
    path += [(row, 0) for row in reversed(range(rows))]
    return dict(zip(path, path[1:] + path[:1], strict=True))
