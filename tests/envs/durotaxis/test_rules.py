"""The rules of a colony against a slow one, and against what is known of whole episodes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from envs.durotaxis import parents, rules, selection
from envs.durotaxis.substrate import Law, intensity
from tests.accelerator_branches import compile_as_on_accelerators
from tests.envs.durotaxis import oracle

WIDTH, HEIGHT = jnp.float32(600), jnp.float32(400)
SIZE = (WIDTH, HEIGHT)
LAW = Law(jnp.bool_(False), jnp.float32(0.01), jnp.float32(1.0))
NO_FIELD = jnp.zeros((0, 0), jnp.float32)
CRITICAL, SUCCESS, TIMEOUT = 1, 2, 3
THRESHOLD, LIMIT, CAPACITY, SEEDS = 100, 1000, 100, 50


def land(colony: rules.Colony, spawn: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Children of `spawn`: gamma, alpha, noise, theta."""
    stiffness = intensity(LAW, NO_FIELD, colony.x, colony.y, *SIZE)
    gamma, alpha, noise, theta = spawn
    return rules.directed_children(colony, stiffness, gamma, alpha, noise, theta, *SIZE)


remove_cells = jax.jit(rules.remove_cells)
start = jax.jit(rules.founders, static_argnums=(1, 2))


@jax.jit
def step(colony: rules.Colony, deleted: jax.Array, spawn: jax.Array, time: jax.Array):
    growth = rules.grow(colony, deleted, *land(colony, spawn))
    return growth, rules.next_colony(growth, time)


@jax.jit
def delete_leftmost(colony: rules.Colony, ratio: jax.Array) -> jax.Array:
    count = rules.delete_count(ratio, colony.num_nodes)
    return rules.leftmost(colony.x, rules.alive(colony), count)


def oracle_of(colony: rules.Colony) -> oracle.Colony:
    """A slow colony of founders."""
    points = list(zip(colony.x.tolist(), colony.y.tolist(), strict=True))
    return oracle.Colony.path(points[: int(colony.num_nodes)])


def assert_same(colony: rules.Colony, slow: oracle.Colony) -> None:
    """Compares two colonies; of an overflow, the first C cells."""
    capacity, n = colony.x.size, min(len(slow.cells), colony.x.size)
    assert int(colony.num_nodes) == n
    cells, blank = slow.cells[:n], capacity - n
    expected = np.array([(cell.x, cell.y) for cell in cells] + [(0.0, 0.0)] * blank)
    np.testing.assert_allclose(np.stack([colony.x, colony.y], 1), expected, rtol=1e-6, atol=1e-4)
    assert colony.parent.tolist() == slow.parents()[:n] + [-1] * blank
    assert colony.birth.tolist() == [cell.birth for cell in cells] + [0] * blank
    assert all(parent < slot for slot, parent in enumerate(colony.parent.tolist()))


def follow(slow: oracle.Colony, colony: rules.Colony) -> None:
    """Give the slow cells their float32 places, so that rounding does not add up."""
    for cell, x, y in zip(slow.cells, colony.x.tolist(), colony.y.tolist(), strict=False):
        cell.x, cell.y = x, y


