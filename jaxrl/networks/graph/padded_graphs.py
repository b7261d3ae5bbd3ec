"""Padded graphs: which of their rows are real, and a batch of them as one graph.

An observation is one `jraph.GraphsTuple`, padded as `jraph.pad_with_graphs` does it: the graph
itself, then one graph that takes up the room left. With E edges among N ≤ C nodes:

    nodes    float [..., C + 1, F]       the last row is always padding
    edges    float [..., K, G]           K slots, the E real ones first
    senders, receivers  int32 [..., K]   padding edges join padding nodes only
    globals  float [..., 2, D]           only the first row is read
    n_node   int32 [..., 2]              N and C + 1 - N
    n_edge   int32 [..., 2]              E and K - E
"""

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

Graph: TypeAlias = Any
"""A `jraph.GraphsTuple`, whose own annotations allow None and whole trees for every array."""


class MergedGraphs(NamedTuple):
    """B padded graphs as one: dense layers are several times faster on one matrix of all nodes."""

    nodes: jax.Array  # [B (C + 1), F]; zeros in padding, as everywhere here
    edges: jax.Array  # [B K, G]
    globals: jax.Array  # [B, D]
    senders: jax.Array  # int32 [B, K], rows of their own graph
    receivers: jax.Array  # int32 [B, K]
    live: jax.Array  # bool [B (C + 1)]
    num_nodes: jax.Array  # int32 [B]


def merge_graphs(graph: Graph) -> MergedGraphs:
    """All graphs of a batch as one of B components; B is the product of the leading axes.

    Raises ValueError unless there are two graphs in each, the second one being padding.
    """
    pairs = [x.shape[-1:] for x in (graph.n_node, graph.n_edge)] + [graph.globals.shape[-2:-1]]
    if pairs != [(2,)] * 3:
        raise ValueError(
            f"got {pairs} graphs in n_node, n_edge and globals; expected 2, the graph and its "
            "padding: pad one graph with jraph.pad_with_graphs"
        )
    live, real_edges = live_mask(graph), prefix_mask(graph.n_edge[..., 0], graph.senders.shape[-1])
    slots = real_edges.shape[-1]
    context = graph.globals[..., 0, :]
    context = context.reshape(-1, context.shape[-1])
    return MergedGraphs(
        nodes=jnp.where(live[..., None], graph.nodes, 0.0).reshape(-1, graph.nodes.shape[-1]),
        edges=jnp.where(real_edges[..., None], graph.edges, 0.0).reshape(-1, graph.edges.shape[-1]),
        globals=context,
        senders=graph.senders.reshape(-1, slots),
        receivers=graph.receivers.reshape(-1, slots),
        live=live.reshape(-1),
        num_nodes=graph.n_node[..., 0].reshape(-1),
    )


def split(h: jax.Array, token: jax.Array, graph: Graph) -> tuple[jax.Array, jax.Array]:
    """`(nodes [..., C + 1, W], token [..., W])`, with the leading axes of `graph` again."""
    leading = graph.n_node.shape[:-1]
    return h.reshape(*leading, -1, h.shape[-1]), token.reshape(*leading, -1)


def live_mask(graph: Graph) -> jax.Array:
    """bool `[..., C + 1]`: which rows are nodes."""
    return prefix_mask(graph.n_node[..., 0], graph.nodes.shape[-2])


def prefix_mask(count: jax.Array, size: int) -> jax.Array:
    """bool `[..., size]`: the first `count` `[...]`."""
    slot = jax.lax.broadcasted_iota(jnp.int32, (*count.shape, size), count.ndim)
    return slot < count[..., None]
