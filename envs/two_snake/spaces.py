"""Spaces of the actions and observations of several players."""

from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import spaces


class Actions(spaces.Discrete):
    """An action of each player, int32 `[P]`: the learner's, and then the rivals'."""

    def __init__(self, num_categories: int, players: int):
        super().__init__(num_categories)
        self.shape = (players,)

    def contains(self, x: jax.Array) -> jax.Array:
        return jnp.all(super().contains(x))


class Views(spaces.Dict):
    """Observations that are dicts; gymnax's own looks the entries up as attributes."""

    def contains(self, x: Any) -> Any:
        are_inside = [space.contains(x[name]) for name, space in self.spaces.items()]
        return jnp.all(jnp.stack(are_inside))