@pytest.mark.parametrize("leftmost", [False, True], ids=["any", "leftmost"])
def test_histories_against_a_graph_that_loses_one_cell_at_a_time(leftmost: bool):
    random, ground, overflows = np.random.default_rng(int(leftmost)), oracle.Ground(), 0
    for key in jax.random.split(jax.random.key(3), 8):
        colony = start(key, CAPACITY, 12, *SIZE)
        slow = oracle_of(colony)
        for time in range(1, 8):
            ratio = np.float32(random.uniform(0, 0.7))
            spawn = random.uniform([0.5, 0.5, 0.05, -3], [15, 4, 0.5, 3]).astype(np.float32)
            deleted = random.random(CAPACITY) < ratio  # beyond N as well, where it must say nothing
            if leftmost:
                deleted = np.asarray(delete_leftmost(colony, ratio))
                count = int(np.floor(ratio * np.float32(len(slow.cells))))
                slots = oracle.leftmost([cell.x for cell in slow.cells], count)
                assert np.flatnonzero(deleted).tolist() == sorted(slots)
            names = [c.name for c, gone in zip(slow.cells, deleted, strict=False) if gone]
            random.shuffle(names)  # the order in which they die does not matter
            slow.step(names, oracle.directed_landing(ground, *spawn.tolist()), time)
            growth, colony = step(colony, deleted, spawn, np.int32(time))
            assert int(growth.num_nodes) == len(slow.cells)
            assert_same(colony, slow)
            follow(slow, colony)
            if len(slow.cells) > CAPACITY:
                overflows += 1
                break
    assert 0 < overflows < 8


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("dying", [(), (0,), (1,), (0, 1)])
def test_the_smallest_colonies(n: int, dying: tuple[int, ...]):
    colony = start(jax.random.key(1), CAPACITY, n, *SIZE)
    slow, spawn = oracle_of(colony), np.array([5, 1, 0.1, 0], np.float32)
    deleted = np.isin(np.arange(CAPACITY), dying)
    slow.step(
        [slot for slot in dying if slot < n], oracle.directed_landing(oracle.Ground(), *spawn), 1
    )
    growth, colony = step(colony, deleted, spawn, np.int32(1))
    assert_same(colony, slow)
    assert int(growth.num_nodes) == 2 * max(0, n - len([s for s in dying if s < n]))


@pytest.mark.parametrize(
    ("ratio", "sizes"),
    [
        (0.25, [5, 8, 12, 18, 28, 42, 64, 96, 144]),
        (0.4999, [5, 6, 8, 10, 12, 14, 16]),
        (0.0, [5, 10, 20, 40, 80, 160]),
        (0.55, [5, 6, 6, 6]),
        (0.7, [5, 4, 4, 4]),
    ],
)
def test_sizes_of_a_colony(ratio: float, sizes: list[int]):
    colony = start(jax.random.key(2), CAPACITY, 5, *SIZE)
    spawn, observed_sizes = np.array([7.75, 2.25, 0.275, 0], np.float32), [5]
    for time in range(1, len(sizes)):
        deleted = delete_leftmost(colony, np.float32(ratio))
        growth, colony = step(colony, deleted, spawn, np.int32(time))
        observed_sizes.append(int(growth.num_nodes))
    assert observed_sizes == sizes
    assert int(colony.num_nodes) == min(sizes[-1], CAPACITY)


def play(action: jax.Array, colony: rules.Colony) -> dict[str, jax.Array]:
    """An episode of one constant action (ratio, gamma, alpha, noise, theta), from founders on."""

    def advance(carry):
        colony, time = carry["colony"], carry["time"] + 1
        deleted = delete_leftmost(colony, action[0])
        growth = rules.grow(colony, deleted, *land(colony, action[1:]))
        children = jnp.where(growth.survives, growth.child_x, 0.0)
        old = jnp.where(growth.survives, colony.x, 0.0)
        centroid = (jnp.sum(old) + jnp.sum(children)) / growth.num_nodes
        arrived = jnp.max(jnp.maximum(old, children)) >= WIDTH - rules.margin(WIDTH) - 0.5
        ending = jnp.where(
            growth.num_nodes > THRESHOLD,
            CRITICAL,
            jnp.where(arrived, SUCCESS, jnp.where(time >= LIMIT, TIMEOUT, 0)),
        )
        return {
            "colony": rules.next_colony(growth, time),
            "time": time,
            "size": growth.num_nodes,
            "ending": ending,
            "centroid": centroid,
            "rose": carry["rose"] & (centroid > carry["centroid"]),
        }

    zero, true = jnp.int32(0), jnp.bool_(True)
    carry = {"colony": colony, "time": zero, "size": zero, "ending": zero, "rose": true}
    carry["centroid"] = jnp.sum(colony.x) / 5
    carry = jax.lax.while_loop(lambda carry: carry["ending"] == 0, advance, carry)
    return {name: value for name, value in carry.items() if name != "colony"}


