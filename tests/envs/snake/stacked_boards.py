"""Many boards at once, in the layout of the fast game and back."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from envs.snake.rules import State
from tests.envs.snake.oracle import STEPS, Game, order


def pack(cells: np.ndarray) -> tuple[Any, ...]:
    """`[N, rows, cols]` bool to words `[N]` of uint32, with an empty guard after each row."""
    count, rows, cols = cells.shape
    num_words = -(-rows * (cols + 1) // 32)
    bits = np.zeros((count, num_words * 32), np.uint8)
    guarded = np.pad(cells, ((0, 0), (0, 0), (0, 1)))
    bits[:, : rows * (cols + 1)] = guarded.reshape(count, -1)
    words = np.packbits(bits, axis=1, bitorder="little").view("<u4")
    return tuple(np.ascontiguousarray(words[:, w]) for w in range(num_words))


def unpack(words, rows: int, cols: int) -> np.ndarray:
    """What `pack` was given; refuses guards that are set."""
    stacked = np.ascontiguousarray(np.stack([np.asarray(w) for w in words], axis=1))
    bits = np.unpackbits(stacked.view(np.uint8), axis=1, bitorder="little")
    guarded = bits[:, : rows * (cols + 1)].reshape(-1, rows, cols + 1).astype(bool)
    assert not guarded[..., -1].any()
    return guarded[..., :-1]


def stack_states(games: list[Game]) -> State:
    """The fast states `[N]` of games on boards of one size."""
    rows, cols = games[0].rows, games[0].cols
    exits = np.zeros((len(games), rows, cols), np.int32)
    occupied = np.zeros((len(games), rows, cols), bool)
    for i, game in enumerate(games):
        for age, cell in enumerate(game.body):
            occupied[i][cell] = True
            exits[i][cell] = game.heading if age == 0 else _way(cell, game.body[age - 1])
    place = lambda cell: -1 if cell is None else cell[0] * (cols + 1) + cell[1]
    int32 = lambda values: jnp.asarray(list(values), jnp.int32)
    foods = obstacles = None
    if games[0].pieces is not None:
        most = max(len(game.food_cells) for game in games)
        pieces = [sorted(map(place, game.food_cells)) for game in games]
        foods = int32([*cells, *[-1] * (most - len(cells))] for cells in pieces)
    if any(game.obstacles for game in games):
        blocked = np.zeros((len(games), rows, cols), bool)
        for i, game in enumerate(games):
            for cell in game.obstacles:
                blocked[i][cell] = True
        obstacles = pack(blocked)
    return State(
        occupied=pack(occupied),
        exits=(pack(occupied & (exits & 1 != 0)), pack(occupied & (exits & 2 != 0))),
        head=int32(place(game.head) for game in games),
        tail=int32(place(game.tail) for game in games),
        food=int32(place(game.food) for game in games),
        heading=int32(game.heading for game in games),
        length=int32(len(game.body) for game in games),
        time=int32(game.time for game in games),
        hunger=int32(game.hunger for game in games),
        order=jnp.asarray(np.stack([order(game).reshape(-1) for game in games]), jnp.int16),
        foods=foods,
        obstacles=obstacles,
    )


def _way(cell, successor) -> int:
    step = (successor[0] - cell[0], successor[1] - cell[1])
    return next(heading for heading, other in STEPS.items() if other == step)
