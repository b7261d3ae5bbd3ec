"""The rules of a search, against slow ones in plain Python."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train import tiny
from train.host.errors import UsageError
from train.host.training import Config
from train.sweep.plan import Interval
from train.sweep.search import rules, schedule, slots

RANGES = {"a": Interval(1e-4, 1e-1, log=True), "b": Interval(0.5, 0.9, log=False)}
SEED = 100


def make_slots(count: int, candidates: int = 40, rungs: int = 1) -> rules.Slots:
    numbers = {"a": [0.01] * count, "b": list(np.linspace(0.5, 0.9, count))}
    return rules.begin(numbers, candidates, rungs, jax.random.key(3))


def some_scores(rng: np.random.Generator, count: int) -> np.ndarray:
    """Scores of which some are equal, some unknown, and some not finite."""
    scores = rng.integers(0, 6, count).astype(np.float32)
    kind = rng.uniform(size=count)
    return np.where(kind < 0.1, -np.inf, np.where(kind < 0.2, np.nan, scores)).astype(np.float32)


class SlowHalving:
    """Candidates as dicts, and a list of the scores at each rung."""

    def __init__(self, count: int, rungs: list[int], reduction: int):
        self.rungs, self.reduction, self.count = rungs, reduction, count
        self.scores: dict[int, dict[int, float]] = {age: {} for age in rungs}  # candidate -> score
        self.candidates = list(range(count))

    def replace(self, scores: np.ndarray, ages: list[int]) -> list[bool]:
        for m, score in enumerate(scores):
            if ages[m] in self.rungs and math.isfinite(score):
                self.scores[ages[m]][self.candidates[m]] = score
        is_replaced = [self.makes_way(m, float(scores[m]), ages[m]) for m in range(self.count)]
        self.candidates = [
            x + self.count * y for x, y in zip(self.candidates, is_replaced, strict=True)
        ]
        return is_replaced

    def makes_way(self, m: int, score: float, age: int) -> bool:
        if score == -math.inf or age >= self.rungs[-1]:
            return True
        if age not in self.rungs or math.isnan(score):
            return False
        table = self.scores[age]
        best = sorted(table, key=lambda candidate: (-table[candidate], candidate))
        return self.candidates[m] not in best[: max(1, len(best) // self.reduction)]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("count", "reduction"), [(1, 2), (5, 2), (7, 3), (16, 3)])
def test_halving_is_that_of_plain_python(count, reduction):
    rungs = [2, 2 * reduction, 2 * reduction**2, 25]
    rule = jax.jit(rules.halving(RANGES, rungs, reduction, SEED))
    slow, rng = SlowHalving(count, rungs, reduction), np.random.default_rng(count)
    state, ages = make_slots(count, rungs=len(rungs)), np.zeros(count, np.int32)
    for _ in range(39):
        ages += 1
        scores = some_scores(rng, count)
        before = state
        state, replacement = rule(state, jnp.asarray(scores), jnp.asarray(ages))
        expected = np.array(slow.replace(scores, ages.tolist()))
        assert replacement.fresh.tolist() == expected.tolist()
        assert replacement.source.tolist() == list(range(count))
        assert state.candidate.tolist() == slow.candidates
        assert replacement.seeds.tolist() == [SEED + x for x in slow.candidates]
        for name, (low, high, _) in RANGES.items():
            new, old = np.asarray(state.numbers[name]), np.asarray(before.numbers[name])
            assert (new[~expected] == old[~expected]).all()
            assert (new[expected] != old[expected]).all()
            assert ((np.float32(low) <= new) & (new <= np.float32(high))).all()
        ages[expected] = 0
    table = np.asarray(state.scores)  # [M, C, R]
    expected_scores = {
        (candidate, age): score for age in rungs for candidate, score in slow.scores[age].items()
    }
    recorded_scores = {
        (m + count * c, rungs[r]): table[m, c, r] for m, c, r in np.argwhere(~np.isnan(table))
    }
    assert recorded_scores == expected_scores


def exchanges(scores: np.ndarray, ages: np.ndarray, period: int, budget: int) -> dict[int, set]:
    """The slots that copy, each with the ones that it may copy."""
    scored_slots = [m for m in range(len(scores)) if math.isfinite(scores[m])]
    order = sorted(scored_slots, key=lambda m: (-scores[m], m))
    part = min(max(len(order) // 5, 1), len(order) // 2)
    best, worst = set(order[: max(part, 1)]), order[len(order) - part :]
    due = [m for m in worst if ages[m] % period == 0 and ages[m] < budget]
    return {m: best for m in [*due, *np.flatnonzero(scores == -np.inf).tolist()] if best}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("count", [2, 5, 12, 30])
def test_population_is_that_of_plain_python(count):
    period, budget = 3, 30
    rule = jax.jit(rules.population(RANGES, period, budget, SEED))
    rng, state = np.random.default_rng(count), make_slots(count)
    ages = rng.integers(0, 4, count).astype(np.int32)
    sources = set()
    for _ in range(32):
        ages += 1
        scores, before = some_scores(rng, count), state
        state, replacement = rule(state, jnp.asarray(scores), jnp.asarray(ages))
        allowed = exchanges(scores, ages, period, budget)
        source = np.asarray(replacement.source)
        nobody = not np.isfinite(scores).any()
        assert replacement.fresh.tolist() == [bool(nobody and x == -np.inf) for x in scores]
        for m in range(count):
            if m not in allowed:
                assert source[m] == m
                continue
            assert source[m] in allowed[m]
            sources |= {(m, int(source[m]))}
            assert int(state.candidate[m]) == int(before.candidate[m]) + count
            assert int(state.parent[m]) == int(before.candidate[source[m]])
        is_same = (source == np.arange(count)) & ~np.asarray(replacement.fresh)
        for name, x in state.numbers.items():
            low, high, _ = RANGES[name]
            assert (np.asarray(x)[is_same] == np.asarray(before.numbers[name])[is_same]).all()
            assert (np.float32(low) <= x).all()
            assert (x <= np.float32(high)).all()
    assert len(sources) > count or count == 2


def test_copies_multiply_three_quarters_of_the_numbers():
    keys = jax.random.split(jax.random.key(0), 4000)
    ranges = {"a": Interval(1.0, 100.0, log=True), "b": Interval(0.0, 1.0, log=False)}
    numbers = {"a": jnp.float32(10.0), "b": jnp.float32(0.9)}
    copies = jax.vmap(lambda key: rules.perturb(ranges, key, numbers))(keys)
    a, b = np.asarray(copies["a"]), np.asarray(copies["b"])
    deviation = 5 * math.sqrt(0.25 * 0.75 / 4000)  # 5 standard errors
    for factor in (8.0, 12.5):
        assert np.isclose(a, factor).mean() == pytest.approx(0.375, abs=deviation)
    assert (b == 1.0).mean() == pytest.approx(0.375, abs=deviation)  # 1.125 is beyond the range
    resampled = a[~np.isclose(a, 8.0) & ~np.isclose(a, 12.5)]
    assert (resampled < 10).mean() == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(len(resampled)))


def test_logarithms_are_uniform():
    keys = jax.random.split(jax.random.key(1), 4000)
    samples = jax.vmap(partial(rules.draw, RANGES))(keys)
    share = (np.log(np.asarray(samples["a"])) - math.log(1e-4)) / math.log(1e3)
    for values in (share, (np.asarray(samples["b"]) - 0.5) / 0.4):
        ordered = np.sort(values)
        distance = np.abs(ordered - np.arange(4000) / 4000).max()
        assert distance < 1.95 / math.sqrt(4000)  # Kolmogorov and Smirnov, 0.1 %


@pytest.fixture(scope="module")
def trained_slots():
    """`init` and four slots of the tiny training after three updates."""
    make = lambda numbers: tiny.make_training(
        tiny.Config(agent=tiny.AgentConfig(learning_rate=numbers["a"]))
    )
    kind = type(jax.eval_shape(tiny.make_training(tiny.Config()).init, jax.random.key(0)))
    init, update = slots.slot_functions(make, kind)
    state = jax.vmap(init)(jax.random.split(jax.random.key(5), 4), make_slots(4))
    for _ in range(3):
        state, _ = jax.jit(jax.vmap(update))(state)
    return init, state


@pytest.mark.slow
def test_states_are_kept_copied_and_begun_anew(trained_slots):
    init, state = trained_slots
    numbers = {"a": jnp.array([0.1, 0.2, 0.3, 0.4]), "b": state.slot.numbers["b"]}
    fresh = jnp.array([False, True, False, False])
    seeds = jnp.array([7, 8, 9, 10], jnp.int32)
    source = jnp.array([0, 1, 0, 3], jnp.int32)
    replacement = rules.Replacement(source, fresh, numbers, seeds)
    after = jax.jit(slots.make_replace(init))(state, replacement)
    one = lambda tree, m: jax.tree.map(lambda x: plain(x)[m], tree)
    assert_equal(one(after.agent, 0), one(state.agent, 0))
    assert_equal(one(after.agent, 2), one(state.agent, 0))
    assert_equal(one(after.rest, 2), one(state.rest, 0))
    assert_equal(one(after._replace(slot=()), 3), one(state._replace(slot=()), 3))
    begun_key = jax.random.split(jax.random.key(8))[0]
    alone = init(begun_key, jax.tree.map(lambda x: x[1], state.slot))
    assert_equal(one(after.agent, 1), jax.tree.map(plain, alone.agent))
    assert after.age.tolist() == [3, 0, 3, 3]
    assert plain(after.key)[2].tolist() != plain(state.key)[0].tolist()
    assert after.slot.numbers["a"].tolist() == numbers["a"].tolist()


def plain(x: jax.Array) -> np.ndarray:
    is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(jax.random.clone(x)) if is_key else x)


def assert_equal(one, other) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


class TestSchedule:
    @pytest.mark.parametrize("whole", [20, 977, 1000, 12_345])
    @pytest.mark.parametrize("chunk", [1, 7, 100, 5000])
    @pytest.mark.parametrize("rung", [None, 1, 10, 123])
    def test_comparisons_fall_on_whole_chunks_and_the_budget_hardly_grows(self, whole, chunk, rung):
        training = tiny.make_training(tiny.Config())
        per = training.steps_per_update
        run = Config(total_steps=whole * per, chunk_steps=chunk * per)
        if rung and rung * 1.5 > whole:
            return
        timetable = schedule.make(training, run, rung and rung * per, 8, 4)
        assert timetable.period % timetable.chunk == timetable.budget % timetable.period == 0
        assert timetable.chunk <= chunk
        assert timetable.total == 4 * timetable.budget
        assert whole <= timetable.budget <= 1.2 * whole
        rungs = timetable.rungs(3)
        assert rungs == sorted(set(rungs))
        assert rungs[-1] == timetable.budget
        assert all(age % timetable.chunk == 0 for age in rungs)

    def test_a_rung_beyond_half_of_the_budget_is_refused(self):
        training = tiny.make_training(tiny.Config())
        with pytest.raises(UsageError, match="--rung 1,200 leaves nothing to compare"):
            schedule.make(training, Config(total_steps=1500), 1200, 8, 4)
