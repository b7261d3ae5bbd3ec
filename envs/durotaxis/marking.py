"""Which nodes should be deleted: the rule of the laboratory, and marks that persist with nodes.

A node never moves, so the stiffness under it is the same for life: what it stood on some steps ago
is what it stands on now, and no past state need be kept to tell.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from flax import struct

from envs.durotaxis.rules import Colony, Growth, alive, compact, rightmost
from envs.durotaxis.substrate import Number

NONE, DELETE, KEEP = 0, 1, 2
MARGIN = 0.05
"""How far from the mean intensity a node must stand to be marked without haste."""
CROWD = 10
"""Nodes beyond the critical number at which marking cannot wait."""
PATIENCE = 10
"""Steps of marking that a node may stay unmarked."""
ROUNDING = 1e-5
"""Relative to the mean: what is nearer to it than this is not below it. Far above what float32
rounds in a sum over a colony, so a node that stands exactly at the mean never counts as below."""


@struct.dataclass
class Marks:
    """What the nodes of one colony are marked with; C slots, zeros beyond the last node."""

    mark: jax.Array  # int32 [C] NONE, DELETE or KEEP
    marked_at: jax.Array  # int32 [C] the time, in steps, at which it got its mark
    unmarked_for: jax.Array  # int32 [C] how many steps of marking have left it unmarked
    was_crowded: jax.Array  # bool, whether marking has begun in this episode
    is_first: jax.Array  # bool, whether it began just now


def no_marks(capacity: int) -> Marks:
    """The marks `[C]` of a colony at the start of an episode: none."""
    zeros, no = jnp.zeros(capacity, jnp.int32), jnp.zeros((), bool)
    return Marks(mark=zeros, marked_at=zeros, unmarked_for=zeros, was_crowded=no, is_first=no)


def marked(
    marks: Marks,
    colony: Colony,
    intensity: jax.Array,
    time: jax.Array,
    critical_nodes: Number,
) -> Marks:
    """The marks once the colony has been looked at, which is before it acts at `time` (steps).

    Only a colony of more than `critical_nodes` is marked. Its nodes on ground more than `MARGIN`
    below the mean of `intensity` `[C]` are to be deleted, those as much above to be kept; between
    the two, one waits until there are `CROWD` nodes too many or `PATIENCE` steps have passed, and
    then the mean decides. A node to be kept may become one to be deleted, never the reverse.
    """
    nodes = alive(colony)
    level = mean(nodes, intensity)
    crowded = colony.num_nodes > critical_nodes
    pressed = colony.num_nodes > critical_nodes + CROWD
    poor = below(intensity, level, MARGIN)
    rich = below(-intensity, -level, MARGIN)
    decided = poor | rich | pressed | (marks.unmarked_for >= PATIENCE)
    wanted = jnp.where(poor | (~rich & below(intensity, level)), DELETE, KEEP)
    changes = (marks.mark == NONE) | ((marks.mark == KEEP) & (wanted == DELETE))
    changes = changes & nodes & crowded & decided
    mark = jnp.where(changes, wanted, marks.mark)
    waits = nodes & crowded & (mark == NONE)
    return Marks(
        mark=mark,
        marked_at=jnp.where(changes, time, marks.marked_at),
        unmarked_for=marks.unmarked_for + waits.astype(jnp.int32),
        was_crowded=marks.was_crowded | crowded,
        is_first=crowded & ~marks.was_crowded,
    )


def inherit(marks: Marks, growth: Growth) -> Marks:
    """The marks once the colony has closed ranks: survivors keep theirs, children have none."""
    carried = (marks.mark, marks.marked_at, marks.unmarked_for)
    mark, marked_at, unmarked_for = compact(carried, growth.survives)
    return replace(marks, mark=mark, marked_at=marked_at, unmarked_for=unmarked_for)


def lab_marks(
    colony: Colony,
    intensity: jax.Array,
    time: jax.Array,
    critical_nodes: Number,
    delay: Number,
) -> jax.Array:
    """Bool `[C]`: the nodes that the laboratory's rule wants gone from a colony at `time` (steps).

    Of the nodes that are old enough (`existed`) and stand on ground below the mean of `intensity`
    `[C]`, the rightmost `quota`, among equals the lowest slot. It needs nothing but the colony.
    """
    nodes = alive(colony)
    old = nodes & existed(colony.birth, time, delay)
    candidates = old & below(intensity, mean(nodes, intensity))
    number = quota(count(candidates), colony.num_nodes, critical_nodes)
    return rightmost(colony.x, candidates, number)


def quota(candidates: jax.Array, num_nodes: jax.Array, critical_nodes: Number) -> jax.Array:
    """How many of the candidates are marked: 15 % of the nodes beyond the critical number.

    At least one and at most all of them; none in a colony that is not beyond it.
    """
    excess = num_nodes - critical_nodes
    share = jnp.floor(3 * excess / 20).astype(jnp.int32)  # 0.15 is no binary fraction
    return jnp.where(excess > 0, jnp.minimum(jnp.maximum(share, 1), candidates), 0)


def existed(birth: jax.Array, time: jax.Array, delay: Number) -> jax.Array:
    """Whether nodes of a colony at `time` (steps) were there `delay` + 1 steps before."""
    return birth <= time - delay - 1


def below(value: jax.Array, level: jax.Array, margin: float = 0.0) -> jax.Array:
    """Whether values lie more than `margin` below a level, and by more than rounding."""
    return value < level - margin - ROUNDING * jnp.abs(level)


def gain(after: jax.Array, before: jax.Array) -> jax.Array:
    """How much intensity was gained; 0 where it is no more than rounding.

    On steep exponential ground even the last bits of a float32 are many units of intensity.
    """
    change = after - before
    noise = ROUNDING * jnp.maximum(jnp.abs(after), jnp.abs(before))
    return jnp.where(jnp.abs(change) > noise, change, 0.0)


def mean(mask: jax.Array, *values: jax.Array) -> jax.Array:
    """The mean of all `values` `[C]` at the slots in `mask` `[C]`; 0 where there are none.

    Divided before it is summed, so that no sum of huge values overflows.
    """
    share = 1.0 / jnp.maximum(count(mask) * len(values), 1)
    return jnp.sum(jnp.where(mask, sum(value * share for value in values), 0.0))


def count(mask: jax.Array) -> jax.Array:
    """Int32 `[]`: how many slots are in `mask` `[C]`."""
    return jnp.sum(mask, dtype=jnp.int32)
