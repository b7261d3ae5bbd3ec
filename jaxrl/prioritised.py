"""Prioritised replay (Schaul et al. 2016): which steps of a ring of `jaxrl.replay` to learn from.

A step is drawn in proportion to its mass pᵅ, where p is its priority: the size of its TD error
when it was last learned from. The masses are kept beside the ring, `[capacity, N]`, and are drawn
from in two stages: a row, then an environment within it. Sums are recomputed at every draw, not
updated, so that rounding errors do not accumulate in float32.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.replay import Replay

SMALLEST = 1e-6
"""Added to every error, so that every step keeps some probability."""
BELOW_ONE = 1.0 - 2.0**-23


class Priorities(NamedTuple):
    """How likely each step of a ring is drawn."""

    mass: jax.Array  # [capacity, N] float32, pᵅ; 0 where nothing was written yet
    largest: jax.Array  # float32; the largest mass so far, which new steps are given


def init(capacity: int, num_envs: int) -> Priorities:
    """For an empty ring of `capacity` rows; the first steps get mass 1."""
    return Priorities(jnp.zeros((capacity, num_envs)), jnp.ones(()))


def add(priorities: Priorities, ring: Replay, length: int) -> Priorities:
    """The `length` rows that `replay.add` has just written to `ring` get the largest mass."""
    capacity = priorities.mass.shape[0]
    rows = (ring.head - length + jnp.arange(length)) % capacity
    mass = priorities.mass.at[rows].set(
        priorities.largest, mode="promise_in_bounds", unique_indices=True
    )
    return Priorities(mass, priorities.largest)


def draw(
    priorities: Priorities, ring: Replay, share: jax.Array, length: int = 1
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Starts of B windows of `length` steps, each in proportion to its mass.

    A start is valid as for `replay.draw`: `length - 1` rows follow it before the write head. With
    fewer than `length` rows written no start is valid and the result is undefined.

    Args:
      priorities: of the steps in `ring`.
      ring: tells which rows are valid.
      share: `[B, 2]` in [0, 1), from `shares`: which row, and which environment within it.
      length: steps of a window.

    Returns:
      `(row [B], env [B], mass [B])`, indices into the ring, int32, and the masses there.
    """
    capacity = priorities.mass.shape[0]
    age = (jnp.arange(capacity) - ring.head + ring.size) % capacity  # rows after the oldest one
    of_row = jnp.where(age + length <= ring.size, jnp.sum(priorities.mass, axis=1), 0.0)
    row = pick(of_row[None], share[:, 0])
    within = priorities.mass[row]  # [B, N]
    env = pick(within, share[:, 1])
    return row, env, jnp.take_along_axis(within, env[:, None], axis=1)[:, 0]


def shares(key: jax.Array, updates: int, batch: int) -> jax.Array:
    """Random numbers for `updates` draws of `batch` starts, `[M, B, 2]`. Consumes `key`.

    The first of each pair is stratified: one from each of B equal parts of [0, 1) (appendix B.2.1).
    """
    uniform = jax.random.uniform(key, (updates, batch, 2))
    part = jnp.arange(batch)[None]
    return uniform.at[..., 0].set((part + uniform[..., 0]) / batch)


def pick(mass: jax.Array, share: jax.Array) -> jax.Array:
    """Inverse-CDF sampling: where the running sum of `mass [B, K]` or `[1, K]` passes `share [B]`.

    The index `[B]`, int32; `share` is relative to the whole sum. Never an entry of mass 0, unless
    all are: rounding may lift a running sum even there.
    """
    reached = jnp.where(mass > 0, jnp.cumsum(mass, axis=1), 0.0)
    goal = jnp.minimum(share, BELOW_ONE)[:, None] * jnp.max(reached, axis=1, keepdims=True)
    # The first one above the goal: a minimum, in half the time of an argmax.
    index = jnp.arange(mass.shape[1], dtype=jnp.int32)[None]
    return jnp.min(jnp.where(reached > goal, index, mass.shape[1] - 1), axis=1)


def importance_weights(mass: jax.Array, exponent: float | jax.Array) -> jax.Array:
    """(N P)^-β of steps drawn with `mass [B]`, over the largest of the batch (section 3.4): `[B]`.

    N and the sum of all masses cancel.
    """
    positive = jnp.maximum(mass, jnp.finfo(mass.dtype).tiny)
    return (jnp.min(positive, initial=jnp.inf) / positive) ** exponent


def mass_of(error: jax.Array, exponent: float | jax.Array) -> jax.Array:
    """pᵅ with p = `error [...]` + 1e-6, errors being at least 0, and α = `exponent`: `[...]`."""
    return (error + SMALLEST) ** exponent


def update(priorities: Priorities, row: jax.Array, env: jax.Array, mass: jax.Array) -> Priorities:
    """The steps at `row [B]`, `env [B]` get `mass [B]`; a mass that is not finite changes nothing.

    One NaN would make every later draw and every new step's mass NaN.
    """
    known = jnp.isfinite(mass)
    mass = jnp.where(known, mass, priorities.mass[row, env])
    changed = priorities.mass.at[row, env].set(mass, mode="promise_in_bounds")
    largest = jnp.max(mass, where=known, initial=0.0)
    return Priorities(changed, jnp.maximum(priorities.largest, largest))