def test_whole_episodes():
    """How 50 episodes of each of six constant actions end, known from a simulation in NumPy."""
    expected_endings = [  # action, ending, mean steps, cells at the end
        ((0.25, 7.75, 2.25, 0.275, 0), CRITICAL, 8, 144),
        ((0.4999, 15, 0.5, 0.5, 0), SUCCESS, 36.5, 77),
        ((0.4499, 15, 0.5, 0.5, 0), CRITICAL, 22, 112),  # with 0.45, rounding would count
        ((0.55, 15, 0.5, 0.5, 0), SUCCESS, 36.5, 6),
        ((0.70, 15, 0.5, 0.5, 0), SUCCESS, None, 4),
        ((0.55, 0.5, 2, 0.1, 0), TIMEOUT, LIMIT, 6),
    ]
    keys = jax.random.split(jax.random.key(7), SEEDS)
    actions = jnp.array([row[0] for row in expected_endings], jnp.float32)

    @jax.jit
    def play_all(actions, keys):
        founded = jax.vmap(lambda key: rules.founders(key, CAPACITY, 5, *SIZE))(keys)
        return jax.lax.map(lambda action: jax.vmap(play, (None, 0))(action, founded), actions)

    episodes = jax.tree.map(np.asarray, play_all(actions, keys))
    assert episodes["rose"].all()  # the centroid, on every step
    for i, (_, ending, time, size) in enumerate(expected_endings):
        assert (episodes["ending"][i] == ending).all()
        if ending == SUCCESS:
            # the best founder decides by a step or two; a growing colony gains 2 cells a step
            assert time is None or abs(episodes["time"][i].mean() - time) < 0.4
            assert abs(episodes["size"][i].mean() - size) < 0.8
        else:
            assert (episodes["time"][i] == time).all()
            assert (episodes["size"][i] == size).all()


@pytest.mark.parametrize("capacity", [1, 100])
def test_leftmost_and_rightmost(capacity: int):
    random = np.random.default_rng(capacity)
    choose_both = lambda *a: (rules.leftmost(*a), rules.rightmost(*a))
    shapes = [jax.ShapeDtypeStruct((capacity,), kind) for kind in (float, bool)]
    shapes.append(jax.ShapeDtypeStruct((), jnp.int32))
    ways = [jax.jit(choose_both), compile_as_on_accelerators(choose_both, *shapes)]
    pool = np.array([-np.inf, -3.5, -1e-30, -0.0, 0.0, 1e-30, 2, 6, 6, 594, 3e38], np.float32)
    for trial in range(60):
        x = random.choice(pool, capacity) if trial % 2 else random.normal(size=capacity)
        x, candidates = x.astype(np.float32), random.random(capacity) < random.random()
        some = int(random.integers(capacity + 1))
        count = [-1, 0, 1, capacity, capacity + 9, some, some][trial % 7]
        slots = np.flatnonzero(candidates).tolist()
        values = x[slots].astype(float)
        first = [slots[i] for i in oracle.leftmost(values.tolist(), count)]
        last = [slots[i] for i in oracle.leftmost((-values).tolist(), count)]
        for choose in ways:
            left, right = choose(x, candidates, np.int32(count))
            assert np.flatnonzero(left).tolist() == sorted(first)
            assert np.flatnonzero(right).tolist() == sorted(last)


@pytest.mark.parametrize("capacity", [1, 100])
def test_sets_of_slots(capacity: int):
    @jax.jit
    def describe(keep, a, b):
        slot = jnp.arange(capacity, dtype=jnp.int32)
        packed = rules.compact({"a": a, "b": b}, keep)
        return packed, selection.rank(keep), selection.nth(keep, slot), selection.size(keep)

    random = np.random.default_rng(capacity)
    for share in (0, 0.1, 0.5, 0.9, 1):
        keep = random.random(capacity) < share
        a, b = random.normal(size=capacity).astype(np.float32), np.arange(capacity) % 3 == 0
        packed, rank, nth, size = jax.tree.map(np.asarray, describe(keep, a, b))
        kept_slots = np.flatnonzero(keep)
        for name, value in (("a", a), ("b", b)):
            assert packed[name].dtype == value.dtype
            assert packed[name][: kept_slots.size].tolist() == value[keep].tolist()
            assert not packed[name][kept_slots.size :].any()
        assert int(size) == kept_slots.size
        assert nth[: kept_slots.size].tolist() == kept_slots.tolist()
        assert ((nth >= 0) & (nth < capacity)).all()
        assert rank.tolist() == (np.cumsum(keep) - keep).tolist()


