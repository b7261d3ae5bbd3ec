"""Rewards of a colony against a slow oracle of lists and loops."""

import dataclasses
import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.durotaxis import marking, rules
from envs.durotaxis.marking import Marks
from envs.durotaxis.rewards import registry, state_machine
from envs.durotaxis.rewards.facts import ending_of, is_terminated
from envs.durotaxis.rewards.registry import SETS, Ending, Step
from envs.durotaxis.substrate import Law, intensity
from tests.envs.durotaxis.rewards import oracle
from tests.envs.durotaxis.rewards.oracle import Ground, Happening, Node

CAPACITY, CASES, HEIGHT = 24, 96, 400.0
NODES = 570  # so that their children are on the ground, too
MARKS = [None, "delete", "keep"]
ENDINGS = [None, None, "crowded", "empty", "retreated", "arrived"]
COMPONENTS = jax.jit(lambda weights, step: weights.components(step))


def random_ground(rng, width: float) -> Ground:
    laws = [
        (False, rng.uniform(0.01, 0.1), rng.uniform(0.5, 2.0)),
        (False, -0.02, 1.0),
        (False, 0.0, 1.05),
        (True, rng.uniform(0.01, 0.05), rng.uniform(0.5, 1.5)),
        (True, 87.5 / width, 1.0),  # as steep as float32 can hold
    ]
    exponential, slope, base = laws[rng.integers(len(laws))]
    return Ground(exponential, float(np.float32(slope)), float(np.float32(base)), width)


def random_nodes(rng, number: int, time: int, width: float) -> list[Node]:
    spread = rng.choice([30.0, width])
    nodes = []
    for x, y in rng.uniform((0, 0), (spread, HEIGHT), (number, 2)).astype(np.float32):
        parent = nodes[rng.integers(len(nodes))] if nodes and rng.random() < 0.9 else None
        node = Node(float(x), float(y), parent, int(rng.integers(0, time + 1)))
        node.mark = MARKS[rng.integers(3)]
        node.marked_at = int(rng.integers(max(0, time - 8), time + 1))
        nodes.append(node)
    return nodes


def random_happening(rng, number: int) -> Happening:
    width = float(rng.choice([200, 600]))
    time = int(rng.choice([0, 2, 5, 30, 98, 99, 200]))
    nodes = random_nodes(rng, number, time, width)
    births = {}
    for node in nodes:
        angle, reach = rng.uniform(-math.pi, math.pi), rng.uniform(0, 15)
        x = np.clip(node.x + reach * math.cos(angle), 6, width - 6)
        y = np.clip(node.y + reach * math.sin(angle), 4, HEIGHT - 4)
        births[node] = float(np.float32(x)), float(np.float32(y))
    ratio = rng.choice([0.0, 0.3, 0.5, 0.8, 1.0])
    return Happening(
        nodes=nodes,
        gone=[node for node in nodes if rng.random() < ratio],
        births=births,
        ground=random_ground(rng, width),
        height=HEIGHT,
        time=time,
        critical=float(rng.choice([3, 10, 20])),
        delay=int(rng.choice([0, 1, 3, 5])),
        delta=float(rng.choice([0.31, 2.51])),  # which no whole number of columns gains
        max_steps=int(rng.choice([100, 1000])),
        milestones=[bool(reached) for reached in rng.random(4) < 0.5],
        ending=ENDINGS[rng.integers(len(ENDINGS))],
        marking_began=bool(rng.random() < 0.5),
    )


def colony_of(nodes: list[Node], capacity: int = CAPACITY) -> rules.Colony:
    def pad(values, fill: int, dtype: Any) -> Any:
        padding = [fill] * (capacity - len(nodes))
        return np.array([*values, *padding], dtype)

    slot = {node: i for i, node in enumerate(nodes)}
    return rules.Colony(
        x=pad((node.x for node in nodes), 0, np.float32),
        y=pad((node.y for node in nodes), 0, np.float32),
        parent=pad((slot[n.parent] if n.parent else -1 for n in nodes), -1, np.int32),
        birth=pad((node.birth for node in nodes), 0, np.int32),
        num_nodes=array(np.int32, len(nodes)),
    )


