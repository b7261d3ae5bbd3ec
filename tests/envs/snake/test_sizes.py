"""Games on boards of many sizes in one program, each against the slow one on a board of its own."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake import rules
from envs.snake.bitboard import Board
from envs.snake.env import Snake
from envs.snake.rules import CLASSIC, MODERN
from envs.snake.starts import sizes
from tests.envs.snake import oracle
from tests.envs.snake.duel import duel
from tests.envs.snake.policies import greedy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "rows", "cols", "name"),
    [
        ("near", 6, 7, "modern"),
        ("enhanced", 9, 5, "modern"),
        ("far", 8, 8, "classic"),
        ("gaps", 8, 8, "modern"),
        ("compass", 7, 9, "modern"),
    ],
)
def test_each_game_is_that_of_its_own_board(view, rows, cols, name):
    """Moves, rewards, endings, starvation and all that is seen, in games to the end."""
    fast, slow = {"classic": (CLASSIC, oracle.CLASSIC), "modern": (MODERN, oracle.MODERN)}[name]
    env = Snake(rows, cols, view, replace(fast, starvation=slow.starvation), smallest_side=4)
    params = replace(env.default_params, max_steps_in_episode=slow.max_steps)
    tally = duel(env, params, slow, greedy, num_steps=150, num_games=24)
    assert tally["games"] > 20
    assert tally["longest"] > 10


@pytest.mark.slow
def test_sizes_are_uniform_and_places_those_of_the_board():
    """Each of 15 sizes comes as often, and each start of a size for one number in a row."""
    board = Board(7, 9)
    words = jax.random.bits(jax.random.key(0), (6000, sizes.NUM_WORDS))
    drawn = np.asarray(jax.vmap(lambda x: sizes.draw_size(board, 5, False, x))(words))
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    assert sorted(map(tuple, kinds.tolist())) == [(r, c) for r in (5, 6, 7) for c in range(5, 10)]
    assert abs(counts / 6000 - 1 / 15).max() < 5 * np.sqrt(1 / 15 / 6000)
    squares = np.asarray(jax.vmap(lambda x: sizes.draw_size(board, 5, True, x))(words))
    kinds, counts = np.unique(squares, axis=0, return_counts=True)
    assert kinds.tolist() == [[5, 5], [6, 6], [7, 7]]
    assert abs(counts / 6000 - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 6000)
    for size in ((5, 7), (6, 4)):
        starts = rules.starts(Board(*size), MODERN)
        draw = jax.vmap(sizes.draw_start, in_axes=(None, None, 0))
        drawn = draw(MODERN, jnp.array(size), jnp.arange(len(starts), dtype=jnp.uint32))
        drawn = np.stack(drawn, axis=-1)
        assert sorted(drawn.tolist()) == sorted(starts.tolist())
