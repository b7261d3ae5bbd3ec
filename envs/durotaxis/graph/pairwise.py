"""The expensive features of a colony: its convex hull, and how far its cells are from each other.

Both look at pairs of cells, so they are computed for as few slots as the largest colony of a batch
needs: padding is most of a small colony.
"""

import jax
import jax.numpy as jnp

from envs import batches
from envs.durotaxis.graph import hull
from envs.durotaxis.graph.features import SAME_PLACE, Features
from envs.durotaxis.rules import Colony

TILE = 4  # cells whose distances to all others are added up per iteration
FEW = 8  # the smaller number of slots is the capacity over this
LEAST_FEW = 8


def colony_features(colony: Colony, pairwise: bool = True) -> Features:
    """The convex hull and mean pairwise distances: O(C²) time in O(C) memory.

    Without `pairwise` (static) nothing is computed and all is 0.
    """
    if not pairwise:
        nothing = jnp.zeros_like(colony.x)
        return Features(nothing > 0, jnp.zeros_like(nothing, shape=()), nothing)
    return _features(colony.x, colony.y, colony.num_nodes)


@batches.of_batches
def _features(x: jax.Array, y: jax.Array, num_nodes: jax.Array) -> Features:
    """Of colonies `[*batch]` in the first of their slots `[*batch, C]`."""
    capacity = x.shape[-1]

    def within(slots: int) -> Features:
        slot = jax.lax.broadcasted_iota(jnp.int32, (*num_nodes.shape, slots), num_nodes.ndim)
        is_alive = slot < num_nodes[..., None]
        cells = x[..., :slots], y[..., :slots], is_alive
        is_vertex, hull_area = batches.in_tiles(hull.convex_hull, *cells)
        apart = batches.each(mean_distance, *cells)
        beyond = [(0, 0)] * (x.ndim - 1) + [(0, capacity - slots)]
        return Features(jnp.pad(is_vertex, beyond), hull_area, jnp.pad(apart, beyond))

    few = max(LEAST_FEW, -(-capacity // FEW))
    if few >= capacity:
        return within(capacity)
    return jax.lax.cond(jnp.max(num_nodes) > few, lambda: within(capacity), lambda: within(few))


def initial_colony_features(colony: Colony, num_founders: int, pairwise: bool = True) -> Features:
    """`colony_features` where only the first `num_founders` slots (static) can hold cells."""
    present, beyond = max(num_founders, 1), colony.x.size - max(num_founders, 1)
    small = Colony(
        x=colony.x[:present],
        y=colony.y[:present],
        parent=colony.parent[:present],
        birth=colony.birth[:present],
        num_nodes=colony.num_nodes,
    )
    found = colony_features(small, pairwise)
    return Features(
        is_vertex=jnp.pad(found.is_vertex, (0, beyond)),
        hull_area=found.hull_area,
        mean_distance=jnp.pad(found.mean_distance, (0, beyond)),
    )


def mean_distance(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """From each of the points x, y `[P]` (px) to those in `mask` `[P]`; float32 `[P]`, px.

    Only points more than `SAME_PLACE` away count; 0 where there are none, and outside
    `mask`. The sum runs over tiles of points up to the last in `mask`, so no `[P, P]` matrix is
    ever held, and small colonies cost little.
    """
    nearest = SAME_PLACE**2
    beyond = (0, -x.size % TILE)
    columns = [jnp.pad(v, beyond).reshape(-1, TILE) for v in (x, y, mask.astype(jnp.float32))]
    tiles = jnp.stack(columns, axis=1)  # [P / TILE, 3, TILE]
    slot = jnp.arange(x.size, dtype=jnp.float32)
    last = jnp.max(jnp.where(mask, slot, -1.0)).astype(jnp.int32)

    def add(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        i, total, count = carry
        for other_x, other_y, weight in tiles[i].T:
            squared = (x - other_x) ** 2 + (y - other_y) ** 2
            counts = jnp.where(squared > nearest, weight, 0.0)
            total += counts * jnp.sqrt(jnp.maximum(squared, nearest))
            count += counts
        return i + 1, total, count

    zeros = jnp.zeros_like(x)
    start = (jnp.zeros_like(last), zeros, zeros)
    _, total, count = jax.lax.while_loop(lambda carry: carry[0] * TILE <= last, add, start)
    return jnp.where(mask, total / jnp.maximum(count, 1), 0.0)
