"""Observations of several parts as one vector."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import environment, spaces

from envs.gymnax_corrections import observation_space
from envs.spaces import flatten
from envs.wrappers.wrapper import Wrapper


class FlattenObservation(Wrapper):
    """A Dict or Tuple of observations, or one array, as a vector `[D]` of float32.

    Arrays are flattened, integers of a Discrete and of a space with `nvec` become one-hot, part
    after part in the order of the space, in which Gymnasium's wrapper of this name has them, too.

    Raises ValueError for a part that is none of these.
    """

    def __init__(self, env: environment.Environment):
        super().__init__(env)
        for part, _ in flatten(observation_space(env, env.default_params)):
            if not (isinstance(part, spaces.Box) or is_category(part)):
                raise ValueError(
                    f"observations of {env.name} hold a {type(part).__name__}; expected Box, "
                    "Discrete or a space with nvec"
                )

    def show(self, memory: Any, obs: Any) -> jax.Array:
        space = observation_space(self.env, self._inner_or_default(None))
        return jnp.concatenate([vector(part, x) for part, x in flatten(space, obs)])

    def observation_space(self, params: Any = None) -> spaces.Box:
        pieces = [ends(part) for part, _ in flatten(super().observation_space(params))]
        low, high = (jnp.concatenate(end) for end in zip(*pieces, strict=True))
        return spaces.Box(low, high, low.shape, jnp.float32)


def is_category(space: Any) -> bool:
    """Whether a part holds one integer of a few, or several of these."""
    return isinstance(space, spaces.Discrete) or hasattr(space, "nvec")


def choices(space: Any) -> list[int]:
    """How many integers each one of a category may be."""
    return [space.n] if isinstance(space, spaces.Discrete) else np.ravel(space.nvec).tolist()


def vector(space: Any, x: jax.Array) -> jax.Array:
    """One part of an observation as a vector."""
    if not is_category(space):
        return jnp.ravel(jnp.asarray(x, jnp.float32))
    pairs = zip(jnp.ravel(x), choices(space), strict=True)
    return jnp.concatenate([jax.nn.one_hot(number, count) for number, count in pairs])


def size(space: Any) -> int:
    """How many numbers such a vector has."""
    return sum(choices(space)) if is_category(space) else math.prod(space.shape)


def ends(space: Any) -> tuple[jax.Array, jax.Array]:
    """The smallest and largest numbers of such a vector."""
    if is_category(space):
        return jnp.zeros(size(space)), jnp.ones(size(space))
    broadcast = lambda end: jnp.ravel(jnp.broadcast_to(jnp.asarray(end, jnp.float32), space.shape))
    return broadcast(space.low), broadcast(space.high)
