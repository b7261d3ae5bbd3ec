"""Prioritised replay (Schaul et al. 2016): which steps of a ring (`uniform`) to learn from.

A step is drawn in proportion to its mass, which here always means priorityᵅ, pᵅ: p is the size of
its TD error when it was last learned from. The masses are kept beside the ring, `[capacity, N]`,
and are drawn from in two stages: a row, then an environment within it. Sums are recomputed at every
draw, not updated, so that rounding errors do not accumulate in float32.

Of K blocks (`jaxrl.blocks`) each has sums of its own, in which B / K of every B steps are drawn. A
step of block k then has the probability mass / (K Sₖ), where Sₖ is the sum of its block.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import blocks as in_blocks
from jaxrl.replay.uniform import Replay, ring_shape

SMALLEST = 1e-6
"""Added to every error, so that every step keeps some probability."""
BELOW_ONE = 1.0 - 2.0**-23


@struct.dataclass
class Priorities:
    """How likely each step of a ring is drawn."""

    mass: jax.Array  # [capacity, N] float32, pᵅ; 0 where nothing was written yet
    largest: jax.Array  # float32; the largest mass so far, which new steps are given
    blocks: int = struct.field(pytree_node=False, default=1)


def init(ring: Replay) -> Priorities:
    """Priorities of an empty ring; the first steps get mass 1."""
    return Priorities(jnp.zeros(ring_shape(ring)), jnp.ones(()), ring.blocks)


def add(priorities: Priorities, ring: Replay, length: int) -> Priorities:
    """The `length` rows that `uniform.add` has just written to `ring` get the largest mass."""
    capacity = priorities.mass.shape[0]
    rows = (ring.head - length + jnp.arange(length)) % capacity
    mass = priorities.mass.at[rows].set(
        priorities.largest, mode="promise_in_bounds", unique_indices=True
    )
    return replace(priorities, mass=mass)


def draw(
    priorities: Priorities, ring: Replay, share_pairs: jax.Array, length: int = 1
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Starts of B windows of `length` steps, each in proportion to its mass.

    A start is valid as for `uniform.draw`: `length - 1` rows follow it before the write head. With
    fewer than `length` rows written no start is valid and the result is undefined.

    Args:
      priorities: of the steps in `ring`.
      ring: tells which rows are valid.
      share_pairs: `[B, 2]` random numbers in [0, 1), from `shares`: at which share of the running
        sum of masses the row is, and at which the environment within it.
      length: steps of a window.

    Returns:
      `(row [B], env [B], mass [B])` by block: indices into the ring, int32, and the masses there.
    """
    num_envs, blocks = priorities.mass.shape[1], priorities.blocks
    row_mass = row_masses(priorities, ring, length)
    row = _sample_in_blocks(row_mass, share_pairs[:, 0])
    env_mass = in_blocks.take(priorities.mass, (row, None), 1, blocks)  # [B, N / K]
    env = inverse_cdf_index(env_mass, share_pairs[:, 1])
    mass = jnp.take_along_axis(env_mass, env[:, None], axis=1)[:, 0]
    return row, env + in_blocks.block_starts(len(env), num_envs, blocks), mass


def row_masses(priorities: Priorities, ring: Replay, length: int = 1) -> jax.Array:
    """`[K, capacity]` masses of the rows of each block; 0 where no window of `length` may begin."""
    capacity = priorities.mass.shape[0]
    age = (jnp.arange(capacity) - ring.head + ring.size) % capacity  # rows after the oldest one
    row_mass = jnp.sum(in_blocks.split(priorities.mass, 1, priorities.blocks), axis=2).T
    return jnp.where((age + length <= ring.size)[None], row_mass, 0.0)


def shares(priorities: Priorities, key: jax.Array, updates: int, batch: int) -> jax.Array:
    """Random shares of all mass for `updates` draws of `batch` starts, `[M, B, 2]`. Consumes `key`.

    The first of each pair is stratified: one from each of B equal parts of [0, 1) (appendix
    B.2.1); of K blocks, each has one from each of B / K parts.
    """
    in_blocks.check_draws(priorities.mass.shape[1], batch, priorities.blocks)
    uniform = jax.random.uniform(key, (updates, batch, 2))
    block_batch = batch // priorities.blocks
    part = jnp.arange(batch)[None] % block_batch
    return uniform.at[..., 0].set((part + uniform[..., 0]) / block_batch)


def inverse_cdf_index(mass: jax.Array, share: jax.Array) -> jax.Array:
    """Inverse-CDF sampling: where the running sum of `mass [B, E]` or `[1, E]` passes `share [B]`.

    The index `[B]`, int32; `share` is relative to the whole sum. Never an entry of mass 0, unless
    all are: rounding may lift a running sum even there.
    """
    cumulative = jnp.where(mass > 0, jnp.cumsum(mass, axis=1), 0.0)
    goal = jnp.minimum(share, BELOW_ONE)[:, None] * jnp.max(cumulative, axis=1, keepdims=True)
    # The first one above the goal: a minimum, in half the time of an argmax.
    index = jnp.arange(mass.shape[1], dtype=jnp.int32)[None]
    return jnp.min(jnp.where(cumulative > goal, index, mass.shape[1] - 1), axis=1)


def _sample_in_blocks(mass: jax.Array, share: jax.Array) -> jax.Array:
    """`inverse_cdf_index` in each row of `mass [K, capacity]`, for `share [B]` by block: `[B]`."""
    if len(mass) == 1:
        return inverse_cdf_index(mass, share)
    return jax.vmap(inverse_cdf_index)(mass[:, None], share.reshape(len(mass), -1)).reshape(-1)


def importance_weights(
    mass: jax.Array, exponent: float | jax.Array, sums: jax.Array | None = None
) -> jax.Array:
    """(N P)^-β of steps drawn with `mass [B]`, over the largest of the batch (section 3.4): `[B]`.

    P is a step's probability: its mass over the sum of all, which cancels, as N does. Of blocks it
    is the mass over K times the sum of its block, where only K cancels; `sums [K]` are those sums.
    """
    if sums is not None and len(sums) > 1:
        mean = jnp.maximum(jnp.mean(sums), jnp.finfo(sums.dtype).tiny)
        mass = mass / jnp.repeat(sums / mean, len(mass) // len(sums))
    positive = jnp.maximum(mass, jnp.finfo(mass.dtype).tiny)
    return (jnp.min(positive, initial=jnp.inf) / positive) ** exponent


def mass_of(error: jax.Array, exponent: float | jax.Array) -> jax.Array:
    """pᵅ with p = `error [...]` + 1e-6, errors being at least 0, and α = `exponent`: `[...]`."""
    return (error + SMALLEST) ** exponent


def update(priorities: Priorities, row: jax.Array, env: jax.Array, mass: jax.Array) -> Priorities:
    """The steps at `row [B]`, `env [B]`, by block, get `mass [B]` where it is finite.

    One NaN would make every later draw and every new step's mass NaN.
    """
    is_finite, blocks = jnp.isfinite(mass), priorities.blocks
    mass = jnp.where(is_finite, mass, in_blocks.take(priorities.mass, (row, env), 1, blocks))
    new_mass = in_blocks.put(priorities.mass, (row, env), mass, 1, blocks)
    largest = jnp.max(mass, where=is_finite, initial=0.0)
    return replace(priorities, mass=new_mass, largest=jnp.maximum(priorities.largest, largest))
