"""Inputs that a rig allows: a box, a largest change per step, and a largest charge.

Each limit is convex, so plans within all of them are, too. Axes: m inputs, H steps of a plan, B
blocks of a plan in which the input is held, W steps of a window.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Limits(NamedTuple):
    """What a plan must keep to."""

    low: jax.Array  # [m] smallest inputs
    high: jax.Array  # [m] largest inputs
    change: jax.Array | float = jnp.inf  # [m] or for all: largest change from a step to the next
    charge: jax.Array | float = jnp.inf  # largest Σ |u| dt, over components and steps of a window
    dt: jax.Array | float = 1.0  # time of a step
    spent: jax.Array | None = None  # [W - 1] |u| dt of the steps before; None: the plan is a window


def hold_blocks(blocks: jax.Array, hold: int, steps: int) -> jax.Array:
    """The plan `[H, m]`, H = `steps`, that holds each of `blocks` `[B, m]` for `hold` steps."""
    return jnp.repeat(blocks, hold, axis=0)[:steps]


def charge(limits: Limits, plan: jax.Array) -> jax.Array:
    """Σ |u| dt of a plan `[H, m]`."""
    return jnp.sum(jnp.abs(plan)) * limits.dt


def window_charges(limits: Limits, plan: jax.Array) -> jax.Array:
    """Σ |u| dt of the windows that end within a plan `[H, m]`: `[H]`, or `[1]` of all of it."""
    if limits.spent is None:
        return charge(limits, plan)[None]
    amounts = jnp.concatenate([limits.spent, jnp.sum(jnp.abs(plan), axis=1) * limits.dt])
    until = jnp.concatenate([jnp.zeros(1), jnp.cumsum(amounts)])
    window = len(limits.spent) + 1
    return until[window:] - until[:-window]


def clip_blocks(limits: Limits, before: jax.Array, targets: jax.Array) -> jax.Array:
    """Blocks `[B, m]` after `before` `[m]`, as near to `targets` as box and change allow."""

    def step(last: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
        clipped_target = jnp.clip(target, limits.low, limits.high)
        now = jnp.clip(clipped_target, last - limits.change, last + limits.change)
        return now, now

    return jax.lax.scan(step, before, targets)[1]


def quiet_blocks(limits: Limits, before: jax.Array, blocks: int) -> jax.Array:
    """`[B, m]`: from `before` as fast as allowed to the inputs of the least charge, 0 if it may be.

    The admissible plan of the least charge.
    """
    return clip_blocks(limits, before, jnp.zeros((blocks, len(before))))


def enforce(
    limits: Limits, before: jax.Array, targets: jax.Array, hold: int, steps: int
) -> jax.Array:
    """A plan `[H, m]` within all limits, from blocks `targets` `[B, m]`.

    Box and change are kept block after block. If the charge of a window is then too large, the plan
    is mixed with the quiet one, as little as needed where inputs keep their sign. Targets that are
    within all limits stay as they are. `before` must be within reach of the box, and the quiet plan
    within the charge.
    """
    clipped_plan = hold_blocks(clip_blocks(limits, before, targets), hold, steps)
    quiet_plan = hold_blocks(quiet_blocks(limits, before, len(targets)), hold, steps)
    clipped_charge, quiet_charge = (window_charges(limits, x) for x in (clipped_plan, quiet_plan))
    share = (limits.charge - quiet_charge) / jnp.maximum(clipped_charge - quiet_charge, 1e-30)
    share = jnp.where(clipped_charge > limits.charge, jnp.clip(share, 0.0, 1.0), 1.0).min()
    return jnp.where(share < 1, quiet_plan + share * (clipped_plan - quiet_plan), clipped_plan)


def violations(limits: Limits, before: jax.Array, plan: jax.Array) -> dict[str, jax.Array]:
    """By how much a plan `[H, m]` is beyond `box`, `change` and `charge`; 0 or less: it is not."""
    jumps = jnp.abs(jnp.diff(jnp.concatenate([before[None], plan]), axis=0))
    outside = jnp.maximum(plan - limits.high[None], limits.low[None] - plan)
    return {
        "box": jnp.max(outside),
        "change": jnp.max(jumps - jnp.atleast_1d(limits.change)[None]),
        "charge": jnp.max(window_charges(limits, plan)) - limits.charge,
    }
