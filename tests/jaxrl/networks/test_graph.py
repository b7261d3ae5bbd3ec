"""Graph networks against slow message passing in NumPy, with padding and numbering varied."""

import collections
import functools
from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from jaxrl.losses.distributions.continuous import SquashedNormal
from jaxrl.losses.distributions.joint import Joint
from jaxrl.networks.graph import (
    GraphActorCritic,
    GraphTorso,
    HybridActorCritic,
    PooledTorso,
    attention,
)

C, F, G, D, W = 6, 4, 3, 5, 8
LOW, HIGH = (0.0, -1.0), (1.0, 3.0)
HEADS: Any = GraphActorCritic(PooledTorso(W, layers=1), 2, LOW, HIGH, 3)
ACTOR = GraphActorCritic(GraphTorso(W, layers=1), 2, LOW, HIGH, 3)
POOLED = GraphActorCritic(PooledTorso(W), 1, 0.0, 1.0, 0)
HYBRID: Any = HybridActorCritic(GraphTorso(W, layers=1), 1, 0.0, 1.0, 1)
NETWORKS = {"graph": ACTOR, "pooled": POOLED, "hybrid": HYBRID}
networks = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())


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


TRACES = collections.Counter()


@functools.cache
def jitted_apply(network: Any) -> Any:
    """Compiled once for all tests; every trace is counted."""

    @jax.jit
    def apply(params, obs):
        TRACES[network, jnp.shape(obs.n_node)] += 1
        return network.apply(params, obs)

    return apply


def close(actual, expected, atol=1e-4):
    pairs = zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)


# --- the formulas, one node and one edge at a time


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


# --- what holds for all of them


@pytest.mark.fast_cases(1)
@networks
def test_one_at_a_time_is_the_same_as_a_batch(network):
    params, apply = any_params(network), jitted_apply(network)
    singles = stack_trees([apply(params, g) for g in GRAPHS[:4]])
    assert TRACES[network, (2,)] == 1
    batch = stack_trees(GRAPHS[:4])
    close(jax.jit(jax.vmap(network.apply, in_axes=(None, 0)))(params, batch), singles)
    square = jax.tree.map(lambda x: x.reshape(2, 2, *x.shape[1:]), batch)
    actual = apply(params, square)
    close(jax.tree.map(lambda x: x.reshape(4, *x.shape[2:]), actual), singles)


@pytest.mark.fast_cases(1)
@networks
def test_padding_is_inert(network):
    params = any_params(network)

    @jax.jit
    @jax.value_and_grad
    def loss(params, g):
        """The sum of all that a learner takes from a network."""
        policy, value = network.apply(params, g)
        other = jax.lax.stop_gradient(policy)
        mode = jax.lax.stop_gradient(policy.mode())
        total = policy.log_prob(mode) + 2.0 * policy.entropy() + 3.0 * policy.kl(other)
        return total + 4.0 * jnp.sum(jnp.square(value))

    for seed, sizes in enumerate([(5, 6), (2, 1), (1, 0), (0, 0)]):
        expected = loss(params, graph(seed, *sizes))
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(expected))
        for fill in (np.nan, 1e30):
            close(loss(params, graph(seed, *sizes, fill)), expected)


@networks
def test_new_numbers_for_the_nodes_move_nothing_else(network):
    params, (old, *_) = any_params(network), GRAPHS
    order = np.array([3, 0, 4, 1, 2, 5, 6])  # row i shows what was node order[i]
    rename, edges = np.argsort(order), np.array([2, 5, 0, 1, 3, 4])
    new = old._replace(
        nodes=old.nodes[order],
        edges=old.edges[edges],
        senders=rename[old.senders[edges]].astype(np.int32),
        receivers=rename[old.receivers[edges]].astype(np.int32),
    )
    policy, value = jitted_apply(network)(params, old)
    new_policy, new_value = jitted_apply(network)(params, new)
    close(new_value, value)
    if isinstance(policy, Joint):
        choice, new_choice = policy.parts[0], new_policy.parts[0]
        close(new_choice.logits[:5], choice.logits[order[:5]])
        close(new_policy.parts[1], policy.parts[1])
    else:
        close(new_policy, policy)


# --- heads


@pytest.mark.slow
def test_the_policy_starts_nearly_uniform_over_its_box():
    """Φ(-0.549) = 29 per cent in either outer quarter, since the logistic of 2 * -0.549 is 1/4."""
    params = jax.jit(HEADS.init)(jax.random.key(0), GRAPHS[0])
    policy, value = jitted_apply(HEADS)(params, stack_trees(GRAPHS))
    assert value.shape == (5, 3)
    assert isinstance(policy, SquashedNormal)
    close(policy.mode(), np.tile([0.5, 1.0], (5, 1)), atol=0.05)
    close(policy.raw.scale, np.ones((5, 2)), atol=0.05)
    keys = jax.random.split(jax.random.key(1), 4000)
    action = jax.jit(jax.vmap(policy.sample))(keys)[:, 0, 0]  # of the first graph
    share = np.histogram(action, [0.0, 0.25, 0.5, 0.75, 1.0])[0] / 4000
    np.testing.assert_allclose(share, [0.2914, 0.2086, 0.2086, 0.2914], atol=0.03)


def test_the_scale_stays_within_its_bounds():
    params = any_params(HEADS)
    for push, expected in ((1e3, np.e), (-1e3, np.exp(-3))):
        params["params"]["log_scale"]["bias"] = jnp.full(2, push)
        policy, _ = jitted_apply(HEADS)(params, GRAPHS[0])
        close(policy.raw.scale, np.full(2, expected))


@pytest.mark.slow
def test_the_hybrid_chooses_for_live_nodes_only():
    policy, value = jitted_apply(HYBRID)(any_params(HYBRID), stack_trees(GRAPHS))
    assert isinstance(policy, Joint)
    choice, spawn = policy.sample(jax.random.key(2))
    assert value.shape == (5, 1)
    assert choice.shape == (5, C)
    assert choice.dtype == jnp.int32
    assert spawn.shape == (5, 1)
    counts = [int(g.n_node[0]) for g in GRAPHS]
    assert policy.parts[0].live.sum(-1).tolist() == counts
    assert policy.log_prob((choice, spawn)).shape == (5,)
    for row, count in zip(np.asarray(choice), counts, strict=True):
        assert not np.any(row[count:])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (GraphTorso(0), "width is 0"),
        (PooledTorso(W, 0), "layers is 0"),
        (GraphTorso(W, heads=0), "heads is 0"),
        (GraphActorCritic(GraphTorso(W), 2, (0.0,), 1.0), "give one number each"),
        (GraphActorCritic(GraphTorso(W), 1, 0.0, 1.0, -1), "num_values is -1"),
    ],
)
def test_impossible_sizes_are_refused(network, message):
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(network.init, jax.random.key(0), GRAPHS[0])


def test_graphs_without_padding_are_refused():
    bare = GRAPHS[0]._replace(n_node=np.array([C + 1], np.int32))
    with pytest.raises(ValueError, match="pad one graph"):
        jax.eval_shape(GraphTorso(W).init, jax.random.key(0), bare)
