"""The last action beside the observation, for every kind of action."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from envs.vector_field.cart_pole import CircularCartPole
from envs.wrappers import LastAction
from envs.wrappers.flatten_observation import size, vector
from tests.envs.recorder import Recorder
from tests.envs.wrappers.games import (
    BREAKOUT,
    CARTPOLE,
    PENDULUM,
    SNAKE,
    assert_close,
    play,
    play_bare,
    short,
)


@pytest.mark.parametrize(
    ("game", "reward"),
    [
        (BREAKOUT, True),
        (Recorder(), False),
        *(
            pytest.param(game, reward, marks=pytest.mark.slow)
            for game, reward in product((BREAKOUT, CARTPOLE, SNAKE), (True, False))
            if (game, reward) != (BREAKOUT, True)
        ),
    ],
    ids=lambda case: getattr(case, "name", case),
)
def test_last_action_is_one_hot_and_none_at_the_start(game, reward):
    params = short(game)
    first, bare = play_bare(game)
    env = LastAction(game, reward)
    first_obs, steps = play(env, params)

    def join(obs, numbers):
        planes = np.broadcast_to(np.asarray(numbers, obs.dtype), (*obs.shape[:-1], len(numbers)))
        return np.concatenate([obs, planes], axis=-1)

    nothing = [0] * (game.num_actions + reward)
    assert_close(first_obs, join(first, nothing))
    for step, plain in zip(steps, bare, strict=True):
        numbers = [*np.eye(game.num_actions)[step.action], *([plain.reward] if reward else [])]
        assert_close(step.info["final_observation"], join(plain.info["final_observation"], numbers))
        done = plain.terminated or plain.truncated
        assert_close(step.obs, join(plain.obs, nothing if done else numbers))
    assert env.observation_space(params).shape == first_obs.shape


def test_continuous_actions_are_shown_within_their_bounds():
    env = LastAction(PENDULUM)
    params = env.default_params
    obs, state = env.reset(jax.random.key(0), params)
    assert obs.shape == env.observation_space(params).shape == (4,)
    for action, expected in ((0.5, 0.5), (9.0, 2.0), (-jnp.inf, -2.0)):
        obs, *_ = env.step(jax.random.key(1), state, jnp.array([action]), params)
        assert float(obs[3]) == expected
        assert env.observation_space(params).contains(obs)
    cart = LastAction(CircularCartPole())  # whose steps survive an action that is no number
    _, state = cart.reset(jax.random.key(0))
    obs, *_ = cart.step(jax.random.key(1), state, jnp.array([jnp.nan]))
    assert jnp.isfinite(obs).all()


class Choices(spaces.Space):
    """Two integers, below 3 and below 2, as spaces of other libraries hold them."""

    nvec, shape, dtype = (3, 2), (2,), jnp.int32


def test_several_integers_become_one_hot_each():
    np.testing.assert_array_equal(vector(Choices(), jnp.array([2, 0])), [0, 0, 1, 1, 0])
    assert size(Choices()) == 5
