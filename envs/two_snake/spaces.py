"""Spaces of the actions and observations of two players."""

from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import spaces


class Pair(spaces.Discrete):
    """Two actions, int32 `[2]`: the learner's and the rival's."""

    def __init__(self, num_categories: int):
        super().__init__(num_categories)
        self.shape = (2,)

    def contains(self, x: jax.Array) -> jax.Array:
        return jnp.all(super().contains(x))


class Views(spaces.Dict):
    """Observations that are dicts; gymnax's own looks the entries up as attributes."""

    def contains(self, x: Any) -> Any:
        are_inside = [space.contains(x[name]) for name, space in self.spaces.items()]
        return jnp.all(jnp.stack(are_inside))
