"""How wrappers nest, and what they say of the environment within."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.checker import env_checker
from envs.snake import Snake
from envs.vector_field.cart_pole import CircularCartPole
from envs.wrappers import ActionRepeat, FrameStack, LastAction, StickyActions
from tests.envs.recorder import Limits, Recorder
from tests.envs.wrappers.games import BREAKOUT, CARTPOLE, SNAKE, assert_close, cases


def test_the_hooks_of_gymnax_go_on_where_step_resets():
    """`step_env` and `is_truncated` are `step` without the reset."""
    env = LastAction(ActionRepeat(FrameStack(Recorder(), 2), 3))
    params = Limits(max_steps_in_episode=5)
    _, state = env.reset(jax.random.key(0), params)
    step_env = jax.jit(env.step_env)
    for i in range(2):
        key_data = jax.random.key_data(jax.random.key(i))
        key = lambda data=key_data: jax.random.wrap_key_data(data)
        stepped = env.step(key(), state, 2, params)
        obs, after, reward, terminated, _ = step_env(key(), state, 2, params)
        truncated = env.is_truncated(after, params)
        assert_close((obs, reward), (stepped[5]["final_observation"], stepped[2]))
        assert (bool(terminated), bool(truncated)) == (bool(stepped[3]), bool(stepped[4]))
        np.testing.assert_array_equal(env.get_obs(after, params), obs)
        np.testing.assert_array_equal(env.observe(key(), after, 2, params), obs)
        state = after
    assert int(state.time) == 5
    assert truncated


def atari(env):
    return FrameStack(LastAction(ActionRepeat(StickyActions(env), 2)), 2)


def wrap_twice(env):
    env = StickyActions(ActionRepeat(LastAction(FrameStack(env, 2), reward=True), 2), 0.1)
    return StickyActions(env, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    cases(
        {"Recorder": wrap_twice(Recorder())},
        {"Snake": atari(Snake(12, 12, "features")), "Breakout": wrap_twice(BREAKOUT)},
    ),
)
def test_every_nest_keeps_the_contract(env):
    env_checker(env)


def test_equal_wrappers_share_a_compilation():
    one, other = (atari(Snake(6, 6)) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one is not other
    assert FrameStack(SNAKE, 2) != FrameStack(SNAKE, 3) != LastAction(SNAKE)
    assert LastAction(SNAKE) != LastAction(SNAKE, reward=True)
    assert FrameStack(SNAKE, 2) != FrameStack(Snake(6, 6), 2)
    assert StickyActions(SNAKE, 0.1) == StickyActions(SNAKE, 0.2)  # a number of the params
    assert FrameStack(CARTPOLE, 2) == FrameStack(CARTPOLE, 2)
    assert FrameStack(CARTPOLE, 2) != FrameStack(gymnax.make("CartPole-v1")[0], 2)


def test_what_a_wrapper_says_of_its_environment():
    env = atari(SNAKE)
    assert env.name == "FrameStack(LastAction(ActionRepeat(StickyActions(Snake-v0))))"
    assert (env.num_actions, env.action_space().n) == (3, 3)
    params = env.default_params
    assert (params.probability, params.env) == (0.25, SNAKE.default_params)
    shorter = params.replace(max_steps_in_episode=7, probability=0.5)
    assert (shorter.max_steps_in_episode, shorter.env.max_steps_in_episode) == (7, 7)
    assert shorter.probability == 0.5
    assert params.max_steps_in_episode == SNAKE.default_params.max_steps_in_episode


@pytest.mark.slow
def test_gradients_flow_where_the_wrapped_environment_lets_them():
    def slope(env):
        params = env.default_params
        _, state = env.reset(jax.random.key(0), params)
        last = lambda u: env.step(jax.random.key(1), state, u, params)[1].env.speed
        return np.asarray(jax.grad(last)(jnp.zeros(1)))

    assert (slope(FrameStack(CircularCartPole(), 2)) == 0).all()
    assert (slope(FrameStack(CircularCartPole().with_transition_gradients(), 2)) != 0).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FrameStack(envs.make("Snake-v0"), 2), r"env is a tuple; expected an environment"),  # pyright: ignore
        (lambda: FrameStack(SNAKE, 0), "num_frames is 0; expected an integer of at least 1"),
        (lambda: ActionRepeat(SNAKE, 1.5), "num_repeats is 1.5; expected an integer"),  # pyright: ignore
        (lambda: ActionRepeat(SNAKE, True), "num_repeats is True; expected an integer"),
        (lambda: StickyActions(SNAKE, 1.5), "probability is 1.5; expected 0 to 1"),
        (
            lambda: FrameStack(envs.make("Grid-v0", observation="index")[0], 2),
            "observations of Grid-v0 are a Discrete; expected a Box, one array",
        ),
        (
            lambda: LastAction(envs.make("Durotaxis-v0", action="nodes")[0]),
            "observations of Durotaxis-v0 are a Dict; expected a Box, one array",
        ),
    ],
)
def test_what_cannot_be_wrapped_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