def test_the_nearest_survivor():
    def climb(parent: list[int], survives: np.ndarray) -> list[int]:
        nearest = list(parent)
        for slot in range(len(parent)):
            while nearest[slot] >= 0 and not survives[nearest[slot]]:
                nearest[slot] = parent[nearest[slot]]
        return nearest

    random, find = np.random.default_rng(0), jax.jit(parents.nearest_survivor)
    shapes = [jax.ShapeDtypeStruct((128,), kind) for kind in (jnp.int32, bool)]
    find_as_accelerators = compile_as_on_accelerators(parents.nearest_survivor, *shapes)
    path = np.arange(-1, 127)
    for share in (0, 0.02, 0.2, 0.5, 0.9, 1):
        for parent in (path, random.integers(-1, np.arange(128)), np.maximum(path - 2, -1)):
            survives = random.random(128) < share
            expected = climb(parent.tolist(), survives)
            for way in (find, find_as_accelerators):
                assert way(parent.astype(np.int32), survives).tolist() == expected


def test_the_ratio_is_taken_in_float32():
    """0.7 × 10 is 7, though the float32 nearest to 0.7 lies below it."""
    count = jax.jit(rules.delete_count)
    for ratio, n, expected in [(0.7, 10, 7), (0.1, 10, 1), (0.55, 20, 11), (0.4999, 100, 49)]:
        assert int(count(np.float32(ratio), np.int32(n))) == expected
    for ratio, expected in [(-0.5, 0), (0, 0), (1, 9), (1.5, 9), (np.inf, 9), (-np.inf, 0)]:
        assert int(count(np.float32(ratio), np.int32(9))) == expected
    ratios, sizes = np.meshgrid(np.linspace(0, 1, 101, dtype=np.float32), np.arange(101))
    expected = np.floor(ratios * sizes.astype(np.float32)).astype(int)
    np.testing.assert_array_equal(count(ratios, sizes.astype(np.int32)), expected)


def test_how_far_a_child_lands():
    gamma, alpha, noise = jnp.float32(10), jnp.float32(2), jnp.float32(0.25)
    distance = jax.jit(partial(rules.hill_distance, gamma=gamma, alpha=alpha, noise=noise))
    assert float(distance(jnp.float32(2.0))) == 5.25  # half of gamma where I = alpha
    stiffness = jnp.array([0.5, 1.0, 4.0, 3e38], jnp.float32)
    np.testing.assert_allclose(distance(stiffness), [10 / 17 + 0.25, 2.25, 8.25, 10.25], rtol=1e-6)
    broken = jnp.array([np.nan, np.inf, -np.inf, 0, -1, 1e-6], jnp.float32)
    np.testing.assert_allclose(distance(broken), 2.25, rtol=1e-6)


def test_children_stay_off_the_edges():
    assert float(rules.margin(jnp.float32(150))) == 2  # px
    assert float(rules.margin(jnp.float32(600))) == 6
    points = jnp.array([-1e9, 0, 6, 7, 390, 396.5, 594.5, 1e9], jnp.float32)
    x, y = rules.clamp(points, points, *SIZE)
    assert x.tolist() == [6, 6, 6, 7, 390, 396.5, 594, 594]
    assert y.tolist() == [4, 4, 6, 7, 390, 396, 396, 396]


