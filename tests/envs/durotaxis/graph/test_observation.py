"""The observation of a colony against NetworkX, SciPy and plain NumPy, and its padding."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import jraph
import networkx as nx
import numpy as np
import pytest
from scipy.spatial import ConvexHull, distance

from envs.durotaxis import rules, substrate
from envs.durotaxis.graph import features, hull, observation, pairwise
from envs.durotaxis.rules import Colony
from envs.durotaxis.substrate import Law
from tests.accelerator_branches import compile_as_on_accelerators

C, W, H, TIME = 40, 600.0, 400.0, 9
SIZE = jnp.float32(W), jnp.float32(H)
NO_FIELD = jnp.zeros((0, 0))
GROUND = Law(jnp.bool_(False), jnp.float32(0.05), jnp.float32(1.0))


def random_colony(num_nodes, rng):
    """A random forest of cells, in whole and half px so that some coincide."""
    beyond = C - num_nodes
    xy = rng.integers(4, (200, 120), (num_nodes, 2)) / 2
    if num_nodes > 5:
        xy[5::7] = xy[: len(xy[5::7])]
    parent = [rng.integers(-1, i) if rng.random() < 0.8 else -1 for i in range(num_nodes)]
    birth = np.sort(rng.integers(0, TIME + 1, num_nodes))
    return Colony(
        x=jnp.asarray(np.pad(xy[:, 0], (0, beyond)), jnp.float32),
        y=jnp.asarray(np.pad(xy[:, 1], (0, beyond)), jnp.float32),
        parent=jnp.asarray(np.pad(parent, (0, beyond), constant_values=-1), jnp.int32),
        birth=jnp.asarray(np.pad(birth, (0, beyond)), jnp.int32),
        num_nodes=jnp.int32(num_nodes),
    )


@jax.jit
def look(colony, law):
    colony_features = pairwise.colony_features(colony)
    log_intensity = substrate.log_intensity(law, NO_FIELD, colony.x, colony.y, *SIZE)
    nodes = features.node_features(colony, colony_features, jnp.int32(TIME), log_intensity)
    whole = features.graph_features(colony, colony_features, log_intensity)
    graph = observation.describe(colony, colony_features, jnp.int32(TIME), law, NO_FIELD, *SIZE)
    return nodes, whole, graph


@jax.jit
def unbatched_features(colony):
    """The features from all slots, without a batch."""
    is_vertex, area = hull.convex_hull(colony.x, colony.y, rules.alive(colony))
    return is_vertex, area, pairwise.mean_distance(colony.x, colony.y, rules.alive(colony))


def raw_features(colony, law=GROUND):
    """Features of the nodes and of the graph, unscaled."""
    return jax.device_get(look(colony, law))[:2]


def observe(colony, law=GROUND):
    return jax.device_get(look(colony, law))[2]


@pytest.fixture(scope="module")
def colonies():
    rng = np.random.default_rng(0)
    return [random_colony(n, rng) for n in (3, 4, 7, 12, 25, 39, C)]


def test_features_of_nodes_and_of_the_graph(colonies):
    for colony in colonies:
        # The same colony as a graph of NetworkX, and in float64.
        nodes, whole = raw_features(colony)
        n = int(colony.num_nodes)
        xy = np.stack([colony.x, colony.y], 1)[:n].astype(np.float64)
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n))
        graph.add_edges_from((int(p), i) for i, p in enumerate(colony.parent[:n]) if p >= 0)
        apart = distance.cdist(xy, xy)
        hull = ConvexHull(xy)
        intensity = 0.05 * np.floor(xy[:, 0]) + 1
        age = TIME - np.asarray(colony.birth[:n])
        inward = np.array([d for _, d in graph.in_degree()])
        outward = np.array([d for _, d in graph.out_degree()])
        # The columns of the nodes, in the order of their fields.
        expected = [
            *xy.T,
            np.log(intensity),
            inward,
            outward,
            np.array([1 / (row[row > 1e-6].mean() + 1e-6) for row in apart]),
            np.linalg.norm(xy - xy.mean(0), axis=1),
            np.isin(np.arange(n), hull.vertices),
            (age == 0) & (np.asarray(colony.birth[:n]) > 0),
            age,
            np.maximum(age - 1, 0),
        ]
        for name, a, b in zip(nodes._fields, nodes, expected, strict=True):
            if name == "is_vertex":  # which of two cells in one place is the vertex is open
                a, b = {tuple(p) for p in xy[a[:n] > 0]}, {tuple(p) for p in xy[b]}
                assert a == b
            else:
                np.testing.assert_allclose(a[:n], b, rtol=1e-5, atol=1e-5, err_msg=name)
                assert not np.any(a[n:])
        # The numbers of the whole graph.
        low, high = xy.min(0), xy.max(0)
        edges = graph.number_of_edges()
        statistics = (intensity.mean(), intensity.max(), intensity.sum())
        np.testing.assert_allclose(
            np.array(whole),
            [
                *(n, edges, nx.density(graph), *xy.mean(0), *low, *high),
                *(high - low),
                *(np.prod(high - low), hull.volume),
                *(edges / n, max(inward.max(), outward.max()), 2 * edges),
                *np.log(statistics),
            ],
            rtol=1e-5,
            atol=1e-5,
        )


def test_padded_graph(colonies):
    for colony in colonies:
        graph = observe(colony)
        n, parent = int(colony.num_nodes), np.asarray(colony.parent)
        child = np.flatnonzero(parent >= 0)
        e = len(child)
        np.testing.assert_array_equal(jraph.get_node_padding_mask(graph), np.arange(C + 1) < n)
        np.testing.assert_array_equal(jraph.get_edge_padding_mask(graph), np.arange(C) < e)
        np.testing.assert_array_equal(jraph.get_graph_padding_mask(graph), [True, False])
        np.testing.assert_array_equal(graph.senders, [*parent[child], *[C] * (C - e)])
        np.testing.assert_array_equal(graph.receivers, [*child, *[C] * (C - e)])
        np.testing.assert_array_equal([*graph.n_node, *graph.n_edge], [n, C + 1 - n, e, C - e])
        for padding in (graph.nodes[n:], graph.edges[e:], graph.globals[1]):
            assert not np.any(padding)
        xy = np.stack([colony.x, colony.y], 1)
        along = xy[child] - xy[parent[child]]
        length = np.linalg.norm(along, axis=1)
        unit = along / np.maximum(length, 1e-6)[:, None]
        np.testing.assert_allclose(graph.edges[:e, 0], length / 10, rtol=1e-5)
        np.testing.assert_allclose(graph.edges[:e, 1:], unit, rtol=1e-5, atol=1e-6)


def test_scales(colonies):
    """Each column against the raw one, with the scales of the table written out once more."""
    nodes, whole = raw_features(colonies[4])
    graph = observe(colonies[4])
    rows = np.stack(nodes)
    scale = np.array([W, H, 1, 1, 5, 1, 100, 1, 1, 100, 50])[:, None]
    rows[5] = rows[5] * 100 / (1 + rows[5] * 100)
    np.testing.assert_allclose(graph.nodes[:C].T, rows / scale, rtol=1e-5)
    area = W * H
    scale = [100, 100, 0.1, W, H, W, H, W, H, W, H, area, area, 1, 5, 200, 1, 1, 1]
    np.testing.assert_allclose(graph.globals[0], np.array(whole) / scale, rtol=1e-5)
    shapes: Any = observation.shapes(C)
    for shape, leaf in zip(shapes, graph, strict=True):
        assert (shape.shape, shape.dtype) == (leaf.shape, leaf.dtype)


def test_relabelled_cells_have_the_same_features():
    rng = np.random.default_rng(1)
    colony, n = random_colony(20, rng), 20
    colony = replace(colony, x=colony.x.at[:n].add(rng.uniform(0, 0.4, n)))  # no two in one place
    order = np.concatenate([rng.permutation(n), np.arange(n, C)])  # of the old slots
    new_slot = np.argsort(order)
    parent = np.asarray(colony.parent)[order]
    relabelled = replace(
        colony,
        x=colony.x[order],
        y=colony.y[order],
        birth=colony.birth[order],
        parent=jnp.asarray(np.where(parent >= 0, new_slot[parent], -1), jnp.int32),
    )
    before, after = observe(colony), observe(relabelled)
    np.testing.assert_allclose(after.nodes[:C], before.nodes[order], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after.globals, before.globals, rtol=1e-5, atol=1e-6)

    def edges(graph, names):
        e = graph.n_edge[0]
        ends = zip(names[graph.senders[:e]], names[graph.receivers[:e]], strict=True)
        return dict(zip(ends, graph.edges[:e].tolist(), strict=True))

    assert edges(before, np.arange(C)) == edges(after, order)


@pytest.mark.parametrize("num_nodes", [0, 1, 2])
def test_hardly_any_cells(num_nodes):
    colony = random_colony(num_nodes, np.random.default_rng(num_nodes))
    (nodes, whole), graph = raw_features(colony), observe(colony)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((nodes, whole, graph)))
    assert nodes.is_vertex.sum() == num_nodes
    assert whole.hull_area == 0
    if num_nodes == 1:
        assert nodes.centrality[0] == 1
    if num_nodes == 0:
        assert not np.any(graph.globals)
        assert not np.any(graph.nodes)


def test_cells_in_one_place_and_nearly_so():
    zeros = jnp.zeros(C, jnp.int32)
    x = jnp.zeros(C).at[:3].set(jnp.array([0.25, 0.25, 0.25 + 2**-18]))  # 3.8e-6 px apart
    colony = Colony(x, jnp.zeros(C), zeros - 1, zeros, jnp.int32(2))
    assert raw_features(colony)[0].centrality[:2].tolist() == [1, 1]
    nodes, _ = raw_features(replace(colony, num_nodes=jnp.int32(3)))
    np.testing.assert_allclose(nodes.centrality[:3], 1 / (2**-18 + 1e-6), rtol=1e-5)


@pytest.mark.parametrize(("slope", "base"), [(0.146, 1.2), (-0.146, 1.2), (0.05, 1.0)])
def test_steep_ground(slope, base):
    law = Law(jnp.bool_(True), jnp.float32(slope), jnp.float32(base))
    colony = random_colony(20, np.random.default_rng(4))
    colony = replace(colony, x=jnp.where(colony.x > 0, colony.x * 5.9, 0))
    _, whole = raw_features(colony, law)
    log_intensity = slope * np.floor(np.asarray(colony.x[:20], np.float64)) + np.log(base)
    log_sum = np.logaddexp.reduce(log_intensity)
    expected = [log_sum - np.log(20), log_intensity.max(), log_sum]
    np.testing.assert_allclose(np.array(whole)[-3:], expected, rtol=1e-5)
    assert all(np.all(np.isfinite(leaf)) for leaf in observe(colony, law))


@pytest.mark.slow
def test_features_of_founders():
    colony = random_colony(5, np.random.default_rng(5))
    first = jax.jit(pairwise.initial_colony_features, static_argnums=(1, 2))
    every = jax.jit(pairwise.colony_features, static_argnums=1)
    for is_full in (True, False):
        short = first(colony, 5, is_full)
        full = every(colony, is_full)
        for a, b in zip(jax.tree.leaves(short), jax.tree.leaves(full), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-6)
    nobody = replace(colony, num_nodes=jnp.int32(0))
    assert not np.any(first(nobody, 0, True).is_vertex)


@pytest.mark.slow
@pytest.mark.parametrize("on_accelerators", [False, True])
def test_features_of_a_batch_are_those_of_each(colonies, on_accelerators):
    """Few cells and many are computed in different numbers of slots, but not on accelerators."""
    every = jax.jit(jax.vmap(jax.vmap(pairwise.colony_features)))
    few, many = [colonies[i] for i in (0, 1, 0)], [colonies[i] for i in (0, 4, 6)]
    if on_accelerators:
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, 3, *x.shape), x.dtype), few[0])
        every = compile_as_on_accelerators(jax.vmap(jax.vmap(pairwise.colony_features)), shapes)
    for batch in ([few, few], [few, many]):
        rows = [jax.tree.map(lambda *x: np.stack(x), *row) for row in batch]
        batch_features = jax.device_get(every(jax.tree.map(lambda *x: np.stack(x), *rows)))
        for i, row in enumerate(batch):
            for j, colony in enumerate(row):
                for a, b in zip(
                    jax.tree.leaves(batch_features), unbatched_features(colony), strict=True
                ):
                    np.testing.assert_allclose(a[i, j], b, rtol=1e-5)


def test_without_what_is_dear(colonies):
    @jax.jit
    def describe_local(colony):
        colony_features = pairwise.colony_features(colony, pairwise=False)
        time = jnp.int32(TIME)
        return observation.describe(
            colony, colony_features, time, GROUND, NO_FIELD, *SIZE, pairwise=False
        )

    less, more = jax.device_get(describe_local(colonies[5])), observe(colonies[5])
    assert not np.any(less.nodes[:, [5, 7]])
    assert less.globals[0, 12] == 0
    others = np.delete(np.arange(11), [5, 7])
    np.testing.assert_allclose(less.nodes[:, others], more.nodes[:, others], rtol=1e-6)
    np.testing.assert_allclose(
        np.delete(less.globals[0], 12), np.delete(more.globals[0], 12), rtol=1e-6
    )
