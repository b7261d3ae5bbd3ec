"""The hull against Qhull on generic points, and against its definition in float64 on lines.

Every hull is found as a CPU does and as accelerators do, which must agree on the vertices.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from envs.durotaxis.graph import hull
from tests.accelerator_branches import compile_as_on_accelerators

POINTS, CLOUDS = 64, 40  # of one compilation
convex_hulls = jax.jit(jax.vmap(hull.convex_hull))


@cache
def convex_hulls_of_accelerators():
    shapes = [jax.ShapeDtypeStruct((CLOUDS, POINTS), kind) for kind in (float, float, bool)]
    return compile_as_on_accelerators(jax.vmap(hull.convex_hull), *shapes)


def pad_points(points, rng):
    """The points in random slots of POINTS, among others that do not count."""
    points = np.asarray(points, np.float32).reshape(-1, 2)
    slots = np.sort(rng.permutation(POINTS)[: len(points)])
    xy = rng.uniform(-1000, 1000, (POINTS, 2)).astype(np.float32)
    xy[slots] = points
    mask = np.zeros(POINTS, bool)
    mask[slots] = True
    return xy, mask


def compute_hulls(clouds, seed=0):
    """Flags of every point of every cloud, and the areas."""
    rng = np.random.default_rng(seed)
    xy, mask = map(np.stack, zip(*(pad_points(cloud, rng) for cloud in clouds), strict=True))
    empty = (0, -len(clouds) % CLOUDS)
    x, y, counts = (
        np.pad(v, (empty, (0, 0))).reshape(-1, CLOUDS, POINTS)
        for v in (xy[..., 0], xy[..., 1], mask)
    )
    inputs = list(zip(x, y, counts, strict=True))
    parts = jax.device_get([convex_hulls(*part) for part in inputs])
    for part, ours in zip(inputs, parts, strict=True):
        theirs = convex_hulls_of_accelerators()(*part)
        np.testing.assert_array_equal(theirs.is_vertex, ours.is_vertex)
        np.testing.assert_allclose(theirs.area, ours.area, rtol=1e-5, atol=0.1)
    is_vertex, area = (np.concatenate(v)[: len(clouds)] for v in zip(*parts, strict=True))
    assert not np.any(is_vertex & ~mask)
    return [f[m] for f, m in zip(is_vertex, mask, strict=True)], area


def sticks_out(points, tolerance=hull.TOLERANCE):
    """Which points lie farther than that from the hull of the others, by definition.

    The distance is the largest over all directions of how much farther the point reaches than any
    other; it is taken at the normals of the lines through two others, and towards single ones. Of
    points that coincide, the lowest is looked at without the others.
    """
    points = np.asarray(np.asarray(points, np.float32), np.float64)
    flags = np.zeros(len(points), bool)
    for i, p in enumerate(points):
        same = np.all(points == p, axis=1)
        others = points[~same]
        if np.flatnonzero(same)[0] < i:
            continue
        ways = (others[:, None] - others[None]).reshape(-1, 2) @ [[0, 1], [-1, 0]]
        ways = np.concatenate([ways, p - others])
        ways = ways[np.any(ways != 0, axis=1)]
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        flags[i] = np.max(ways @ p - np.max(ways @ others.T, axis=1)) > tolerance
    return flags


def test_generic_points_agree_with_qhull():
    rng = np.random.default_rng(1)
    clouds = [rng.uniform((0, 0), (600, 400), (rng.integers(3, POINTS + 1), 2)) for _ in range(100)]
    clouds += [rng.normal((300, 200), (60, 5), (rng.integers(8, 60), 2)) for _ in range(50)]
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    clouds.append(np.stack([300 + 90 * np.cos(angle), 200 + 50 * np.sin(angle)], 1))
    flags, areas = compute_hulls(clouds)
    for cloud, flag, area in zip(clouds, flags, areas, strict=True):
        exact = ConvexHull(np.asarray(cloud, np.float32).astype(np.float64))
        vertices = np.isin(np.arange(len(cloud)), exact.vertices)
        if np.any(vertices != flag):  # only where a vertex sticks out by less than the tolerance
            assert not np.any((vertices != flag) & (flag | sticks_out(cloud)))
        assert area == pytest.approx(exact.volume, rel=1e-5, abs=2)
    assert np.all(flags[-1])


def lineages(angle, rng):
    """Six cells on a circle's arc, and up to eight steps from each in one direction."""
    start = np.stack([rng.uniform(0, 60, 6), rng.uniform(160, 240, 6)], 1)
    step = rng.uniform(0.2, 12) * np.array([np.cos(angle), np.sin(angle)])
    return np.concatenate([p + step * np.arange(rng.integers(1, 9))[:, None] for p in start])