def array(dtype: Any, value: Any) -> Any:
    """A NumPy array, which is made a hundred times faster than one of JAX, and passes for it."""
    return np.asarray(value, dtype)


def pad_values(values: list, capacity: int, dtype: Any = np.int32) -> Any:
    """Values, then garbage that must not matter."""
    return np.array([*values, *[77] * (capacity - len(values))], dtype)


def growth_of(h: Happening, capacity: int = CAPACITY) -> rules.Growth:
    places = [h.births[node] for node in h.nodes]
    survives = [node not in h.gone for node in h.nodes]
    x, y = (pad_values([place[i] for place in places], capacity, np.float32) for i in (0, 1))
    survives += [False] * (capacity - len(survives))
    number = array(np.int32, 2 * sum(survives))
    colony, survives = colony_of(h.nodes, capacity), array(bool, survives)
    slots = {node: i for i, node in enumerate(h.nodes)}
    new_parent = [-1] * len(h.nodes)
    for node in h.nodes:
        above = node.parent
        while above in h.gone:
            above = above.parent
        new_parent[slots[node]] = -1 if above is None else slots[above]
    return rules.Growth(colony, survives, x, y, number, pad_values(new_parent, capacity))


def law_of(ground: Ground) -> Law:
    slope, base = (array(np.float32, number) for number in (ground.slope, ground.base))
    return Law(array(bool, ground.exponential), slope, base)


def step_of(h: Happening, with_marks: bool, capacity: int = CAPACITY) -> Step:
    marks = Marks(
        mark=pad_values([MARKS.index(node.mark) for node in h.nodes], capacity),
        marked_at=pad_values([node.marked_at for node in h.nodes], capacity),
        unmarked_for=pad_values([0] * capacity, capacity),
        was_crowded=array(bool, True),
        is_first=array(bool, h.marking_began),
    )
    return Step(
        growth=growth_of(h, capacity),
        law=law_of(h.ground),
        field=array(np.float32, np.zeros((0, 0))),
        width=array(np.float32, h.ground.width),
        height=array(np.float32, h.height),
        time=array(np.int32, h.time),
        critical_nodes=array(np.float32, h.critical),
        delay=array(np.int32, h.delay),
        delta_intensity=array(np.float32, h.delta),
        max_steps=array(np.int32, h.max_steps),
        milestones=array(bool, h.milestones),
        ending=Ending(*(array(bool, name == h.ending) for name in Ending._fields)),
        marks=marks if with_marks else (),
    )


def stack(trees: list):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def random_weights(rng, name: str) -> dict[str, float]:
    weights = {key: float(np.float32(rng.uniform(-2, 2))) for key in oracle.DEFAULTS[name]}
    positive = {"shaping_discount": 0.9, "distance_scale": 5.0, "bound": 0.7}
    positive["termination_bound"] = 1.5
    return weights | {key: value for key, value in positive.items() if key in weights}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", SETS)
def test_components_are_the_oracles(name: str):
    """Colonies of 0 nodes and more, some doubling beyond the capacity; weights all of their own."""
    rng = np.random.default_rng(1)
    sizes = [0, 1, 2, 2, CAPACITY, *rng.integers(0, CAPACITY + 1, CASES - 5)]
    cases = [random_happening(rng, number) for number in sizes]
    weights = [random_weights(rng, name) for _ in cases]
    steps = stack([step_of(h, name == "state_machine") for h in cases])
    traced = stack([jax.tree.map(np.float32, SETS[name](**w)) for w in weights])

    got = jax.jit(jax.vmap(SETS[name].components))(traced, steps)
    assert got.dtype == jnp.float32
    assert any(len(h.after) > CAPACITY for h in cases)
    for row, h, w in zip(np.asarray(got), cases, weights, strict=True):
        expected = oracle.components(name, h, w)
        assert set(expected) == set(SETS[name].NAMES)
        ordered = [expected[key] for key in SETS[name].NAMES]
        np.testing.assert_allclose(row, ordered, rtol=1e-4, atol=3e-3)


