"""Random keys and actions that environments take, and what they refuse for one."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from gymnax.environments.environment import EnvParams, EnvState

from envs.base import Environment
from envs.snake.env import Snake
from envs.vector_field.env import VectorField


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (lambda: 0, "key is of type int: expected one key, such as jax.random.key(0)"),
        (lambda: np.zeros(2), "key is an array of float64"),
        (lambda: jnp.zeros(2), "key is an array of float32"),
        (lambda: jax.random.split(jax.random.key(0)), "key is an array of keys, of shape (2,)"),
        (lambda: np.zeros((3, 2), np.uint32), "key is an array of keys, of shape (3, 2)"),
    ],
)
def test_what_is_not_one_key_is_refused(keys, message):
    env = Snake()
    with pytest.raises(TypeError, match=re.escape(message)):
        env.reset(keys())
    _, state = env.reset(jax.random.key(0))
    with pytest.raises(TypeError, match=re.escape(message)):
        env.step(keys(), state, 0)


def test_raw_keys_are_keys():
    key = jax.random.key(5)
    with jax.legacy_prng_key("allow"):
        _, state = Snake().reset(jax.random.key_data(key))
    chex.assert_trees_all_equal(state, Snake().reset(key)[1])


@pytest.mark.parametrize(
    ("make_env", "action", "message"),
    [
        (Snake, None, "action is of type NoneType: expected int32 of shape (), from 0 to 2"),
        (Snake, 1.0, "action is float32 of shape (): expected int32"),
        (Snake, True, "action is bool of shape (): expected int32"),
        (Snake, np.ones(1, int), "action is of shape (1,): expected int32 of shape ()"),
        (VectorField, 0.0, "action is of shape (): expected float32 of shape (2,)"),
        (VectorField, np.zeros((4, 2)), "action is of shape (4, 2): expected float32"),
        (VectorField, [0.0, 0.0], "action is of type list: expected float32 of shape (2,)"),
    ],
)
def test_what_is_not_an_action_is_refused(key, make_env, action, message):
    env = make_env()
    _, state = env.reset(key)
    with pytest.raises(TypeError, match=re.escape(message)):
        env.step(key, state, action)


def test_a_class_of_parameters_is_refused(key):
    with pytest.raises(TypeError, match=r"params are the class EnvParams, .* give EnvParams\(\)"):
        Snake().reset(key, EnvParams)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("action", [1, np.int8(1), np.array(1), jnp.uint32(1)])
def test_an_integer_of_any_kind_is_a_choice(key, action):
    env = Snake()
    reset_key, step_key = jax.random.split(key)
    _, state = env.reset(reset_key)
    expected = env.step(jax.random.clone(step_key), state, jnp.int32(1))
    chex.assert_trees_all_equal(env.step(step_key, state, action), expected)


class Lamps(Environment):
    """Shows which of two lamps its action has lit, whose space needs parameters that are known."""

    @property
    def default_params(self):
        return EnvParams(max_steps_in_episode=5)

    def start(self, chance, params):
        return EnvState(time=jnp.int32(0))

    def transition(self, chance, state, action, params):
        lit = jnp.sum(jnp.asarray(action, jnp.float32))
        return EnvState(time=state.time + 1), lit, jnp.bool_(False), {}

    def describe(self, state, features, params):
        return jnp.zeros(1)

    def action_space(self, params):
        high = np.full(2, params.max_steps_in_episode > 0)
        return spaces.Box(jnp.asarray(~high), jnp.asarray(high), (2,), jnp.bool_)


@pytest.mark.parametrize("action", [np.array([True, True]), jnp.array([1, 1])])
def test_bool_may_be_an_action(key, action):
    env = Lamps()
    reset_key, step_key = jax.random.split(key)
    _, state = env.reset(reset_key)
    assert env.step(step_key, state, action)[2] == 2
    with pytest.raises(TypeError, match="action is float32 of shape"):
        env.step(jax.random.clone(step_key), state, jnp.ones(2))


@pytest.mark.parametrize("make_env", [Snake, VectorField])
def test_wide_actions_are_narrowed(key, make_env):
    env = make_env()
    reset_key, step_key = jax.random.split(key)
    _, state = env.reset(reset_key)
    action = env.action_space(env.default_params).sample(jax.random.key(1))
    expected = env.step(jax.random.clone(step_key), state, action)
    with jax.enable_x64(True):
        wide = jnp.asarray(np.asarray(action).astype("f8" if action.ndim else "i8"))
        assert wide.dtype.itemsize == 8
        chex.assert_trees_all_equal(env.step(step_key, state, wide), expected)
