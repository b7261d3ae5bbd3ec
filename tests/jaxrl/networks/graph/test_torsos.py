"""Torsos against slow message passing in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from jaxrl.networks.graph import (
    GraphTorso,
    PooledTorso,
    attention,
)
from tests.jaxrl.networks.graph.graph_parts import GRAPHS, W, any_params, close


def to_float64(x: Any) -> np.ndarray:
    return np.asarray(x, np.float64)


def layer(p: Any, x: np.ndarray) -> np.ndarray:
    return x @ to_float64(p["kernel"]) + to_float64(p["bias"])


def layer_norm(p: Any, x: np.ndarray) -> np.ndarray:
    x = (x - x.mean()) / np.sqrt(x.var() + 1e-6)
    return x * to_float64(p["scale"]) + to_float64(p["bias"])


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def mean_of(messages: list[np.ndarray]) -> np.ndarray:
    return np.mean(messages, axis=0) if messages else np.zeros(W)


def slow_torso(p: Any, network: GraphTorso, g: Any):
    """`GraphTorso` on the live nodes alone, in float64, with loops."""
    num_nodes, num_edges = int(g.n_node[0]), int(g.n_edge[0])
    h = [relu(layer(p["nodes"]["Dense_0"], x)) for x in to_float64(g.nodes[:num_nodes])]
    token = relu(layer(p["globals"]["Dense_0"], to_float64(g.globals[0])))
    ends = [(int(g.senders[e]), int(g.receivers[e])) for e in range(num_edges)]
    for i in range(network.layers):
        own, message_in, dense_in, message_out, dense_out, token_update, query, token_mix = (
            p[f"Dense_{8 * i + j}"] for j in range(8)
        )
        new = []
        for node in range(num_nodes):
            incoming = [
                relu(h[s] + layer(message_in, g.edges[e]))
                for e, (s, r) in enumerate(ends)
                if r == node
            ]
            outgoing = [
                relu(h[r] + layer(message_out, g.edges[e]))
                for e, (s, r) in enumerate(ends)
                if s == node
            ]
            update = layer(own, h[node]) + layer(token_update, token)
            update += layer(dense_in, mean_of(incoming)) + layer(dense_out, mean_of(outgoing))
            new.append(layer_norm(p[f"LayerNorm_{2 * i}"], h[node] + relu(update)))
        h = new
        views = []
        for q in layer(query, token).reshape(network.heads, W):
            weight = np.exp([np.dot(q, x) / np.sqrt(W) for x in h])
            views.append(
                sum((w * x for w, x in zip(weight / weight.sum(), h, strict=True)), np.zeros(W))
            )
        update = layer(token_mix, np.concatenate([token, *views]))
        token = layer_norm(p[f"LayerNorm_{2 * i + 1}"], token + relu(update))
    return np.reshape(h, (num_nodes, W)), token


def test_messages_and_token_against_loops():
    network = GraphTorso(W, layers=2, heads=3)
    params = any_params(network)
    apply = jax.jit(network.apply)
    for g in GRAPHS:
        nodes, token = apply(params, g)
        slow_nodes, slow_token = slow_torso(params["params"], network, g)
        count = int(g.n_node[0])
        close(nodes[:count], slow_nodes)
        assert not np.any(nodes[count:])
        close(token, slow_token)


def test_pooling_against_loops():
    network = PooledTorso(W)
    params = any_params(network)
    apply, p = jax.jit(network.apply), params["params"]
    for g in GRAPHS:
        rows = [to_float64(x) for x in g.nodes[: int(g.n_node[0])]]
        rows = [relu(layer(p["nodes"]["Dense_0"], x)) for x in rows]
        rows = [relu(layer(p["nodes"]["Dense_1"], x)) for x in rows]
        joined = np.concatenate([mean_of(rows), g.globals[0]])
        nodes, token = apply(params, g)
        close(nodes[: len(rows)], np.reshape(rows, (-1, W)))
        assert not np.any(nodes[len(rows) :])
        close(token, relu(layer(p["token"]["Dense_0"], joined)))


def test_attention_is_what_jraph_says():
    """Segment by segment, the segments being the live nodes of each graph and one for the rest."""
    rng = np.random.default_rng(5)
    h, queries = rng.normal(size=(14, W)).astype(np.float32), rng.normal(size=(2, 3 * W))
    live = np.arange(14) % 7 < np.repeat([4, 7], 7)
    segment = jnp.asarray(np.where(live, np.repeat([0, 1], 7), 2))
    node_queries = np.repeat(queries.reshape(2, 3, W), 7, axis=0)
    score = jnp.asarray(np.einsum("nw,nhw->nh", h, node_queries) / np.sqrt(W), jnp.float32)
    weight: Any = jax.jit(jraph.segment_softmax, static_argnums=2)(score, segment, 3)
    expected = jraph.segment_sum(weight[..., None] * h[:, None], segment, 3)[:2]
    actual = jax.jit(attention)(
        jnp.asarray(h), jnp.asarray(live), jnp.asarray(queries, jnp.float32)
    )
    close(actual, expected.reshape(2, -1), atol=1e-5)
