"""Notices that plans keep the state where it is; then inputs are random for a while.

At a wall that the model does not know, or at the rim of what plans are about, the best that a short
plan can see may be to stay, although every further sample there teaches less. The state stands
still if its variance, averaged exponentially over so many steps, is small.

Letters: d dimensions of the state.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl.checks import CountOrZero, Positive


@struct.dataclass
class Config:
    """When a state stands still, and what follows."""

    window: Positive = 25.0
    """Steps over which moments are averaged; so many must have been planned at least."""
    radius: Positive = 0.2
    """Standard deviation of a component below which the state stands still."""
    random_steps: CountOrZero = 40
    """Steps for which inputs are then random; 0: never."""


class Standstill(NamedTuple):
    """Statistics of one stream."""

    mean: jax.Array  # [d] of the newest states
    variance: jax.Array  # of their components, on average
    steps: jax.Array  # int32, planned ones since the last random one
    random_left: jax.Array  # int32, steps for which inputs are still random


def begin(dims: int) -> Standstill:
    """Before the first plan."""
    zero = jnp.zeros((), jnp.int32)
    return Standstill(jnp.zeros(dims), jnp.zeros(()), zero, zero)


def watch(
    config: Config, before: Standstill, z: jax.Array, is_planned: jax.Array
) -> tuple[Standstill, jax.Array]:
    """After the state `z` `[d]`, and whether random inputs begin there.

    Where `is_planned` is false, as while the model is new, nothing is counted.
    """
    is_first = before.steps == 0
    mean = jnp.where(is_first, z, before.mean + (z - before.mean) / config.window)
    square = jnp.mean((z - mean) ** 2)
    variance = before.variance + (square - before.variance) / config.window
    variance = jnp.where(is_first, 0.0, variance)
    is_still = (before.steps >= config.window) & (variance < config.radius**2)
    begins = is_still & is_planned & (config.random_steps > 0)
    random_left = jnp.where(begins, config.random_steps, jnp.maximum(before.random_left - 1, 0))
    steps = jnp.where(is_planned & (random_left == 0), before.steps + 1, 0)
    return Standstill(mean, variance, steps, random_left), begins
