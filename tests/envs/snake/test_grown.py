"""Games that begin with a long snake: legal bodies, all lengths, the share that was asked for."""

from functools import cache

import jax
import numpy as np
import pytest

from envs.snake.bitboard import Board
from envs.snake.env import Snake
from envs.snake.pictures import positions

COUNT = 600


@cache
def starts(rows: int, cols: int, share: float):
    """The first states of many games, `[COUNT, ...]`."""
    env = Snake(rows, cols, "planes", "modern", grown_starts=True)
    params = env.default_params.replace(grown_share=share)  # pyright: ignore
    keys = jax.random.split(jax.random.key(rows), COUNT)
    _, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, params)
    return jax.device_get(state)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("rows", "cols"), [(4, 5), (5, 4), (5, 5)])
def test_every_snake_is_a_body_on_the_board(rows, cols):
    """Rebuilt cell by cell from the order of its body, each is the same state."""
    board, states = Board(rows, cols), starts(rows, cols, 1.0)
    for i in range(0, COUNT, 40):
        state = jax.tree.map(lambda x, i=i: x[i], states)
        order = state.order.reshape(rows, cols)
        ranked = [np.argwhere(order == rank)[0] for rank in range(int(state.length), 0, -1)]
        body = [(int(row), int(col)) for row, col in ranked]
        food = divmod(int(state.food), board.stride)
        assert food not in body
        rebuilt = positions.from_body(board, body, food, int(state.heading), keep_order=True)
        jax.tree.map(np.testing.assert_array_equal, rebuilt, state)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("rows", "cols"), [(5, 5), (5, 4)])
def test_the_first_observation_is_that_of_the_position(rows, cols):
    """A snake on a path through an odd board may divide it; found by a flood fill of each."""
    env = Snake(rows, cols, "tail", "modern", grown_starts=True, entrapment="seen")
    params = env.default_params.replace(grown_share=1.0)  # pyright: ignore

    @jax.jit
    def first(keys):
        obs, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
        alone = state.replace(reached=None)
        return obs, jax.vmap(env.get_obs, in_axes=(0, None))(alone, params)

    begun, looked_at = first(jax.random.split(jax.random.key(3), COUNT))
    np.testing.assert_array_equal(begun, looked_at)
    reach = np.asarray(begun)[:, 3:6]
    is_divided = ((reach > 0) & (reach < 1)).any(axis=1)
    assert is_divided.any() == (cols == 5)


def test_all_lengths_places_and_directions_occur():
    states = starts(4, 5, 1.0)
    counts = np.bincount(states.length, minlength=21)[3:20]
    assert counts.sum() == COUNT
    expected = COUNT / 17
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi-square of 16: 39 once in 1,000
    assert len(set(states.head.tolist())) == 20
    assert set(states.heading.tolist()) == {0, 1, 2, 3}


def test_the_share_is_kept_and_the_others_begin_as_ever():
    states = starts(6, 6, 0.3)
    is_long = states.length > 3
    assert 0.2 < is_long.mean() < 0.4
    ranks = states.order.reshape(COUNT, 6, 6)[~is_long]
    rows, cols = (np.ptp(np.argwhere(game > 0), axis=0) for game in (ranks[0], ranks[-1]))
    assert sorted(rows.tolist()) == sorted(cols.tolist()) == [0, 2]  # straight
