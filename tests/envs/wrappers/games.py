"""Games to wrap, and how they are played step by step in plain Python."""

from functools import cache
from typing import Any, NamedTuple

import gymnax
import jax
import numpy as np
import pytest

from envs.snake import Snake
from tests.envs.recorder import Recorder

T = 30
CARTPOLE, BREAKOUT, PENDULUM = (
    gymnax.make(name)[0] for name in ("CartPole-v1", "Breakout-MinAtar", "Pendulum-v1")
)
SNAKE = Snake(5, 5, "features")


def cases(fast: dict[str, Any], slow: dict[str, Any]) -> list:
    """Cases of a parameter by name, the second ones marked as slow."""
    marks = (), (pytest.mark.slow,)
    return [
        pytest.param(game, id=name, marks=mark)
        for games, mark in zip((fast, slow), marks, strict=True)
        for name, game in games.items()
    ]


over_games = pytest.mark.parametrize(
    "game",
    cases(
        {"Breakout": BREAKOUT, "Recorder": Recorder()},  # gymnax's, of images; ours
        {"CartPole": CARTPOLE, "Snake": SNAKE},
    ),
)
over_exact_games = pytest.mark.parametrize(
    "game", cases({"Recorder": Recorder()}, {"Breakout": BREAKOUT, "Snake": SNAKE})
)


class Step(NamedTuple):
    """What one call of `step` returned, as NumPy, and what it was given."""

    action: Any
    obs: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any


def keys_of(seed: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), T + 1)


def short(env: Any, steps: int = 9) -> Any:
    """Its params with episodes so short that most end by the clock."""
    return env.default_params.replace(max_steps_in_episode=steps)


def play(env: Any, params: Any, change_key=lambda key: key) -> tuple[np.ndarray, list[Step]]:
    """The first observation and T random steps; `change_key` is applied to their keys."""
    keys = keys_of(0)
    sample = jax.jit(env.action_space(params).sample)
    obs, state = env.reset(keys[T], params)
    first, steps = jax.tree.map(np.asarray, obs), []
    for i, key in enumerate(keys[:T]):
        action = sample(jax.random.key(1000 + i))
        obs, state, *rest = env.step(change_key(key), state, action, params)
        steps.append(Step(*jax.tree.map(np.asarray, (action, obs, *rest))))
    return first, steps


@cache
def play_bare(game: Any) -> tuple[np.ndarray, list[Step]]:
    """What `play` returns of a game without a wrapper, in short episodes."""
    return play(game, short(game))


def assert_close(actual: Any, expected: Any):
    same = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    jax.tree.map(same, actual, expected)
