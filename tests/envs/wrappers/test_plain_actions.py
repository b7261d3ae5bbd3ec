"""Actions and observations of parts as plain arrays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces.utils import flatten, flatten_space
from gymnax.environments import spaces

from envs.checker import check_contract, env_checker
from envs.gymnasium_adapter.spaces import gymnasium_space, to_numpy
from envs.wrappers import FlattenObservation, FrameStack, LastAction, PlainActions, StickyActions
from envs.wrappers.plain_actions import convert_action, is_plain, plain_space
from tests.envs.recorder import Limits, Parts, Recorder
from tests.envs.wrappers.games import CARTPOLE, play, short


@pytest.mark.slow
def test_parts_are_flattened_as_gymnasium_does():
    inner, env = Parts(), FlattenObservation(Parts())
    theirs, params = gymnasium_space(inner.observation_space()), short(inner)
    (_, plain), (_, flat) = play(inner, params), play(env, params)
    for a, b in zip(plain, flat, strict=True):
        expected: Any = flatten(theirs, to_numpy(theirs, a.obs))
        np.testing.assert_allclose(b.obs, expected, rtol=1e-6)
        ended: Any = flatten(theirs, to_numpy(theirs, a.info["final_observation"]))
        np.testing.assert_allclose(b.info["final_observation"], ended, rtol=1e-6)
    space = env.observation_space()
    wide: Any = flatten_space(theirs)
    np.testing.assert_array_equal(space.low, wide.low)
    np.testing.assert_array_equal(space.high, wide.high)
    check_contract(FrameStack(env, 2), params)
    env_checker(inner, params)


FORMS = {
    "scalar": (spaces.Box(-1.0, 1.0, ()), [0.5], np.array(0.5, np.float32)),
    "matrix": (
        spaces.Box(-1.0, 1.0, (1, 2), jnp.float16),
        [0.5, 1],
        np.array([[0.5, 1]], np.float16),
    ),
    "from 3": (spaces.Box(3, 9, (2,), jnp.int32), [0, 6], np.array([3, 9], np.int32)),
    "bytes": (spaces.Box(0, 255, (2,), jnp.uint8), [7, 255], np.array([7, 255], np.uint8)),
    "bool": (spaces.Box(0, 1, (3,), jnp.bool_), [1, 0, 1], np.array([True, False, True])),
    "bounds": (
        spaces.Box(-2, jnp.array([0, 5]), (2,), jnp.int8),
        [2, 7],
        np.array([0, 5], np.int8),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_plain_actions_are_what_the_space_says(form):
    """A space may also be part of a tuple in a dict, beside what is plain already."""
    space, action, expected = FORMS[form]
    assert not is_plain(space)
    plain = plain_space(space)
    assert is_plain(plain)
    assert plain.contains(jnp.array(action, plain.dtype))
    whole = spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Tuple([space])})
    space_action = convert_action(
        whole, {"b": jnp.int32(1), "a": (jnp.array(action, plain.dtype),)}
    )
    np.testing.assert_array_equal(space_action["a"][0], expected)
    assert (space_action["a"][0].dtype, space_action["a"][0].shape) == (
        expected.dtype,
        expected.shape,
    )
    assert space_action["b"] == 1
    inner = plain_space(whole).spaces
    assert inner["a"].spaces[0].shape == (len(action),)


@pytest.mark.parametrize("of_params", [False, True])
@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
def test_bounds_may_be_arrays_made_or_parameters_traced_where_a_step_is_compiled(dtype, of_params):
    class Bounded(Recorder):
        def action_space(self, params=None):
            most = (params or self.default_params).lifetime if of_params else 1000
            return spaces.Box(jnp.array([[10.0], [most - 5.0]]), most, (2, 1), dtype)

        def transition(self, chance, state, action, params):
            after, *rest = super().transition(chance, state, action.sum(), params)
            return after, *rest

    env = LastAction(StickyActions(PlainActions(Bounded()), 0.0))
    step = jax.jit(env.step)  # parameters are traced
    for lifetime in (1000, 2000):
        params = env.default_params.replace(env=Limits(lifetime=lifetime))
        _, state = env.reset(jax.random.key(0), params)
        action = jnp.array([4, 3], dtype)
        obs, *_ = step(jax.random.key(1), state, action, params)
        most = lifetime if of_params else 1000
        low = (10 + most - 5) if dtype == jnp.int32 else 0
        clipped = np.clip([4, 3], [10, most - 5], most) if dtype == jnp.float32 else [4, 3]
        np.testing.assert_array_equal(obs, [7 + low, 1, *clipped])
        space = jax.jit(lambda p: (env.action_space(p).low, env.action_space(p).high))(params)
        ends = ([10, most - 5], [most, most])
        is_integer = dtype == jnp.int32
        expected = np.subtract(ends, ends[0]) if is_integer else ends
        np.testing.assert_array_equal(space, expected)


def test_plain_actions_reach_the_environment():
    class Bytes(Recorder):
        def action_space(self, params=None):
            return spaces.Box(10, 20, (), jnp.uint8)

    env = PlainActions(Bytes())
    _, state = env.reset(jax.random.key(0))
    obs, *_ = env.step(jax.random.key(1), state, jnp.array([4]))
    assert obs[0] == 14
    assert PlainActions(CARTPOLE).action_space().n == 2