@pytest.mark.parametrize("name", SETS)
def test_defaults_are_those_described(name: str):
    weights = registry.weights_of(name)
    assert dataclasses.asdict(weights) == pytest.approx(oracle.DEFAULTS[name])
    assert set(SETS[name].NAMES) <= set(oracle.DEFAULTS[name])


EPISODE, ROOMY = 24, 64


def climb(columns: int, slope: str, base: str, delta: float) -> dict[str, float]:
    """Components of a step in which a node in each column has a child `columns` to the right."""
    nodes = [Node(x + 0.5, 200.0, None, 0) for x in range(NODES)]
    h = dataclasses.replace(
        random_happening(np.random.default_rng(0), 0),
        nodes=nodes,
        gone=[],
        births={node: (node.x + columns, 200.0) for node in nodes},
        ground=Ground(False, float(slope), float(base), 600.0),
        delta=delta,
        ending=None,
    )
    weights = registry.weights_of("combined", spawn=1.0, shaping_spawn=1.0, shaping_discount=0.0)
    values = COMPONENTS(weights, step_of(h, False, capacity=len(nodes)))
    return dict(zip(SETS["combined"].NAMES, values.tolist(), strict=True))


@pytest.mark.parametrize(("slope", "base", "delta"), [("0.05", "1", "0.5"), ("0.1", "0.7", "2.5")])
def test_rounding_does_not_decide_what_counts_as_stiffer(slope: str, base: str, delta: str):
    """The gain of each column is `delta` itself, of which float32 falls short in 9 or 18 of 570."""
    enough = int(Fraction(delta) / Fraction(slope))
    assert climb(enough, slope, base, float(delta))["spawn"] == pytest.approx(2.5 * NODES)
    assert climb(enough - 1, slope, base, float(delta))["spawn"] == pytest.approx(-NODES)
    for column in range(100, 110):
        level = Fraction(slope) * column + Fraction(base)
        stiff = climb(1, slope, base, float(level))["shaping_spawn"]
        assert stiff == -(NODES - column)


@jax.jit
def live(colony, marks, deleted, child_x, child_y, law, time, critical, delay, ending):
    """One step of an episode: marks and lab marks before it, shaping, what comes after it."""
    width, height = jnp.float32(600), jnp.float32(HEIGHT)
    ground = intensity(law, jnp.zeros((0, 0)), colony.x, colony.y, width, height)
    marks = marking.update_marks(marks, colony, ground, time, critical)
    lab = marking.deletion_rule(colony, ground, time, critical, delay)
    growth = rules.grow(colony, deleted, child_x, child_y)
    no = jnp.zeros((), bool)
    step = Step(
        growth=growth,
        law=law,
        field=jnp.zeros((0, 0)),
        width=width,
        height=height,
        time=time,
        critical_nodes=critical,
        delay=delay,
        delta_intensity=jnp.float32(2.5),
        max_steps=jnp.int32(100),
        milestones=jnp.zeros(4, bool),
        ending=Ending(no, no, ending, no),
    )
    weights = SETS["distance"](
        shaping_delete=1.0, shaping_centroid=1.0, shaping_spawn=1.0, shaping_discount=0.95
    )
    shaping = weights.components(step)[-3:]
    colony = rules.next_colony(growth, time + 1)
    return colony, marks, marking.inherit(marks, growth), lab, shaping


