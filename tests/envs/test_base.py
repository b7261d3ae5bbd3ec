"""Random keys that environments take, and what they refuse for one."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.env import Snake


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
