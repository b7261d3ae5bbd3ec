"""One environment of Gymnasium against a loop over the bare one."""

from dataclasses import replace

import gymnasium
import jax
import numpy as np
import pytest
from gymnax.environments.classic_control import pendulum

from envs.durotaxis import Durotaxis
from envs.gymnasium_adapter import GymnasiumEnv, GymnasiumVectorEnv
from tests.envs.gymnasium_adapter.environments import SNAKE, N, T, short


def test_one_environment_is_a_loop_over_the_bare_one():
    params = short(SNAKE)
    env, step_env = GymnasiumEnv(SNAKE, params), jax.jit(SNAKE.step_env)
    obs, info = env.reset(seed=3)
    key, _, reset_key = jax.random.split(jax.random.key(3), 3)
    expected, state = SNAKE.reset(reset_key, params)
    np.testing.assert_array_equal(obs, expected)
    assert info == {}
    ends = []
    for i in range(T):
        obs, reward, terminated, truncated, info = env.step(i % 3)
        key, step_key, _ = jax.random.split(key, 3)
        expected, state, gain, died, expected_info = step_env(step_key, state, i % 3, params)
        np.testing.assert_allclose(obs, expected, rtol=1e-5, atol=1e-6)
        assert (reward, terminated) == (pytest.approx(float(gain)), bool(died))
        assert truncated == (int(state.time) >= 12)
        assert info["outcome"] == {name: x.item() for name, x in expected_info["outcome"].items()}
        if terminated or truncated:
            ends.append(truncated)
            with pytest.raises(ValueError, match="there is no episode to step in; call reset"):
                env.step(0)
            obs, _ = env.reset()
            key, _, reset_key = jax.random.split(key, 3)
            expected, state = SNAKE.reset(reset_key, params)
            np.testing.assert_array_equal(obs, expected)
    assert ends
    assert type(reward) is float
    assert type(terminated) is type(truncated) is bool


def test_observations_may_be_written_to():
    env, games = GymnasiumEnv(SNAKE), GymnasiumVectorEnv(SNAKE, N)
    first, after = games.reset()[0], games.step(np.zeros(N, int))[0]
    for obs in (env.reset(seed=0)[0], env.step(0)[0], first, after):
        obs[:] = 0


def test_seeds_of_numpy_are_seeds():
    env = GymnasiumEnv(SNAKE)
    plain = env.reset(seed=3)[0]
    for seed in (np.int64(3), np.uint32(3)):
        np.testing.assert_array_equal(env.reset(seed=seed)[0], plain)
        assert env.np_random_seed == 3


@pytest.mark.slow
def test_actions_of_several_parts():
    env = Durotaxis(capacity=8, num_founders=3, action="nodes")
    params = replace(env.default_params, threshold_nodes=8)
    games = GymnasiumVectorEnv(env, 2, params)
    obs, _ = games.reset(seed=0)
    assert obs["nodes"].shape == (2, 9, 11)
    assert obs in games.observation_space
    obs, *_ = games.step(games.action_space.sample())
    assert obs in games.observation_space
    single = GymnasiumEnv(env, params)
    single.reset(seed=0)
    assert single.step(single.action_space.sample())[0] in single.observation_space
    with pytest.raises(ValueError, match=r"action is array\(.*; expected a tuple of 2"):
        games.step(np.zeros((2, 8), int))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (3, "action is 3; expected 0 to 2"),
        (-1, "action is -1; expected 0 to 2"),
        (2**32, "action is 4294967296; expected 0 to 2"),
        (1.0, r"action is 1.0; expected int32 of shape \(\)"),
        ("left", "action is 'left'; expected int32"),
        (None, "action is None; expected int32"),
        (np.zeros(1, int), r"action has shape \(1,\); expected \(\)"),
    ],
)
def test_actions_outside_of_the_space_are_refused(action, message):
    env = GymnasiumEnv(SNAKE)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message) as caught:
        env.step(action)
    assert "\n" not in str(caught.value)


def test_unclipped_actions_are_refused_and_clipped_by_gymnasium():
    env = gymnasium.wrappers.ClipAction(GymnasiumEnv(pendulum.Pendulum()))
    env.reset(seed=0)
    env.step(np.array([7.3], np.float32))
    with pytest.raises(ValueError, match=r"action is 7\.3.* at \[0\]; expected -2.0 to 2.0"):
        env.unwrapped.step(np.array([7.3], np.float32))
