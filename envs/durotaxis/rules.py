"""The rules of a colony that moves by growing on one side and dying on the other, on arrays.

Cells never move. On every step some are deleted, and each of the others has one child. The links
from parents to children form a forest, for every cell has at most one parent, so the whole graph is
one integer per cell. For what becomes of the children of a deleted cell see `parents`. No reward,
no observation, no episode here.

A colony of N cells lies in slots 0 to N - 1 of C; in a forest each parent in a lower slot than its
children.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from envs.durotaxis import selection
from envs.durotaxis.parents import new_parents

# Selecting cells is part of the rules, so these are re-exported.
from envs.durotaxis.selection import compact as compact
from envs.durotaxis.selection import leftmost as leftmost
from envs.durotaxis.selection import rightmost as rightmost
from envs.durotaxis.substrate import LEAST_INTENSITY, Number

RING = 10.0
"""Radius of the ring of cells that a lost colony begins again with, px."""
JITTER, SPREAD = 1.5, 2.5
"""How far each of them lies from the ring, at most, and the deviation of a single cell, px."""


@struct.dataclass
class Colony:
    """One colony; slots beyond `num_nodes` hold zeros and no parent."""

    x: jax.Array  # float32 [C] px
    y: jax.Array  # float32 [C] px
    parent: jax.Array  # int32 [C], slot of the parent, -1 for roots and beyond N
    birth: jax.Array  # int32 [C], step of birth, 0 for founders
    num_nodes: jax.Array  # int32, N


class Growth(NamedTuple):
    """One step of a colony, before its slots are compacted."""

    before: Colony
    survives: jax.Array  # bool [C], of the cells before; each survivor has exactly one child
    child_x: jax.Array  # float32 [C] px, where the child of each cell lands, if that survives
    child_y: jax.Array  # float32 [C] px
    num_nodes: jax.Array  # int32, cells after the step; the slots may not hold them all
    new_parent: jax.Array  # int32 [C], slot before of the parent that each survivor has afterwards


def founders(
    key: jax.Array, capacity: int, num_founders: int, width: Number, height: Number
) -> Colony:
    """A colony near the left edge, linked as a path from left to right. Consumes the key.

    x is uniform on the first tenth of `width`, y on the middle fifth of `height` (both px). The
    sorted x are partial sums of exponential variates over their total (Rényi 1953): no sort.

    Raises ValueError if the founders do not fit into `capacity` slots.
    """
    if not 0 <= num_founders <= capacity:
        raise ValueError(
            f"num_founders is {num_founders}; expected 0 to {capacity}, the capacity of the colony"
        )
    uniform = jax.random.uniform(key, (2, num_founders + 1))
    steps = -jnp.log1p(-uniform[0])
    share = jnp.cumsum(steps) / jnp.sum(steps)
    share = jnp.minimum(share[:-1], 1 - 2**-24)  # rounding must not reach the end of the tenth
    padding = (0, capacity - num_founders)
    slot = jnp.arange(capacity, dtype=jnp.int32)
    return Colony(
        x=jnp.pad(share * (0.1 * width), padding),
        y=jnp.pad((0.4 + 0.2 * uniform[1, :-1]) * height, padding),
        parent=jnp.where(slot < num_founders, slot - 1, -1),
        birth=jnp.zeros(capacity, jnp.int32),
        num_nodes=jnp.int32(num_founders),
    )


def alive(colony: Colony) -> jax.Array:
    """The slots that hold a cell, bool `[C]`."""
    return jnp.arange(colony.x.size, dtype=jnp.int32) < colony.num_nodes


def delete_count(ratio: jax.Array, num_nodes: jax.Array) -> jax.Array:
    """How many of N cells a ratio deletes: ⌊ratio N⌋ in float32, clipped to [0, N]; int32."""
    count = jnp.floor(jnp.asarray(ratio, jnp.float32) * num_nodes.astype(jnp.float32))
    return jnp.clip(count, 0, num_nodes).astype(jnp.int32)


def hill_distance(intensity: jax.Array, gamma: Number, alpha: Number, noise: Number) -> jax.Array:
    """How far from its parent a child lands, px: γ / (1 + (α / I)²) + noise, in any shape.

    A Hill curve of exponent 2: far on stiff ground I, at most γ, and half of it where I = α.
    `noise` is added as it is; nothing here is random. I that is not finite, or 1e-6 or less, counts
    as 1.
    """
    usable = jnp.isfinite(intensity) & (intensity > LEAST_INTENSITY)
    ratio = alpha / jnp.where(usable, intensity, 1.0)
    return gamma / (1 + ratio * ratio) + noise


def directed_children(
    colony: Colony,
    intensity: jax.Array,
    gamma: Number,
    alpha: Number,
    noise: Number,
    theta: Number,
    width: Number,
    height: Number,
) -> tuple[jax.Array, jax.Array]:
    """Where the children land, float32 `[C]` each: all in direction `theta` (radians, 0 right).

    `intensity` `[C]` is that of the ground under the parents; see `hill_distance` and `clamp`.
    """
    distance = hill_distance(intensity, gamma, alpha, noise)
    x, y = colony.x + distance * jnp.cos(theta), colony.y + distance * jnp.sin(theta)
    return clamp(x, y, width, height)


def isotropic_children(
    normals: jax.Array,
    colony: Colony,
    intensity: jax.Array,
    gamma: Number,
    alpha: Number,
    noise: Number,
    width: Number,
    height: Number,
) -> tuple[jax.Array, jax.Array]:
    """Where the children land, float32 `[C]` each: in any direction, farther on stiff ground.

    `normals` `[C, 3]` are standard normal ε₀, ε₁, ε₂. With R = max(0, Hill distance + `noise` ε₀),
    a child is displaced by (1 + 2 R) (ε₁, ε₂) px.
    """
    reach = hill_distance(intensity, gamma, alpha, noise * normals[:, 0])
    spread = 1 + 2 * jnp.maximum(reach, 0)
    return clamp(
        colony.x + normals[:, 1] * spread, colony.y + normals[:, 2] * spread, width, height
    )


def margin(size: Number) -> jax.Array:
    """How near to an edge a child may land, px: a hundredth of the ground's `size`, at least 2."""
    return jnp.maximum(2.0, 0.01 * size)


