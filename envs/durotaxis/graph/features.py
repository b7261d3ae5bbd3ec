"""Features of a colony: of its nodes, of its edges and of the whole graph, unscaled.

Every cell is a node, and an edge goes from each parent to its child. Slots without a cell, and
quantities that a small colony does not have, are 0; nothing is ever NaN. Stiffness is given as its
natural logarithm, since steep exponential ground overflows float32. C slots, N cells, E edges.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from envs.durotaxis import rules
from envs.durotaxis.rules import Colony

SAME_PLACE = 1e-6
"""px; cells closer than this count as being in the same place."""


@struct.dataclass
class Features:
    """The expensive features of a colony."""

    is_vertex: jax.Array  # bool [C], vertices of the convex hull; see `hull.vertices`
    hull_area: jax.Array  # float32, px²
    mean_distance: jax.Array  # float32 [C] px, to the cells elsewhere; 0 if there are none


class NodeFeatures(NamedTuple):
    """Float32 `[C]` each."""

    x: jax.Array  # px
    y: jax.Array  # px
    log_intensity: jax.Array  # ln of the stiffness under the cell
    in_degree: jax.Array  # 0 for roots, otherwise 1
    out_degree: jax.Array  # children
    centrality: jax.Array  # per px: 1 / (mean distance + 1e-6); 1 if no cell is elsewhere
    from_centroid: jax.Array  # px
    is_vertex: jax.Array  # 1 for a vertex of the convex hull
    is_new: jax.Array  # 1 in the state right after birth; founders never are
    age: jax.Array  # steps since birth
    stagnation: jax.Array  # steps without a move since first seen: age less 1, as cells never move


class EdgeFeatures(NamedTuple):
    """Float32 `[K]` each, of K edges."""

    length: jax.Array  # px
    direction_x: jax.Array  # of the unit vector from parent to child; 0, 0 if they coincide
    direction_y: jax.Array


class GraphFeatures(NamedTuple):
    """Float32 scalars, all 0 for an empty colony."""

    num_nodes: jax.Array  # N
    num_edges: jax.Array  # E
    density: jax.Array  # E / (N (N - 1)); 0 for fewer than two cells
    centroid_x: jax.Array  # px
    centroid_y: jax.Array
    min_x: jax.Array  # px; of the box around the colony, as are the next
    min_y: jax.Array
    max_x: jax.Array
    max_y: jax.Array
    box_width: jax.Array  # px
    box_height: jax.Array  # px
    box_area: jax.Array  # px²
    hull_area: jax.Array  # px²
    mean_degree: jax.Array  # of the 2 N in- and out-degrees: E / N
    max_degree: jax.Array
    sum_degree: jax.Array  # 2 E
    log_mean_intensity: jax.Array  # ln of the mean stiffness under the cells
    log_max_intensity: jax.Array
    log_sum_intensity: jax.Array


def node_features(
    colony: Colony,
    features: Features,
    time: jax.Array,
    log_intensity: jax.Array,
    pairwise: bool = True,
) -> NodeFeatures:
    """The features of every cell at `time` (int32, steps), on ground of `log_intensity` `[C]`.

    `features` are those of the colony. Without `pairwise` the centrality is left at 0.
    """
    is_alive = rules.alive(colony)
    centroid_x, centroid_y = centroid(colony)
    age = (time - colony.birth).astype(jnp.float32)
    mean_distance = features.mean_distance
    centrality = jnp.where(mean_distance > 0, 1 / (mean_distance + SAME_PLACE), 1.0)
    node = NodeFeatures(
        x=colony.x,
        y=colony.y,
        log_intensity=log_intensity,
        in_degree=colony.parent >= 0,
        out_degree=out_degree(colony),
        centrality=centrality if pairwise else jnp.zeros_like(mean_distance),
        from_centroid=_length(colony.x - centroid_x, colony.y - centroid_y),
        is_vertex=features.is_vertex,
        is_new=(colony.birth == time) & (colony.birth > 0),
        age=age,
        stagnation=jnp.maximum(age - 1, 0),
    )
    return NodeFeatures(*(jnp.where(is_alive, f.astype(jnp.float32), 0.0) for f in node))


def edge_features(colony: Colony, child: jax.Array) -> EdgeFeatures:
    """The features of the edges into the slots `child`, int32 `[K]`; 0 for one without a parent."""
    parent = colony.parent[child]
    has_parent, parent = parent >= 0, jnp.maximum(parent, 0)
    along_x = jnp.where(has_parent, colony.x[child] - colony.x[parent], 0.0)
    along_y = jnp.where(has_parent, colony.y[child] - colony.y[parent], 0.0)
    length = _length(along_x, along_y)
    inverse = jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1.0), 0.0)
    return EdgeFeatures(length, along_x * inverse, along_y * inverse)


def graph_features(colony: Colony, features: Features, log_intensity: jax.Array) -> GraphFeatures:
    """The features of the whole colony, with the ground's `log_intensity` `[C]` under its cells."""
    is_alive = rules.alive(colony)
    num_nodes = colony.num_nodes.astype(jnp.float32)
    num_edges = _sum(colony.parent >= 0)
    pairs = num_nodes * (num_nodes - 1)
    max_degree = jnp.maximum(jnp.max(out_degree(colony)), num_edges > 0)
    min_x, max_x = _range(colony.x, is_alive)
    min_y, max_y = _range(colony.y, is_alive)
    box_width, box_height = max_x - min_x, max_y - min_y
    _, top = _range(log_intensity, is_alive)
    share = jnp.where(is_alive, jnp.exp(jnp.minimum(log_intensity - top, 0.0)), 0.0)
    log_sum = top + jnp.log(jnp.maximum(jnp.sum(share), 1.0))  # the largest share is 1
    return GraphFeatures(
        num_nodes,
        num_edges,
        num_edges / jnp.maximum(pairs, 1),
        *centroid(colony),
        *(min_x, min_y, max_x, max_y),
        *(box_width, box_height, box_width * box_height),
        features.hull_area,
        num_edges / jnp.maximum(num_nodes, 1),
        max_degree,
        2 * num_edges,
        *(log_sum - jnp.log(jnp.maximum(num_nodes, 1)), top, log_sum),
    )


