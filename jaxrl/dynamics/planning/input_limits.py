"""Inputs that a rig allows: a box, a largest change per step, and a largest charge.

Each limit is convex, so plans within all of them are, too. Axes: m inputs, H steps of a plan, B
blocks of a plan in which the input is held.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Limits(NamedTuple):
    """What a plan must keep to."""

    low: jax.Array  # [m] smallest inputs
    high: jax.Array  # [m] largest inputs
    change: jax.Array | float = jnp.inf  # largest change of a component from a step to the next
    charge: jax.Array | float = jnp.inf  # largest Σ |u| dt, over all steps and components
    dt: jax.Array | float = 1.0  # time of a step


def held(blocks: jax.Array, hold: int, steps: int) -> jax.Array:
    """The plan `[H, m]`, H = `steps`, that holds each of `blocks` `[B, m]` for `hold` steps."""
    return jnp.repeat(blocks, hold, axis=0)[:steps]


def charge(limits: Limits, plan: jax.Array) -> jax.Array:
    """Σ |u| dt of a plan `[H, m]`."""
    return jnp.sum(jnp.abs(plan)) * limits.dt


def followed(limits: Limits, before: jax.Array, wanted: jax.Array) -> jax.Array:
    """Blocks `[B, m]` after `before` `[m]`, as near to `wanted` as box and change allow."""

    def step(last: jax.Array, want: jax.Array) -> tuple[jax.Array, jax.Array]:
        target = jnp.clip(want, limits.low, limits.high)
        now = jnp.clip(target, last - limits.change, last + limits.change)
        return now, now

    return jax.lax.scan(step, before, wanted)[1]


def quiet(limits: Limits, before: jax.Array, blocks: int) -> jax.Array:
    """`[B, m]`: from `before` as fast as allowed to the inputs of the least charge, 0 if it may be.

    The admissible plan of the least charge.
    """
    return followed(limits, before, jnp.zeros((blocks, len(before))))


def admissible(
    limits: Limits, before: jax.Array, wanted: jax.Array, hold: int, steps: int
) -> jax.Array:
    """A plan `[H, m]` within all limits, from blocks `wanted` `[B, m]`.

    Box and change are kept block after block. If the charge is then too large, the plan is mixed
    with the quiet one, as little as needed where inputs keep their sign. A wanted plan that is
    within all limits stays as it is. `before` must be within reach of the box, and the quiet plan
    within the charge.
    """
    near = held(followed(limits, before, wanted), hold, steps)
    least = held(quiet(limits, before, len(wanted)), hold, steps)
    spent, least_spent = charge(limits, near), charge(limits, least)
    share = (limits.charge - least_spent) / jnp.maximum(spent - least_spent, 1e-30)
    share = jnp.where(spent > limits.charge, jnp.clip(share, 0.0, 1.0), 1.0)
    return jnp.where(share < 1, least + share * (near - least), near)


def broken(limits: Limits, before: jax.Array, plan: jax.Array) -> dict[str, jax.Array]:
    """By how much a plan `[H, m]` is beyond `box`, `change` and `charge`; 0 or less: it is not."""
    jumps = jnp.abs(jnp.diff(jnp.concatenate([before[None], plan]), axis=0))
    outside = jnp.maximum(plan - limits.high[None], limits.low[None] - plan)
    return {
        "box": jnp.max(outside),
        "change": jnp.max(jumps) - limits.change,
        "charge": charge(limits, plan) - limits.charge,
    }
