"""Pictures of adapted environments follow their states."""

import numpy as np
import pytest

from envs.grid import Grid
from envs.gymnasium_adapter import GymnasiumEnv, GymnasiumVectorEnv
from envs.wrappers import FrameStack, StickyActions
from tests.envs.gymnasium_adapter.environments import DUEL, SNAKE, N, short


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "env",
    [
        SNAKE,
        pytest.param(DUEL, marks=pytest.mark.slow),
        Grid(),
        FrameStack(StickyActions(SNAKE), 2),
    ],
    ids=lambda env: env.name,
)
def test_pictures_follow_the_state(env):
    single = GymnasiumEnv(env, render_mode="rgb_array")
    with pytest.raises(ValueError, match="no episode to draw; call reset first"):
        single.render()
    single.reset(seed=0)
    before = np.asarray(single.render())
    single.step(np.zeros(single.action_space.shape or (), int))
    after = np.asarray(single.render())
    assert before.dtype == after.dtype == np.uint8
    assert before.shape == after.shape
    assert not np.array_equal(before, after)


@pytest.mark.slow
def test_the_last_picture_is_of_the_end():
    """Not of the next episode, which has not begun."""
    games = GymnasiumVectorEnv(SNAKE, N, short(SNAKE, 1), render_mode="rgb_array")
    games.reset(seed=0)
    _, _, _, truncated, _ = games.step(np.zeros(N, int))
    assert truncated.all()
    at_end = np.stack(games.render() or ())
    games.step(np.zeros(N, int))
    after = np.stack(games.render() or ())
    assert len(at_end) == N
    assert (at_end != after).any(axis=(1, 2, 3)).all()
    assert GymnasiumVectorEnv(SNAKE, 2).render() is None