def test_isotropic_children():
    """Reach 10 ± 2 px: in each direction mean 0 and variance E[(1 + 2 R)²]."""
    n = 20_000
    normals, ones = jax.random.normal(jax.random.key(5), (n, 3)), jnp.ones(n)
    colony = rules.Colony(
        5000 * ones, 5000 * ones, jnp.zeros(n, int), jnp.zeros(n, int), jnp.int32(n)
    )

    @jax.jit
    def ways(normals, noise):
        size = (jnp.float32(1e4), jnp.float32(1e4))
        place = rules.isotropic_children(
            normals, colony, ones, jnp.float32(20), ones[0], noise, *size
        )
        return jnp.stack(place) - 5000

    for way in np.asarray(ways(normals, jnp.float32(2))):
        assert abs(way.mean()) < 4 * 21.4 / np.sqrt(n)
        assert way.var() == pytest.approx(21**2 + 4**2, rel=0.05)
    x, y = np.asarray(ways(normals, jnp.float32(0))) / 21
    np.testing.assert_allclose([x, y], normals[:, 1:].T, atol=1e-3)
    backwards = normals.at[:, 0].set(-100)  # a negative reach counts as none
    x, y = np.asarray(ways(backwards, jnp.float32(2)))
    np.testing.assert_allclose([x, y], normals[:, 1:].T, atol=1e-3)


def test_founders():
    draw = jax.jit(jax.vmap(lambda key: rules.founders(key, 8, 5, *SIZE)))
    colony = draw(jax.random.split(jax.random.key(11), 4000))
    x, y = np.asarray(colony.x), np.asarray(colony.y)
    assert (np.diff(x[:, :5]) >= 0).all()
    assert not x[:, 5:].any()
    assert not y[:, 5:].any()
    assert (x >= 0).all()
    assert (x < 60).all()
    for values, law in [
        (x[:, :5].ravel() / 60, stats.uniform()),
        (x[:, 0] / 60, stats.beta(1, 5)),  # the order statistics of five uniform numbers
        (x[:, 2] / 60, stats.beta(3, 3)),
        (x[:, 4] / 60, stats.beta(5, 1)),
        ((y[:, :5].ravel() - 160) / 80, stats.uniform()),
    ]:
        assert stats.kstest(values, law.cdf, method="asymp").pvalue > 1e-3
    assert abs(np.corrcoef(x[:, 2], y[:, 2])[0, 1]) < 0.05
    assert (np.asarray(colony.parent) == [-1, 0, 1, 2, 3, -1, -1, -1]).all()
    assert not np.asarray(colony.birth).any()
    assert (np.asarray(colony.num_nodes) == 5).all()


@pytest.mark.parametrize("num_founders", [-1, 9])
def test_founders_that_do_not_fit(num_founders: int):
    with pytest.raises(ValueError, match=rf"num_founders is {num_founders}; expected 0 to 8"):
        rules.founders(jax.random.key(0), 8, num_founders, *SIZE)


@pytest.mark.parametrize("seed", range(4))
def test_a_colony_without_some_of_its_cells(seed):
    random = np.random.default_rng(seed)
    count, capacity = 12, 16
    parent = np.array([-1] + [int(random.integers(-1, i)) for i in range(1, count)])
    x, y = random.uniform(0, 9, (2, count)).astype(np.float32)
    pad = lambda values, blank: np.concatenate([values, np.full(capacity - count, blank)])
    colony = rules.Colony(
        jnp.asarray(pad(x, 0), jnp.float32),
        jnp.asarray(pad(y, 0), jnp.float32),
        jnp.asarray(pad(parent, -1), jnp.int32),
        jnp.asarray(pad(np.arange(count), 0), jnp.int32),
        jnp.int32(count),
    )
    removed = random.random(capacity) < 0.5
    remaining_colony = jax.device_get(remove_cells(colony, removed))
    kept_cells = [i for i in range(count) if not removed[i]]
    assert int(remaining_colony.num_nodes) == len(kept_cells)
    np.testing.assert_array_equal(remaining_colony.x[: len(kept_cells)], x[kept_cells])
    np.testing.assert_array_equal(remaining_colony.birth[: len(kept_cells)], kept_cells)
    for slot, node in enumerate(kept_cells):
        heir = int(parent[node])
        while heir >= 0 and removed[heir]:
            heir = int(parent[heir])
        assert int(remaining_colony.parent[slot]) == (kept_cells.index(heir) if heir >= 0 else -1)
    np.testing.assert_array_equal(remaining_colony.parent[len(kept_cells) :], -1)
    np.testing.assert_array_equal(remaining_colony.y[len(kept_cells) :], 0)