def test_structured_points_agree_with_the_definition():
    rng = np.random.default_rng(2)
    clouds = [lineages(angle, rng) for angle in (0, 0.3, -0.5, 0.5236) for _ in range(5)]
    for _ in range(4):
        columns = np.stack([rng.choice([6.0, 594.0], 24), rng.uniform(4, 396, 24)], 1)
        rows = np.stack([rng.uniform(6, 594, 12), rng.choice([4.0, 396.0], 12)], 1)
        clouds += [columns, np.concatenate([columns, rows])]
        clouds.append(rng.integers(0, 4, (40, 2)) * 7.3)  # a lattice, most places taken twice
        clouds.append(np.repeat(rng.uniform(0, 600, (9, 2)), 3, axis=0))
    flags, areas = compute_hulls(clouds)
    for cloud, flag, area in zip(clouds, flags, areas, strict=True):
        np.testing.assert_array_equal(flag, sticks_out(cloud))
        exact = ConvexHull(np.asarray(cloud, np.float32).astype(np.float64)).volume
        assert area == pytest.approx(exact, rel=1e-5, abs=2)


def test_rounding_makes_no_vertex():
    rng = np.random.default_rng(3)
    share = np.sort(rng.uniform(0, 1, 40))[:, None]
    clouds = []
    for corner in ((60, 20), (590, 390), (400, 0.5)):
        side = np.array([3.3, 7.7]) + share * corner  # each point is off the line by its rounding
        clouds.append(np.concatenate([side, [[500.0, 1.0], [10.0, 399.0]]]))
    flags, _ = compute_hulls(clouds)
    for flag in flags:
        assert flag[[0, 39, 40, 41]].sum() >= 3
        assert not np.any(flag[1:39])


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], []),
        ([(3, 4)], [1]),
        ([(3, 4), (3, 4)], [1, 1]),
        ([(3, 4), (5, 4)], [1, 1]),
        ([(3, 4), (3, 4), (3, 4)], [1, 0, 0]),
        ([(2, 5), (2, 9), (2, 1), (2, 3)], [1, 1, 1, 0]),  # first for both ends of x
        ([(5, 2), (9, 2), (6, 2), (1, 2)], [1, 1, 0, 1]),  # first for both ends of y
        ([(1, 1), (4, 4), (2, 2), (0, 0)], [0, 1, 0, 1]),
        ([(0, 0), (10, 5e-4), (20, 0)], [1, 1, 1]),  # flat within tolerance; the largest y
        ([(0, 0), (10, 5), (20, 0)], [1, 1, 1]),
    ],
)
def test_degenerate_points(points, expected):
    flags, areas = compute_hulls([points])
    assert flags[0].tolist() == [bool(e) for e in expected]
    assert areas[0] == pytest.approx(50 if len(points) == 3 and points[1] == (10, 5) else 0)


@pytest.mark.slow
def test_parts_and_sizes():
    x, y = jax.random.uniform(jax.random.key(0), (2, 3))
    mask = jnp.ones(3, bool)
    vertices, area = jax.jit(lambda *p: (hull.vertices(*p), hull.area(*p)))(x, y, mask)
    assert np.all(vertices)
    expected = 0.5 * abs((x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0]))
    assert float(area) == pytest.approx(float(expected), rel=1e-5)
    assert np.all(jax.jit(hull.vertices)(x[:1], y[:1], mask[:1]))
