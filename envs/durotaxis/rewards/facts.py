"""The inputs of the rewards: one step of a colony, and the facts that several rewards need.

Rewards are computed before slots are compacted: survivors are in their old slots, each with its one
child beside it. So rewards are correct even if the children exceed the capacity.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.durotaxis import substrate
from envs.durotaxis.marking import Marks, count, mean
from envs.durotaxis.rules import Growth, alive
from envs.durotaxis.substrate import Law, Number

FRACTIONS = (0.25, 0.5, 0.75, 0.9)
"""Milestones, as fractions of the width."""


class Ending(NamedTuple):
    """Why an episode terminates: bool scalars, of which at most one is true (`ending_of`)."""

    crowded: jax.Array  # more nodes than the threshold
    empty: jax.Array  # no node is left
    retreated: jax.Array  # the centroid moved left too many times in a row
    arrived: jax.Array  # a node is at the goal


def ending_of(**conditions: jax.Array) -> Ending:
    """The ending, given for each field of `Ending` whether its condition holds (bool scalars).

    Where several hold, the first field counts and the others are false: a colony that outgrows its
    limit on the step that takes it to the goal has failed.
    """
    ended, first = jnp.zeros((), bool), {}
    for name in Ending._fields:
        first[name] = conditions[name] & ~ended
        ended = ended | conditions[name]
    return Ending(**first)


class Step(NamedTuple):
    """One step of one colony; numbers are scalars."""

    growth: Growth
    law: Law
    field: jax.Array  # float32 [H, W], or [0, 0] where the law holds
    width: Number  # px
    height: Number  # px
    time: jax.Array  # int32, steps done before this one; its children are born at time + 1
    critical_nodes: Number  # above it a colony is too large
    delay: Number  # steps
    delta_intensity: Number  # what a child must gain over its parent to count as a success
    max_steps: Number  # steps of an episode
    milestones: jax.Array  # bool [4], reached before this step
    ending: Ending
    marks: Marks | tuple[()] = ()  # only with the reward set `state_machine`
    recovered: jax.Array | tuple[()] = ()  # bool, an empty colony begins again; only if any may
    recovery_price: Number = 0.0  # of that, as a share of the price of an empty colony


class Facts(NamedTuple):
    """Facts derived from a step. Children are in the slots of their parents."""

    step: Step
    nodes: jax.Array  # bool [C], before
    survives: jax.Array  # bool [C]
    deleted: jax.Array  # bool [C]
    intensity: jax.Array  # float32 [C], under the nodes before
    child_intensity: jax.Array  # float32 [C]
    num_before: jax.Array  # float32
    num_after: jax.Array  # float32, survivors and children
    mean_intensity: jax.Array  # float32, under the nodes before; 0 without nodes
    mean_intensity_after: jax.Array
    centroid: jax.Array  # float32, x of the centroid before, px; 0 without nodes
    centroid_after: jax.Array
    is_colony: jax.Array  # bool, whether there are nodes before and after
    terminated: jax.Array  # bool


def facts_of(step: Step) -> Facts:
    """Derives the facts; under `jit` those that no reward reads are never computed."""
    before, growth = step.growth.before, step.growth
    nodes = alive(before)
    survives = growth.survives & nodes
    ground = step.law, step.field
    size = step.width, step.height
    intensity = substrate.intensity(*ground, before.x, before.y, *size)
    child_intensity = substrate.intensity(*ground, growth.child_x, growth.child_y, *size)
    origin = before.x[0]  # relative to a node, so that rounding errors of the centroid stay small
    x, child_x = before.x - origin, growth.child_x - origin
    num_before = count(nodes)
    num_after = 2 * count(survives)
    return Facts(
        step=step,
        nodes=nodes,
        survives=survives,
        deleted=nodes & ~survives,
        intensity=intensity,
        child_intensity=child_intensity,
        num_before=num_before.astype(jnp.float32),
        num_after=num_after.astype(jnp.float32),
        mean_intensity=mean(nodes, intensity),
        mean_intensity_after=mean(survives, intensity, child_intensity),
        centroid=jnp.where(num_before > 0, origin + mean(nodes, x), 0.0),
        centroid_after=jnp.where(num_after > 0, origin + mean(survives, x, child_x), 0.0),
        is_colony=(num_before > 0) & (num_after > 0),
        terminated=is_terminated(step.ending),
    )


def is_terminated(ending: Ending) -> jax.Array:
    """Bool scalar: whether the episode terminates."""
    return ending.crowded | ending.empty | ending.retreated | ending.arrived


def total(mask: jax.Array, *values: jax.Array) -> jax.Array:
    """Float32 `[]`: the sum of all `values` `[C]`, numbers or booleans, at the slots in `mask`."""
    return jnp.sum(jnp.where(mask, sum(value.astype(jnp.float32) for value in values), 0.0))


def advance(facts: Facts) -> jax.Array:
    """How far the centroid moved to the right, px; 0 without a colony before or after."""
    return jnp.where(facts.is_colony, facts.centroid_after - facts.centroid, 0.0)


def farthest(growth: Growth) -> jax.Array:
    """The largest x of survivors and children, px; -inf without any."""
    x = jnp.maximum(growth.before.x, growth.child_x)
    return jnp.max(jnp.where(growth.survives, x, -jnp.inf))


def milestones_reached(growth: Growth, width: Number) -> jax.Array:
    """Bool `[4]`: which `FRACTIONS` of the width (px) the colony's farthest node has reached."""
    return farthest(growth) >= jnp.asarray(FRACTIONS, jnp.float32) * width