def episode(rng, critical: float, delay: int, terminated: bool):
    """A colony that grows and shrinks by chance: in JAX and in the oracle, step by step."""
    ground = Ground(False, 0.1, 1.0, 600.0)
    nodes = random_nodes(rng, 5, 0, 40.0)
    for node in nodes:
        node.mark, node.marked_at = None, 0
    colony, marks = colony_of(nodes, ROOMY), marking.no_marks(ROOMY)
    for time in range(EPISODE):
        oracle.mark_nodes(nodes, ground, time, critical)
        ratio = 0.6 if len(nodes) > 20 else 0.45
        gone = [node for node in nodes if rng.random() < ratio and node is not nodes[-1]]
        reach = rng.uniform((0, -5), (12, 5), (len(nodes), 2))
        births = {
            node: (float(np.float32(node.x + dx)), float(np.float32(node.y + dy)))
            for node, (dx, dy) in zip(nodes, reach, strict=True)
        }
        ending = "retreated" if terminated and time == EPISODE - 1 else None
        settings = (critical, delay, 2.5, 100, [False] * 4, ending)
        h = Happening(nodes, gone, births, ground, HEIGHT, time, *settings)
        growth = growth_of(h, ROOMY)
        law, numbers = law_of(ground), (jnp.int32(time), jnp.float32(critical), jnp.int32(delay))
        colony, updated_marks, marks, lab, shaping = live(
            *(colony, marks, ~growth.survives, growth.child_x, growth.child_y, law),
            *(*numbers, jnp.asarray(ending is not None)),
        )
        yield h, *jax.device_get((updated_marks, lab, shaping))
        nodes = h.after


@pytest.mark.parametrize(("critical", "delay"), [(6.0, 3), (12.0, 0)])
def test_marks_follow_their_nodes_through_an_episode(critical: float, delay: int):
    observed_cases, began = set(), []
    for h, marks, lab, _ in episode(np.random.default_rng(3), critical, delay, False):
        number = len(h.nodes)
        assert list(marks.mark[:number]) == [MARKS.index(node.mark) for node in h.nodes]
        assert list(marks.marked_at[:number]) == [node.marked_at for node in h.nodes]
        assert list(marks.unmarked_for[:number]) == [node.unmarked_for for node in h.nodes]
        for plane in (marks.mark, marks.marked_at, marks.unmarked_for):
            assert not np.any(plane[number:])
        expected = oracle.deletion_rule(h.nodes, h.ground, h.time, critical, delay)
        assert list(lab) == [n in expected for n in h.nodes] + [False] * (ROOMY - number)
        observed_cases |= {node.mark for node in h.nodes} | {bool(expected)}
        began.append((bool(marks.is_first), number > critical))
    assert observed_cases == {None, "delete", "keep", True, False}
    crowded = [is_crowded for _, is_crowded in began]
    assert [first for first, _ in began].index(True) == crowded.index(True)
    assert sum(first for first, _ in began) == 1


@pytest.mark.parametrize("terminated", [True, False])
def test_shaping_telescopes(terminated: bool):
    """Discounted and summed: Φ of the end, which is 0 if that is one for good, less Φ(start)."""
    happenings, summed = [], np.zeros(3)
    for h, _, _, shaping in episode(np.random.default_rng(4), 6.0, 3, terminated):
        happenings.append(h)
        summed += 0.95**h.time * shaping
    first, last = happenings[0], happenings[-1]

    def potentials(nodes, time):
        marked = len(oracle.deletion_rule(nodes, first.ground, time, 6.0, 3))
        stiff = sum(first.ground(node) >= 2.5 for node in nodes)
        return np.array([0.25 * len(nodes) - 1.25 * marked, oracle.centroid(nodes) - 599, stiff])

    end = np.zeros(3) if terminated else potentials(last.after, EPISODE)
    expected = 0.95**EPISODE * end - potentials(first.nodes, 0)
    np.testing.assert_allclose(summed, expected, atol=5e-3)


