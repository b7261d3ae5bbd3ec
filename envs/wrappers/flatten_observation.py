"""Observations of several parts as one vector."""

from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment, spaces

from envs.spaces import flat
from envs.wrappers.wrapper import Wrapper


class FlattenObservation(Wrapper):
    """A Dict or Tuple of observations, or one array, as a vector `[D]` of float32.

    Arrays are flattened and integers of a Discrete become one-hot, part after part in the order of
    the space, in which Gymnasium's wrapper of this name has them, too.

    Raises ValueError for a part that is no Box and not Discrete.
    """

    def __init__(self, env: environment.Environment):
        super().__init__(env)
        for part, _ in flat(env.observation_space(env.default_params)):
            if not isinstance(part, spaces.Box | spaces.Discrete):
                raise ValueError(
                    f"observations of {env.name} hold a {type(part).__name__}; expected Box or "
                    "Discrete"
                )

    def show(self, memory: Any, obs: Any) -> jax.Array:
        space = self.env.observation_space(self._inner_or_default(None))
        return jnp.concatenate([vector(part, x) for part, x in flat(space, obs)])

    def observation_space(self, params: Any = None) -> spaces.Box:
        pieces = [ends(part) for part, _ in flat(super().observation_space(params))]
        low, high = (jnp.concatenate(end) for end in zip(*pieces, strict=True))
        return spaces.Box(low, high, low.shape, jnp.float32)


def vector(space: spaces.Box | spaces.Discrete, x: jax.Array) -> jax.Array:
    """One part of an observation as a vector."""
    one_hot = isinstance(space, spaces.Discrete)
    return jax.nn.one_hot(x, space.n) if one_hot else jnp.ravel(jnp.asarray(x, jnp.float32))


def ends(space: spaces.Box | spaces.Discrete) -> tuple[jax.Array, jax.Array]:
    """The smallest and largest numbers of such a vector."""
    if isinstance(space, spaces.Discrete):
        return jnp.zeros(space.n), jnp.ones(space.n)
    wide = lambda end: jnp.ravel(jnp.broadcast_to(jnp.asarray(end, jnp.float32), space.shape))
    return wide(space.low), wide(space.high)
