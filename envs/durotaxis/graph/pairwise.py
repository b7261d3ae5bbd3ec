"""The expensive features of a colony: its convex hull, and how far its cells are from each other.

Both look at pairs of cells, so on a CPU they are computed for as few slots as the largest colony of
a batch needs: padding is most of a small colony. Accelerators wait longer for that choice than for
all slots.
"""

from functools import partial

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


@batches.with_batch_axes
def _features(x: jax.Array, y: jax.Array, num_nodes: jax.Array) -> Features:
    """The features of colonies `[*batch]` in the first of their slots `[*batch, C]`."""
    capacity = x.shape[-1]
    few = max(LEAST_FEW, -(-capacity // FEW))
    cells = x, y, num_nodes
    features_of_all = lambda: _features_of_slots(*cells, slots=capacity)
    if few >= capacity:
        return features_of_all()

    def features_of_needed() -> Features:
        is_large = jnp.max(num_nodes) > few
        return jax.lax.cond(
            is_large, features_of_all, lambda: _features_of_slots(*cells, slots=few)
        )

    return jax.lax.platform_dependent(cpu=features_of_needed, default=features_of_all)


@partial(jax.jit, static_argnames="slots")  # traced once for each number of slots
def _features_of_slots(x: jax.Array, y: jax.Array, num_nodes: jax.Array, slots: int) -> Features:
    """`_features` of colonies that have no more cells than this many slots."""
    slot = jax.lax.broadcasted_iota(jnp.int32, (*num_nodes.shape, slots), num_nodes.ndim)
    is_alive = slot < num_nodes[..., None]
    cells = x[..., :slots], y[..., :slots], is_alive
    is_vertex, hull_area = batches.map_in_tiles(hull.convex_hull, *cells)
    distances = batches.map_rows(mean_distance, *cells)
    padding = [(0, 0)] * (x.ndim - 1) + [(0, x.shape[-1] - slots)]
    return Features(jnp.pad(is_vertex, padding), hull_area, jnp.pad(distances, padding))


def initial_colony_features(colony: Colony, num_founders: int, pairwise: bool = True) -> Features:
    """`colony_features` where only the first `num_founders` slots (static) can hold cells."""
    num_slots, num_padding = max(num_founders, 1), colony.x.size - max(num_founders, 1)
    small = Colony(
        x=colony.x[:num_slots],
        y=colony.y[:num_slots],
        parent=colony.parent[:num_slots],
        birth=colony.birth[:num_slots],
        num_nodes=colony.num_nodes,
    )
    features = colony_features(small, pairwise)
    return Features(
        is_vertex=jnp.pad(features.is_vertex, (0, num_padding)),
        hull_area=features.hull_area,
        mean_distance=jnp.pad(features.mean_distance, (0, num_padding)),
    )


@jax.jit  # traced once for each number of points
def mean_distance(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """The mean distance, px, of each point x, y `[P]` (px) from those in `mask`; float32 `[P]`.

    Only points more than `SAME_PLACE` away count; 0 where there are none, and outside `mask`.
    """
    total, count = jax.lax.platform_dependent(x, y, mask, cpu=_add_tiles, default=_add_all)
    return jnp.where(mask, total / jnp.maximum(count, 1), 0.0)


def _add_all(x: jax.Array, y: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sum and number of the distances of each point from those elsewhere: float32 `[P]` each."""
    # A barrier and a diagonal: a compiler that computes x once for rows and once for columns may
    # round it differently, so that a point were elsewhere than itself.
    x, y = jax.lax.optimization_barrier((x, y))
    is_other = ~jnp.eye(x.size, dtype=bool)
    squared = (x[:, None] - x[None]) ** 2 + (y[:, None] - y[None]) ** 2  # [P, P]
    counts = mask[None] & is_other & (squared > SAME_PLACE**2)
    distance = jnp.where(counts, jnp.sqrt(squared), 0.0)
    return jnp.sum(distance, axis=1), jnp.sum(counts, axis=1, dtype=jnp.float32)


def _add_tiles(x: jax.Array, y: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`_add_all` by tiles of points up to the last in `mask`.

    So no `[P, P]` matrix is ever held, and small colonies cost little.
    """
    nearest = SAME_PLACE**2
    padding = (0, -x.size % TILE)
    columns = [jnp.pad(v, padding).reshape(-1, TILE) for v in (x, y, mask.astype(jnp.float32))]
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
    return total, count
