"""Spaces hold the same values in both libraries, and what lies outside is refused."""

import gymnasium.spaces as theirs
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces as ours

from envs.gymnasium_adapter.spaces import checked_action, gymnasium_space, to_numpy
from envs.vector_field import VectorField
from tests.envs.gymnasium_adapter.environments import DUEL


def test_only_the_rows_that_are_ignored_may_hold_anything():
    discrete = theirs.MultiDiscrete([3, 4])
    ignored = np.array([True, False])
    checked = checked_action(discrete, np.array([[-1, 2**40], [2, 3]]), 2, ignored)
    assert checked.tolist() == [[0, 0], [2, 3]]
    with pytest.raises(ValueError, match=r"action is -1 at \[1, 0\]"):
        checked_action(discrete, np.array([[0, 0], [-1, 3]]), 2, ignored)
    both = theirs.Tuple([theirs.Discrete(2), theirs.Box(1.0, 2.0, (1,))])
    choice, size = checked_action(both, ([9, 1], [[np.nan], [1.5]]), 2, ignored)
    assert choice.tolist() == [0, 1]
    assert size.tolist() == [[1.0], [1.5]]


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (-0.3, 0.5), (1000.0, 1000.1), (0.0, 3e38)])
def test_what_rounding_adds_to_a_bound_is_clipped(low, high):
    """A squashed action is scaled and shifted in single precision."""
    box = theirs.Box(low, high, (1,))
    size, middle = np.float32((high - low) / 2), np.float32((high + low) / 2)
    for end in (np.float32(-1), np.float32(1)):
        action = checked_action(box, [end * size + middle])
        assert action in box
    assert checked_action(box, [high * (1 + 1e-6)]) in box
    if high < 3e38:
        with pytest.raises(ValueError, match="action is"):
            checked_action(box, [high * (1 + 1e-4)])


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (ours.Discrete(4), theirs.Discrete(4)),
        (ours.Box(0, 255, (2, 3), jnp.uint8), theirs.Box(0, 255, (2, 3), np.uint8)),
        (ours.Box(0, 1, (2,), jnp.bool_), theirs.Box(0, 1, (2,), np.bool_)),  # pyright: ignore
        (ours.Box(-jnp.inf, jnp.inf, (2,)), theirs.Box(-np.inf, np.inf, (2,), np.float32)),
        (
            ours.Box(0.0, jnp.arange(1.0, 3.0), (2,)),
            theirs.Box(np.zeros(2, "f"), np.array([1, 2], "f")),
        ),
        (
            ours.Box(0, jnp.uint32(2**32 - 1), (), jnp.uint32),
            theirs.Box(0, 2**32 - 1, (), np.uint32),
        ),
        (
            ours.Tuple([ours.Discrete(2), ours.Dict({"a": ours.Discrete(3)})]),
            theirs.Tuple([theirs.Discrete(2), theirs.Dict({"a": theirs.Discrete(3)})]),
        ),
        (DUEL.action_space(), theirs.MultiDiscrete([3, 3])),
    ],
)
def test_spaces_hold_the_same_values(space, expected):
    converted_space = gymnasium_space(space)
    assert converted_space == expected
    if not isinstance(space, ours.Dict | ours.Tuple):
        low_high = jnp.zeros(space.shape, space.dtype), jnp.ones(space.shape, space.dtype)
        assert all(to_numpy(converted_space, x) in converted_space for x in low_high)


def test_unbounded_spaces_say_so():
    space = gymnasium_space(VectorField().observation_space())
    assert isinstance(space, theirs.Box)
    assert not space.is_bounded("below")
    assert not space.is_bounded("above")
    with pytest.raises(ValueError, match="the space is a Space; expected Discrete, Box, Dict"):
        gymnasium_space(ours.Space())
