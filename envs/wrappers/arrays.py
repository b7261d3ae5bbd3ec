"""Observations that are one array, joined along their last axis."""

from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment, spaces


def with_channels(x: jax.Array) -> jax.Array:
    """Gives scalars and `[H, W]` the last axis along which observations are joined."""
    return x[..., None] if x.ndim in (0, 2) else x


def limits(space: spaces.Box) -> tuple[jax.Array, jax.Array, Any]:
    """`low` and `high` as arrays like the elements, `with_channels`, and the dtype of these."""
    low, high = (
        with_channels(jnp.broadcast_to(jnp.asarray(end, space.dtype), space.shape))
        for end in (space.low, space.high)
    )
    return low, high, space.dtype


def check_box(env: environment.Environment) -> None:
    space = env.observation_space(env.default_params)
    if not isinstance(space, spaces.Box):
        raise ValueError(
            f"observations of {env.name} are a {type(space).__name__}; expected a Box, one array"
        )