def clamp(x: jax.Array, y: jax.Array, width: Number, height: Number) -> tuple[jax.Array, jax.Array]:
    """Points clipped to the ground without its `margin`; px, of any shape."""
    mx, my = margin(width), margin(height)
    return jnp.clip(x, mx, width - mx), jnp.clip(y, my, height - my)


def grow(
    colony: Colony,
    deleted: jax.Array,
    child_x: jax.Array,
    child_y: jax.Array,
    deletion: str = "forest",
) -> Growth:
    """Every cell outside `deleted`, bool `[C]`, has its child; then `deleted` die.

    `child_x` and `child_y` are float32 `[C]` px; `deleted` beyond N is ignored; for `deletion` see
    `parents.new_parents`. The colony then has twice as many cells as survivors; if more than C, the
    caller must end the episode.
    """
    survives = alive(colony) & ~deleted
    new_parent = new_parents(colony.parent, colony.x, survives, deletion)
    return Growth(colony, survives, child_x, child_y, 2 * selection.size(survives), new_parent)


def recover_colony(
    key: jax.Array, lost_colony: Colony, count: int, time: jax.Array, width: Number, height: Number
) -> Colony:
    """A new colony of `count` cells, born at `time` (steps), where `lost_colony` was. Consumes key.

    They are linked as a path around a ring about the old centroid, evenly spaced but for `JITTER`
    on each axis, uniform; a single cell has a normal displacement of deviation `SPREAD`.
    """
    capacity = lost_colony.x.size
    share = alive(lost_colony) / jnp.maximum(lost_colony.num_nodes, 1).astype(jnp.float32)
    if count == 1:
        offset = SPREAD * jax.random.normal(key, (2, 1))
    else:
        angle = 2 * jnp.pi * jnp.arange(count) / count
        ring = RING * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        offset = ring + jax.random.uniform(key, (2, count), minval=-JITTER, maxval=JITTER)
    padding, slot = (0, capacity - count), jnp.arange(capacity, dtype=jnp.int32)
    x = jnp.clip(jnp.sum(share * lost_colony.x) + offset[0], 0.0, width - 1e-3)
    y = jnp.clip(jnp.sum(share * lost_colony.y) + offset[1], 0.0, height - 1e-3)
    return Colony(
        x=jnp.pad(x, padding),
        y=jnp.pad(y, padding),
        parent=jnp.where(slot < count, slot - 1, -1),
        birth=jnp.where(slot < count, time, 0).astype(jnp.int32),
        num_nodes=jnp.int32(count),
    )


def remove_cells(colony: Colony, removed: jax.Array, deletion: str = "forest") -> Colony:
    """The colony after `removed`, bool `[C]`, have died and nobody has had a child."""
    survives = alive(colony) & ~removed
    new_parent = new_parents(colony.parent, colony.x, survives, deletion)
    rank = selection.rank(survives)
    parent = jnp.where(new_parent >= 0, rank[jnp.maximum(new_parent, 0)], -1)
    survivors = compact((colony.x, colony.y, parent, colony.birth), survives)
    x, y, parent, birth = survivors
    count = selection.size(survives)
    slot = jnp.arange(colony.x.size, dtype=jnp.int32)
    return Colony(x, y, jnp.where(slot < count, parent, -1), birth, count)


def next_colony(growth: Growth, time: jax.Array) -> Colony:
    """The colony after a step: survivors in their order, then children in that of their parents.

    The children are born at `time` (int32, steps). If `growth.num_nodes > C`, cells beyond
    C slots are left out; the first C cells and their links are still correct.
    """
    before, survives, child_x, child_y, num_nodes, new_parent = growth
    capacity, survivors = survives.size, num_nodes // 2
    slot = jnp.arange(capacity, dtype=jnp.int32)
    filled, is_child = slot < num_nodes, slot >= survivors
    source = selection.nth(survives, jnp.where(is_child, slot - survivors, slot))
    # A barrier, or every reader would compute them again.
    source, rank = jax.lax.optimization_barrier((source, selection.rank(survives)))

    def lay_out(
        survivor_values: jax.Array, child_values: jax.Array, fill_value: int = 0
    ) -> jax.Array:
        return jnp.where(filled, jnp.where(is_child, child_values, survivor_values), fill_value)

    parent = new_parent[source]
    parent = jnp.where(parent >= 0, rank[jnp.maximum(parent, 0)], -1)
    return Colony(
        x=lay_out(before.x[source], child_x[source]),
        y=lay_out(before.y[source], child_y[source]),
        parent=lay_out(parent, slot - survivors, -1),
        birth=lay_out(before.birth[source], time),
        num_nodes=jnp.minimum(num_nodes, capacity),
    )
