"""Stacked frames against a queue of observations."""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from envs.wrappers import ActionRepeat, FrameStack, LastAction, Wrapper
from tests.envs.recorder import Recorder
from tests.envs.wrappers.games import (
    assert_close,
    over_exact_games,
    over_games,
    play,
    play_bare,
    short,
)


@over_games
def test_frame_stack_is_a_queue_of_observations(game):
    params = short(game)
    first, bare = play_bare(game)
    first_obs, steps = play(FrameStack(game, 3), params)
    queue = deque([first] * 3, maxlen=3)
    join = lambda frames: np.concatenate(list(frames), axis=-1)
    assert_close(first_obs, join(queue))
    for step, plain in zip(steps, bare, strict=True):
        queue.append(plain.info["final_observation"])
        assert_close(step.info["final_observation"], join(queue))
        if plain.terminated or plain.truncated:
            queue = deque([plain.obs] * 3, maxlen=3)
        assert_close(step.obs, join(queue))
        assert step.obs.dtype == plain.obs.dtype
        assert_close(step[2:5], plain[2:5])
    assert any(step.truncated for step in steps)


@over_exact_games
@pytest.mark.parametrize(
    "wrap", [Wrapper, lambda env: FrameStack(env, 1), lambda env: ActionRepeat(env, 1)]
)
def test_one_frame_and_one_repeat_change_nothing(game, wrap):
    """Bit for bit; environments that round may differ in the last bit, compiled in two places."""
    params = short(game)
    assert jax.tree.all(jax.tree.map(np.array_equal, play(wrap(game), params), play_bare(game)))


def test_images_keep_their_height_and_width():
    class Screen(Recorder):
        def describe(self, state, features, params):
            return jnp.full((3, 5), state.time, jnp.uint8)

        def observation_space(self, params=None):
            return spaces.Box(0, 255, (3, 5), jnp.uint8)

    for env, channels in ((FrameStack(Screen(), 4), 4), (LastAction(Screen()), 5)):
        obs, state = env.reset(jax.random.key(0))
        assert obs.shape == env.observation_space().shape == (3, 5, channels)
        obs, *_ = env.step(jax.random.key(1), state, 3)
        assert obs.dtype == env.observation_space().dtype == jnp.uint8
        expected = [0, 0, 0, 1] if channels == 4 else [1, 0, 0, 0, 1]
        assert (np.asarray(obs) == expected).all()
