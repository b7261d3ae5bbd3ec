"""Graphs of all sizes, and parameters, for the tests of networks on graphs."""

from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np

C, F, G, D, W = 6, 4, 3, 5, 8


def graph(seed: int, num_nodes: int, num_edges: int, fill: float = 0.0) -> Any:
    """Any directed graph, with several edges between two nodes and to itself, and `fill` beside."""
    rng = np.random.default_rng(seed)

    def padded_array(rows: int, real: int, width: int) -> np.ndarray:
        out = np.full((rows, width), fill, np.float32)
        out[:real] = rng.normal(size=(real, width))
        return out

    senders, receivers = np.full((2, C), C, np.int32)
    senders[:num_edges], receivers[:num_edges] = rng.integers(0, max(num_nodes, 1), (2, num_edges))
    arrays: dict[str, Any] = {
        "nodes": padded_array(C + 1, num_nodes, F),
        "edges": padded_array(C, num_edges, G),
        "senders": senders,
        "receivers": receivers,
        "globals": padded_array(2, 1, D),
        "n_node": np.array([num_nodes, C + 1 - num_nodes], np.int32),
        "n_edge": np.array([num_edges, C - num_edges], np.int32),
    }
    return jraph.GraphsTuple(**arrays)


GRAPHS = [graph(0, 5, 6), graph(1, 6, 4), graph(2, 2, 1), graph(3, 1, 0), graph(4, 0, 0)]


def stack_trees(graphs: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *graphs)


def any_params(network: Any) -> Any:
    """Parameters as training may find them, with biases."""
    shapes = jax.eval_shape(network.init, jax.random.key(0), GRAPHS[0])
    rng = np.random.default_rng(9)
    draw = lambda x: jnp.asarray(rng.normal(scale=0.4, size=x.shape), x.dtype)
    return jax.tree.map(draw, shapes)


def close(actual, expected, atol=1e-4):
    pairs = zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)
