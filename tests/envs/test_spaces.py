"""Samples of spaces, also of those without ends."""

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces

from envs.spaces import contains, sample


def test_samples_are_numbers_inside_their_space():
    largest = jnp.finfo(jnp.float32).max
    low = jnp.array([-jnp.inf, 2.0, -jnp.inf, -1.0, -largest])
    high = jnp.array([jnp.inf, jnp.inf, -3.0, 1.0, largest])
    ends, whole = spaces.Box(low, high, (5,)), spaces.Box(0, np.inf, (), jnp.int32)
    space = spaces.Dict({"x": ends, "a": spaces.Tuple((whole, spaces.Discrete(3)))})

    @jax.jit
    @jax.vmap
    def draw(key):
        value = sample(space, key)
        return value, contains(space, value)

    values, are_inside = draw(jax.random.split(jax.random.key(0), 200))
    assert are_inside.all()
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(values))
    assert (np.std(values["x"], axis=0) > 0.3).all()  # each of them varies


def test_samples_of_bounded_boxes_are_those_of_gymnax():
    box = spaces.Box(-1.0, 3.0, (2,))
    theirs = box.sample(jax.random.key(1))
    np.testing.assert_array_equal(sample(box, jax.random.key(1)), theirs)
