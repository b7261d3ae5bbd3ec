"""Random keys and actions that environments take, and what they refuse for one."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


@pytest.mark.parametrize("action", [1, np.int8(1), np.array(1), jnp.uint32(1)])
def test_an_integer_of_any_kind_is_a_choice(key, action):
    env = Snake()
    reset_key, step_key = jax.random.split(key)
    _, state = env.reset(reset_key)
    expected = env.step(jax.random.clone(step_key), state, jnp.int32(1))
    chex.assert_trees_all_equal(env.step(step_key, state, action), expected)
