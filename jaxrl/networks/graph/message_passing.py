"""Messages along the edges of a batch of graphs, and attention to all of their nodes."""

import math

import jax
import jax.numpy as jnp
import jraph
from flax import linen as nn


def pass_messages(
    h: jax.Array, edge: jax.Array, senders: jax.Array, receivers: jax.Array
) -> jax.Array:
    """Σ over the edges into each node of relu(h of where it comes from + edge), `[rows, W]`.

    `h` is `[rows, W]`, `edge` `[B K, W]`; `senders` and `receivers` are rows of their own graph,
    int32 `[B, K]`, so that graphs on different devices exchange nothing.
    """
    # rows of W numbers are scattered fast: one-hot products take five times as long on a CPU
    sender_features = jax.vmap(lambda h, senders: h[senders])(
        h.reshape(len(senders), -1, h.shape[-1]), senders
    )
    return sum_messages(nn.relu(sender_features.reshape(edge.shape) + edge), receivers, len(h))


def degree(receivers: jax.Array, rows: int) -> jax.Array:
    """How many edges lead into each node, float `[rows, 1]`."""
    return sum_messages(jnp.ones((receivers.size, 1)), receivers, rows)


def sum_messages(message: jax.Array, receivers: jax.Array, rows: int) -> jax.Array:
    """Messages `[B K, W]` added up in the rows of their own graph that they go to: `[rows, W]`."""
    message = message.reshape(*receivers.shape, -1)
    graph_rows = rows // len(receivers)
    sum_graph = lambda message, receivers: jraph.segment_sum(message, receivers, graph_rows)
    return jax.vmap(sum_graph)(message, receivers).reshape(rows, -1)


def broadcast_to_nodes(token: jax.Array, rows: int) -> jax.Array:
    """A token `[B, W]` for each graph, broadcast to all of its nodes: `[rows, W]`."""
    return jnp.repeat(token, rows // len(token), axis=0)


def attention(h: jax.Array, live: jax.Array, queries: jax.Array) -> jax.Array:
    """Attention: the mean of h, weighted by softmax(h · query / √W) for each query, `[B, H W]`.

    `h` is `[B (C + 1), W]`, `live` bool `[B (C + 1)]`, `queries` `[B, H W]`. Without live nodes it
    is 0.
    """
    width = h.shape[-1]
    queries = queries.reshape(len(queries), -1, width)
    h, live = h.reshape(len(queries), -1, width), live.reshape(len(queries), -1, 1)
    score = jnp.einsum("bnw,bhw->bnh", h, queries) / math.sqrt(width)
    lowest = jnp.finfo(score.dtype).min  # finite: a softmax of nothing but -inf is nan
    weight = jax.nn.softmax(jnp.where(live, score, lowest), axis=1)
    means = jnp.einsum("bnh,bnw->bhw", jnp.where(live, weight, 0.0), h)
    return means.reshape(len(queries), -1)