def centroid(colony: Colony) -> tuple[jax.Array, jax.Array]:
    """The mean position of the cells, px: two float32 scalars, 0 for an empty colony."""
    is_alive = rules.alive(colony)
    share = 1 / jnp.maximum(colony.num_nodes, 1).astype(jnp.float32)
    x, y = jnp.where(is_alive, colony.x, 0.0), jnp.where(is_alive, colony.y, 0.0)
    return jnp.sum(x) * share, jnp.sum(y) * share


def out_degree(colony: Colony) -> jax.Array:
    """How many children every cell has: float32 `[C]`."""
    capacity = colony.parent.size
    child = (colony.parent >= 0).astype(jnp.float32)
    return jax.ops.segment_sum(child, jnp.maximum(colony.parent, 0), capacity)


def _length(x: jax.Array, y: jax.Array) -> jax.Array:
    """√(x² + y²), whose gradient is 0 rather than NaN at the origin."""
    squared = x * x + y * y
    return jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1.0)), 0.0)


def _range(values: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Smallest and largest of `values` `[C]` where `mask` is true; 0, 0 if it is nowhere."""
    low = jnp.min(jnp.where(mask, values, jnp.inf))
    high = jnp.max(jnp.where(mask, values, -jnp.inf))
    return jnp.where(low <= high, low, 0.0), jnp.where(low <= high, high, 0.0)


def _sum(flags: jax.Array) -> jax.Array:
    """How many of bool `[C]` are true, in float32: XLA for CPU adds up integers far slower."""
    return jnp.sum(flags.astype(jnp.float32))
