"""Games that begin where an earlier one was late, followed step by step in plain Python."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.env import Snake
from envs.snake.players import action_for, lookahead
from envs.snake.starts.late import LEAST_FREE, MOST_FREE

GAMES, STEPS, SHARE = 48, 400, 0.6
BODY = ("occupied", "exits", "head", "tail", "heading", "length", "order", "obstacles", "size")


def play(env: Snake) -> dict[str, Any]:
    """States, observations and endings of games side by side, `[STEPS, GAMES, ...]`.

    A rule-based player, one of whose moves in twenty is random.
    """
    params = env.default_params.replace(late_share=SHARE)  # pyright: ignore

    def step(state, key):
        move_key, *random_keys, step_key = jax.random.split(key, 4)
        action = action_for(env, state, lookahead(env.board, env.rules, state, move_key))
        is_random = jax.random.bernoulli(random_keys[0], 0.05)
        action = jnp.where(is_random, jax.random.randint(random_keys[1], (), 0, 3), action)
        obs, state, _, terminated, truncated, info = env.step(step_key, state, action, params)
        alone = state.replace(reached=None)
        ended, won = terminated | truncated, info["outcome"]["won"]
        views = {"obs": obs, "of_position": env.get_obs(alone, params)}
        return state, views | {"state": state, "ended": ended, "won": won}

    def step_all(states, key):
        return jax.vmap(step)(states, jax.random.split(key, GAMES))

    reset_keys = jax.random.split(jax.random.key(5), GAMES)
    _, states = jax.vmap(env.reset, in_axes=(0, None))(reset_keys, params)
    play_keys = jax.random.split(jax.random.key(6), STEPS)
    return jax.device_get(jax.jit(lambda: jax.lax.scan(step_all, states, play_keys)[1])())


def body(state: Any) -> list[np.ndarray]:
    """What makes a snake, and the board that it is on."""
    return jax.tree.leaves([getattr(state, name) for name in BODY])


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    [
        Snake(4, 5, "near", "modern", late_starts=True),
        Snake(5, 6, "far", "modern", smallest_side=4, late_starts=True),
        Snake(6, 6, "planes", "modern", obstacles=2, foods=2, late_starts=True, mirror=False),
        Snake(4, 4, "tail", "modern", mirror=True, grown_starts=True, late_starts=True),
    ],
)
def test_a_late_game_begins_in_a_position_of_an_earlier_one(env):
    record = play(env)
    np.testing.assert_array_equal(record["obs"], record["of_position"])
    late_games = possible_games = losses_given_up = 0
    for game in range(GAMES):
        at = lambda t, game=game: jax.tree.map(lambda x: x[t, game], record["state"])
        late_body, was_late, before = None, False, at(0)
        for t in range(1, STEPS):
            state, practice = at(t), at(t).practice
            open_cells = int(num_open(env, state))
            assert (
                int(LEAST_FREE * open_cells)
                <= practice.num_free
                <= MOST_FREE * num_cells(env, state)
            )
            if record["ended"][t, game]:
                if was_late and not record["won"][t, game]:
                    late_body, losses_given_up = None, losses_given_up + 1
                assert practice.has_position == (late_body is not None)
                possible_games += late_body is not None
                was_late = bool(practice.is_late)
                assert state.time == state.hunger == 0
                assert int(state.food) >= 0
                if was_late:
                    late_games += 1
                    assert late_body is not None
                    for a, b in zip(body(state), late_body, strict=True):
                        np.testing.assert_array_equal(a, b)
            elif state.length > before.length and open_cells - state.length == practice.num_free:
                late_body = body(state)
            before = state
    assert losses_given_up > 5
    assert possible_games > 25
    spread = np.sqrt(SHARE * (1 - SHARE) / possible_games)
    assert abs(late_games / possible_games - SHARE) < 4 * spread


def num_cells(env: Snake, state: Any) -> int:
    """Cells of the board of this game."""
    return int(np.prod((env.board.rows, env.board.cols) if state.size is None else state.size))


def num_open(env: Snake, state: Any) -> int:
    """The same without obstacles."""
    return num_cells(env, state) - env.obstacles
