"""Actions in few forms, for environments that take them in many."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import environment, spaces
from jax.core import Tracer

from envs.spaces import Composite, children, map_parts
from envs.wrappers.wrapper import Wrapper


class PlainActions(Wrapper):
    """Takes vectors of float32, integers from 0 on and vectors of such; the environment, its own.

    A Box of floats of any shape and dtype is a vector of float32 here, a Box of integers or of bool
    is a vector of int32 from 0 to the size of its range, and a Discrete is int32; so are the parts
    of a Dict or Tuple. What the environment gets has the shape, dtype and bounds of its own space.
    """

    def decide(self, key: jax.Array, memory: Any, action: Any, params: Any) -> tuple[Any, Any]:
        return key, convert_action(self.env.action_space(self.inner(params)), action)

    def action_space(self, params: Any = None) -> Any:
        with jax.ensure_compile_time_eval():  # bounds that are arrays, where a function is traced
            return plain_space(super().action_space(params))


def has_plain_actions(env: environment.Environment, params: Any) -> bool:
    """Whether `PlainActions` would change nothing."""
    return is_plain(env.action_space(params))


def is_plain(space: Any) -> bool:
    """Whether actions in a space are in the few forms."""
    if isinstance(space, Composite):
        return all(is_plain(part) for part in children(space).values())
    if isinstance(space, spaces.Box):
        is_float, is_int = (np.dtype(space.dtype) == x for x in (np.float32, np.int32))
        begins_at_0 = is_int and is_known(space.low) and not np.any(np.asarray(space.low))
        return len(space.shape) == 1 and (is_float or begins_at_0)
    return not isinstance(space, spaces.Discrete) or np.dtype(space.dtype) == np.int32


def is_known(bound: Any) -> bool:
    """Whether a bound is numbers; within a jitted function what depends on parameters is none."""
    return not isinstance(bound, Tracer)


def plain_space(space: Any) -> Any:
    """The space of plain actions; others than those of gymnax stay."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: plain_space(part) for name, part in children(space).items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([plain_space(part) for part in children(space).values()])
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(space.n)
    if not isinstance(space, spaces.Box) or is_plain(space):
        return space
    bounds = space.low, space.high
    arrays = np if all(map(is_known, bounds)) else jnp  # float64 has all integers of 32 bits
    low, high = (arrays.broadcast_to(arrays.asarray(x), space.shape).ravel() for x in bounds)
    if jnp.issubdtype(space.dtype, jnp.floating):
        return spaces.Box(jnp.asarray(low), jnp.asarray(high), low.shape, jnp.float32)
    span = jnp.asarray(high.astype(float) - low.astype(float))
    return spaces.Box(jnp.zeros_like(span), span, span.shape, jnp.int32)


def convert_action(space: Any, action: Any) -> Any:
    """A plain action in the shape, dtype and bounds of a space."""
    return map_parts(convert_part, space, action)


def convert_part(space: Any, action: Any) -> Any:
    """The same for a space without parts."""
    if isinstance(space, spaces.Discrete):
        return jnp.asarray(action, space.dtype)
    if not isinstance(space, spaces.Box):
        return action
    action = jnp.reshape(action, space.shape)
    if not jnp.issubdtype(space.dtype, jnp.floating):
        action = action + jnp.asarray(space.low).astype(jnp.int32)
    return action.astype(space.dtype)
