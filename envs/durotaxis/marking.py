"""Which nodes should be deleted: a stateless rule, and marks that nodes keep.

Nodes never move, so the stiffness under a node is constant and no past state has to be stored.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from flax import struct

from envs.durotaxis.rules import Colony, Growth, alive, compact, rightmost
from envs.durotaxis.substrate import Number

NONE, DELETE, KEEP = 0, 1, 2
MARGIN = 0.05
"""Distance of the intensity from its mean above which a node is marked at once."""
CROWD = 10
"""Nodes beyond the critical number above which every node is marked at once."""
PATIENCE = 10
"""Steps of marking after which every node is marked."""
ROUNDING = 1e-5
"""Relative tolerance of comparisons with the mean: far above the rounding error of a float32 sum
over a colony, so a node exactly at the mean never counts as below it."""


@struct.dataclass
class Marks:
    """The marks of the nodes of one colony; C slots, zeros beyond the last node."""

    mark: jax.Array  # int32 [C] NONE, DELETE or KEEP
    marked_at: jax.Array  # int32 [C] the time, in steps, of the mark
    unmarked_for: jax.Array  # int32 [C] steps of marking spent without a mark
    was_crowded: jax.Array  # bool, whether marking has begun in this episode
    is_first: jax.Array  # bool, whether it began in this step


def no_marks(capacity: int) -> Marks:
    """The marks `[C]` of a colony at the start of an episode: none."""
    zeros, no = jnp.zeros(capacity, jnp.int32), jnp.zeros((), bool)
    return Marks(mark=zeros, marked_at=zeros, unmarked_for=zeros, was_crowded=no, is_first=no)


def update_marks(
    marks: Marks,
    colony: Colony,
    intensity: jax.Array,
    time: jax.Array,
    critical_nodes: Number,
) -> Marks:
    """The updated marks of a colony, before it acts at `time` (steps).

    Nodes are marked while there are more than `critical_nodes`. On ground more than `MARGIN` below
    the mean of `intensity` `[C]` they get DELETE, more than `MARGIN` above it KEEP. In between they
    get DELETE below the mean, else KEEP, but only once there are more than `CROWD` nodes too many
    or the node has waited `PATIENCE` steps for a mark. KEEP may become DELETE, never the reverse.
    """
    nodes = alive(colony)
    level = mean(nodes, intensity)
    is_crowded = colony.num_nodes > critical_nodes
    is_urgent = colony.num_nodes > critical_nodes + CROWD
    is_soft = is_below(intensity, level, MARGIN)
    is_stiff = is_below(-intensity, -level, MARGIN)
    is_decided = is_soft | is_stiff | is_urgent | (marks.unmarked_for >= PATIENCE)
    new_mark = jnp.where(is_soft | (~is_stiff & is_below(intensity, level)), DELETE, KEEP)
    changes = (marks.mark == NONE) | ((marks.mark == KEEP) & (new_mark == DELETE))
    changes = changes & nodes & is_crowded & is_decided
    mark = jnp.where(changes, new_mark, marks.mark)
    is_waiting = nodes & is_crowded & (mark == NONE)
    return Marks(
        mark=mark,
        marked_at=jnp.where(changes, time, marks.marked_at),
        unmarked_for=marks.unmarked_for + is_waiting.astype(jnp.int32),
        was_crowded=marks.was_crowded | is_crowded,
        is_first=is_crowded & ~marks.was_crowded,
    )


def inherit(marks: Marks, growth: Growth) -> Marks:
    """The marks after a step: survivors keep theirs in their new slots, children have none."""
    node_marks = (marks.mark, marks.marked_at, marks.unmarked_for)
    mark, marked_at, unmarked_for = compact(node_marks, growth.survives)
    return replace(marks, mark=mark, marked_at=marked_at, unmarked_for=unmarked_for)


def deletion_rule(
    colony: Colony,
    intensity: jax.Array,
    time: jax.Array,
    critical_nodes: Number,
    delay: Number,
) -> jax.Array:
    """Bool `[C]`: the nodes of a colony at `time` (steps) that should be deleted.

    They are the rightmost `quota` of the nodes that are old enough (`is_old_enough`) and on ground
    below the mean of `intensity` `[C]`; of equal ones the lowest slots.
    """
    nodes = alive(colony)
    old = nodes & is_old_enough(colony.birth, time, delay)
    candidates = old & is_below(intensity, mean(nodes, intensity))
    number = quota(count(candidates), colony.num_nodes, critical_nodes)
    return rightmost(colony.x, candidates, number)


def quota(candidates: jax.Array, num_nodes: jax.Array, critical_nodes: Number) -> jax.Array:
    """How many of the candidates to delete: 15 % of the nodes beyond the critical number.

    At least one and at most all candidates; none if the colony is not beyond that number.
    """
    excess = num_nodes - critical_nodes
    share = jnp.floor(3 * excess / 20).astype(jnp.int32)  # 0.15 is not exact in binary
    return jnp.where(excess > 0, jnp.minimum(jnp.maximum(share, 1), candidates), 0)


def is_old_enough(birth: jax.Array, time: jax.Array, delay: Number) -> jax.Array:
    """Whether nodes of a colony at `time` (steps) already existed `delay` + 1 steps before."""
    return birth <= time - delay - 1


def is_below(value: jax.Array, level: jax.Array, margin: float = 0.0) -> jax.Array:
    """Whether values are more than `margin` below a level, and by more than rounding errors."""
    return value < level - margin - ROUNDING * jnp.abs(level)


def gain(after: jax.Array, before: jax.Array) -> jax.Array:
    """The gain of intensity; 0 if it is within rounding errors.

    On steep exponential ground even the last bits of a float32 are many units of intensity.
    """
    change = after - before
    return jnp.where(jnp.abs(change) > rounding_error(after, before), change, 0.0)


def gains(after: jax.Array, before: jax.Array, least: Number) -> jax.Array:
    """Whether the `gain` is `least` or more, or falls short of it by rounding errors alone.

    On linear ground a gain is a whole number of times the slope, so it often is `least` itself.
    """
    change = gain(after, before)
    return change + jnp.where(change == 0, 0.0, rounding_error(after, before)) >= least


def rounding_error(after: jax.Array, before: jax.Array) -> jax.Array:
    """How far the difference of two intensities may be off, at most."""
    return ROUNDING * jnp.maximum(jnp.abs(after), jnp.abs(before))


def mean(mask: jax.Array, *values: jax.Array) -> jax.Array:
    """The mean of all `values` `[C]` at the slots in `mask` `[C]`; 0 where there are none.

    Divided before it is summed, so that no sum of huge values overflows.
    """
    share = 1.0 / jnp.maximum(count(mask) * len(values), 1)
    return jnp.sum(jnp.where(mask, sum(value * share for value in values), 0.0))


def count(mask: jax.Array) -> jax.Array:
    """Int32 `[]`: how many slots are in `mask` `[C]`."""
    return jnp.sum(mask, dtype=jnp.int32)