def test_weights_are_numbers_to_the_compiler():
    step = step_of(random_happening(np.random.default_rng(5), 9), False)
    traces = []

    @jax.jit
    def reward(weights, step):
        traces.append(weights)
        return weights.components(step).sum()

    plain, dear = (reward(registry.weights_of("distance", step=cost), step) for cost in (0.0, -3.0))
    assert len(traces) == 1
    assert float(plain - dear) == pytest.approx(3.0, abs=1e-4)


def test_of_several_endings_the_first_counts():
    """All sixteen cases, against the order of the list in `ENDINGS`."""
    names = [name for name in ENDINGS if name]
    for flags in itertools.product([False, True], repeat=4):
        conditions = {name: jnp.asarray(flag) for name, flag in zip(names, flags, strict=True)}
        ending = ending_of(**conditions)
        expected = next((name for name, flag in zip(names, flags, strict=True) if flag), None)
        assert [name for name in names if getattr(ending, name)] == [expected] * any(flags)
        assert bool(is_terminated(ending)) == any(flags)


def test_each_ending_has_its_price():
    step = step_of(random_happening(np.random.default_rng(6), 9), False)
    weights = registry.weights_of("distance", crowded=-150.0, retreated=-100.0)
    components = jax.jit(weights.components)

    def price(name):
        flags = {other: jnp.asarray(other == name) for other in Ending._fields}
        return float(components(step._replace(ending=ending_of(**flags)))[2])

    assert [price(name) for name in ("crowded", "retreated", "arrived")] == [-3.0, -2.0, 10.0]
    assert price(None) == 0.0


def test_the_state_machine_needs_marks():
    step = step_of(random_happening(np.random.default_rng(7), 3), False)
    with pytest.raises(ValueError, match=r"no marks; state_machine needs .*marking\.update_marks"):
        jax.eval_shape(registry.weights_of("state_machine").components, step)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("norml", {}, "reward set 'norml' is unknown; expected one of normal, distance"),
        ("distance", {"hull": 1.0}, "reward 'hull' is unknown to the set 'distance'; .*arrived"),
        ("normal", {"hull": math.nan}, "reward 'hull' is nan; expected a finite number"),
        ("normal", {"empty": -math.inf}, "reward 'empty' is -inf; expected a finite number"),
        ("normal", {"hull": "much"}, "reward 'hull' is much; expected a number"),
        ("distance", {"step": np.array([0, math.nan])}, "reward 'step' is an array"),
        (
            "three_part",
            {"distance_scale": 0.0},
            "'distance_scale' is 0.0; expected .* above 0",
        ),
        ("state_machine", {"bound": -1.0}, "'bound' is -1.0; expected a number at least 0"),
        (
            "normal",
            {"shaping_discount": 1.5},
            "'shaping_discount' is 1.5; .* at most 1",
        ),
    ],
)
def test_bad_weights_are_refused(name: str, changes: dict, message: str):
    with pytest.raises(ValueError, match=message) as refusal:
        registry.weights_of(name, **changes)
    assert "\n" not in str(refusal.value)


def test_weights_of_another_set_are_refused():
    with pytest.raises(ValueError, match="'distance' takes Distance: make them with weights_of"):
        registry.check("distance", registry.weights_of("normal"))


@pytest.mark.parametrize("delay", [0.0, 0.5, 2.5, 3.0, 4.3, 7.0])
def test_a_missed_deadline_costs_once_also_after_part_of_a_step(delay):
    marked_at, window = 4, max(1, round(0.3 * delay))
    on_time = [time for time in range(40) if abs(time - marked_at - delay) <= window]
    marks = marking.no_marks(1)
    marks = dataclasses.replace(
        marks, mark=marks.mark + marking.DELETE, marked_at=marks.marked_at + marked_at
    )

    def facts(time: int) -> Any:
        step = SimpleNamespace(marks=marks, time=jnp.int32(time), delay=delay)
        return SimpleNamespace(step=step, survives=jnp.ones(1, bool))

    missed = [time for time in range(40) if state_machine.deadline({}, facts(time))]
    assert missed == [max(on_time)]
