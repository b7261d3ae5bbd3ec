"""What an agent sees of a colony: one padded graph, every number of order 1.

W and H are width and height of the ground, and L = (W + H) / 10, some widths of a young colony,
all in px. The columns are the fields of the tuples in `features`, in their order:

| nodes | scale | | nodes | scale |
|---|---|---|---|---|
| x | / W | | distance from the centroid d | / L |
| y | / H | | vertex of the hull | 0 or 1 |
| ln intensity | as it is | | new | 0 or 1 |
| in-degree | 0 or 1 | | age | / 100 steps |
| out-degree | / 5 | | stagnation | / 50 steps |
| centrality c | c L / (1 + c L), below 1 | | | |

| edges | scale | | the graph | scale |
|---|---|---|---|---|
| length | / 10 px | | centroid, box: its corners and sides | / W, / H |
| direction | unit vector | | area of box and hull | / (W H) |
| | | | mean, max, sum of the degrees | as it is, / 5, / 200 |
| | | | N, E, density | / 100, / 100, times 10 |
| | | | ln of mean, max, sum of the intensity | as they are |
"""

from typing import Any

import jax
import jax.numpy as jnp
import jraph

from envs.durotaxis import selection, substrate
from envs.durotaxis.graph.features import (
    EdgeFeatures,
    Features,
    GraphFeatures,
    NodeFeatures,
    edge_features,
    graph_features,
    node_features,
)
from envs.durotaxis.rules import Colony
from envs.durotaxis.substrate import Law, Number

NODE_SIZE = len(NodeFeatures._fields)
EDGE_SIZE = len(EdgeFeatures._fields)
GRAPH_SIZE = len(GraphFeatures._fields)


def shapes(capacity: int) -> jraph.GraphsTuple:
    """What `describe` returns for C = `capacity` slots, as `jax.ShapeDtypeStruct`s."""

    def real(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    def integer(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.int32)

    return jraph.GraphsTuple(
        nodes=real(capacity + 1, NODE_SIZE),
        edges=real(capacity, EDGE_SIZE),
        senders=integer(capacity),
        receivers=integer(capacity),
        n_node=integer(2),
        n_edge=integer(2),
        globals=real(2, GRAPH_SIZE),
    )


def describe(
    colony: Colony,
    features: Features,
    time: jax.Array,
    law: Law,
    field: jax.Array,
    width: Number,
    height: Number,
    pairwise: bool = True,
) -> jraph.GraphsTuple:
    """The colony in C slots as a graph of N nodes and E edges, padded as jraph does; see `shapes`.

    `time` is int32, steps; `width` and `height` are px; for `law` and `field` see `substrate`. The
    real edges come first, in the order of the children; those after them lead from node C, which is
    never real, to itself. `n_node` is [N, C + 1 - N] and `n_edge` [E, C - E]; all padding is 0.
    What `pairwise.colony_features` leaves out without `pairwise` is 0 too.
    """
    capacity, num_nodes = colony.x.size, colony.num_nodes
    log_intensity = substrate.log_intensity(law, field, colony.x, colony.y, width, height)
    node = node_features(colony, features, time, log_intensity, pairwise)
    graph = graph_features(colony, features, log_intensity)
    whole = jnp.stack(_scaled_graph(graph, width, height))

    has_parent, slot = colony.parent >= 0, jnp.arange(capacity, dtype=jnp.int32)
    num_edges = graph.num_edges.astype(jnp.int32)
    is_real = slot < num_edges
    # Barriers, or every column would find the edges and compute the features by itself.
    child = jax.lax.optimization_barrier(selection.nth(has_parent, slot))
    edge = edge_features(colony, child)
    edge = [jnp.where(is_real, column, 0.0) for column in (edge.length / 10, *edge[1:])]
    rows, columns = jax.lax.optimization_barrier(
        (jnp.stack(_scaled_nodes(node, width, height)), edge)
    )
    return jraph.GraphsTuple(
        nodes=jnp.pad(rows, ((0, 0), (0, 1))).T,
        edges=jnp.stack(columns).T,
        senders=jnp.where(is_real, colony.parent[child], capacity),
        receivers=jnp.where(is_real, child, capacity),
        n_node=jnp.stack([num_nodes, capacity + 1 - num_nodes]),
        n_edge=jnp.stack([num_edges, capacity - num_edges]),
        globals=jnp.pad(whole[None], ((0, 1), (0, 0))),
    )


def _scaled_nodes(node: NodeFeatures, width: Number, height: Number) -> NodeFeatures:
    length = (width + height) / 10
    closeness = node.centrality * length
    return node._replace(
        x=node.x / width,
        y=node.y / height,
        out_degree=node.out_degree / 5,
        centrality=closeness / (1 + closeness),
        from_centroid=node.from_centroid / length,
        age=node.age / 100,
        stagnation=node.stagnation / 50,
    )


def _scaled_graph(graph: GraphFeatures, width: Number, height: Number) -> GraphFeatures:
    return graph._replace(
        num_nodes=graph.num_nodes / 100,
        num_edges=graph.num_edges / 100,
        density=graph.density * 10,
        centroid_x=graph.centroid_x / width,
        centroid_y=graph.centroid_y / height,
        min_x=graph.min_x / width,
        min_y=graph.min_y / height,
        max_x=graph.max_x / width,
        max_y=graph.max_y / height,
        box_width=graph.box_width / width,
        box_height=graph.box_height / height,
        box_area=graph.box_area / (width * height),
        hull_area=graph.hull_area / (width * height),
        max_degree=graph.max_degree / 5,
        sum_degree=graph.sum_degree / 200,
    )
