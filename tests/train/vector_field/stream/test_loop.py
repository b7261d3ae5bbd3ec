"""The closed loop: what it learns, what it gives, and how it goes on after all kinds of trouble."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import checkpoint
from jaxrl.dynamics.learners import state_space_learner
from jaxrl.dynamics.state_space.online import choice
from tests.train.vector_field.stream.test_guard import worst
from train.host.errors import UsageError
from train.vector_field import fitted
from train.vector_field.stream import settings
from train.vector_field.stream.journal import Journal
from train.vector_field.stream.learning import live
from train.vector_field.stream.learning.learner import (
    PromptLearner,
    Snapshot,
    compiled_update,
    first_state,
    in_units,
    rollout_of,
)
from train.vector_field.stream.loop import LONGEST_GAP, BadSample, ClosedLoop, open_loop
from train.vector_field.stream.settings import Options

OPTIONS = Options(
    channels=6,
    inputs=1,
    bound=(2.0,),
    rate=(0.8,),
    charge=6.0,
    window=10,
    step_time=0.5,
    fields=("polynomial",),
    policy="bang7",
    first_fit=25,
    capacity=60,
    save_every=20,
)
MIXTURE = np.random.default_rng(0).normal(size=(6, 2))


class Oscillator:
    """A damped rotation that an input pushes, seen in six noisy channels, some of them missing."""

    def __init__(self):
        self.z, self.random = np.array([1.0, 0.0]), np.random.default_rng(1)

    def look(self) -> np.ndarray:
        y = MIXTURE @ self.z + 0.1 * self.random.normal(size=6)
        y[self.random.uniform(size=6) < 0.05] = np.nan
        return y

    def push(self, u) -> None:
        turn = np.array([[0.98, -0.2], [0.2, 0.98]])
        self.z = turn @ self.z / max(1.0, np.hypot(*self.z)) + [0.15 * u[0], 0.0]


class LateLearner(PromptLearner):
    """Tells of each fit only so many samples later, as one that takes its time."""

    delay = 13

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._later: list[tuple[int, Snapshot]] = []

    def poll(self) -> Snapshot | None:
        if (learned := super().poll()) is not None:
            self._later.append((learned.count + self.delay, learned))
        if self._later and self._later[0][0] <= self._batch.count:
            return self._later.pop(0)[1]
        return None


def play(loop: ClosedLoop, samples: int, gap_at: int = -1) -> list:
    """Plays so many samples; at one of them three numbers are left out. What came back."""
    world, inputs = Oscillator(), []
    for _ in range(samples):
        number = loop.next_number + 3 * (loop.next_number == gap_at)
        inputs.append(loop.observe(world.look(), number))
        world.push(inputs[-1])
        loop.settle()
    return inputs


def displacements(knowledge) -> np.ndarray:
    """The field at some places, in the coordinates of the last fit."""
    places = jnp.asarray(np.random.default_rng(2).uniform(-2, 2, (40, 2)), jnp.float32)
    models = settings.problem(OPTIONS).models
    return np.asarray(choice.displace(models, knowledge.choice, places))


def displacements_at(loop: ClosedLoop, places: np.ndarray) -> np.ndarray:
    choices = loop.problem.models, loop.knowledge.choice
    return np.asarray(choice.displace(*choices, jnp.asarray(places)))


def batch_state(directory) -> state_space_learner.State:
    """What the batch program makes of the samples on disk, in one scan, as its loop does."""
    problem = settings.problem(OPTIONS)
    agent = state_space_learner.make(problem.config, problem.models, problem.constants)
    y, u = Journal(directory, 6, 1).rows(0, 10**6)

    def step(state, sample):
        y, u = sample
        key = jax.random.fold_in(jax.random.key(OPTIONS.seed), state.count)
        return agent.update(state, rollout_of(y, u, 2), key)[0], None

    scan = jax.jit(lambda state, samples: jax.lax.scan(step, state, samples)[0])
    return scan(first_state(problem, OPTIONS), (jnp.asarray(y), jnp.asarray(in_units(problem, u))))


def outputs(directory) -> list:
    return [tuple(x) for x in Journal(directory, 6, 1).rows(0, 10**6).u.tolist()]


@pytest.fixture(scope="module")
def long_loop(tmp_path_factory):
    """A loop after 70 samples with a gap, still open: fits after 25, 32, 40 and 50 of them."""
    options = replace(OPTIONS, directory=str(tmp_path_factory.mktemp("loop") / "stream"))
    with open_loop(options, waits_for_fits=True) as loop:
        inputs = play(loop, 67, gap_at=30)
        yield loop, inputs


@pytest.mark.slow
def test_the_field_is_that_of_the_batch_program(long_loop):
    loop, _ = long_loop
    state = batch_state(loop.directory)
    assert int(state.count) == loop.next_number == 70
    assert int(state.params.fits) == int(loop.knowledge.fits) == 4
    expected = displacements(state.params)
    np.testing.assert_allclose(displacements(loop.knowledge), expected, rtol=1e-3, atol=1e-4)
    # Bit for bit, where the same program takes one sample after the other.
    state, update = first_state(loop.problem, OPTIONS), compiled_update(settings.learning(OPTIONS))
    y, u = Journal(loop.directory, 6, 1).rows(0, 70)
    for sample in zip(y, in_units(loop.problem, u), strict=True):
        state = update(state, *sample)
    learned = loop._learner.finish().knowledge
    jax.tree.map(np.testing.assert_array_equal, state.params, learned)
    assert np.abs(expected).max() > 0.05


@pytest.mark.slow
def test_a_fit_that_comes_late_has_learned_from_all_samples_in_the_end(long_loop, tmp_path):
    del long_loop  # which has compiled
    options, directory = settings.begin(replace(OPTIONS, directory=str(tmp_path / "stream")))
    loop = ClosedLoop(options, directory, LateLearner(options, directory))
    play(loop, 50)
    assert int(loop.knowledge.fits) == 2  # the third, after 40 samples, is told after 53
    play(loop, 10)
    assert int(loop.knowledge.fits) == 3
    loop.finish()
    state = batch_state(directory)
    assert int(loop.knowledge.fits) == int(state.params.fits) == 4
    np.testing.assert_allclose(
        displacements(loop.knowledge), displacements(state.params), rtol=1e-3, atol=1e-4
    )
    loop.close()


@pytest.mark.slow
def test_nothing_is_compiled_after_the_start(long_loop):
    del long_loop
    programs = live.programs(OPTIONS)
    for program in (programs.respond, programs.absorb, programs.remember):
        assert program.__wrapped__._cache_size() == 1
    assert compiled_update(settings.learning(OPTIONS)).__wrapped__._cache_size() == 1
    # Nor for what another process has learned, whose types are those of NumPy.
    state = first_state(settings.problem(OPTIONS), OPTIONS)
    assert not any(x.weak_type for x in jax.tree.leaves(state))


@pytest.mark.slow
def test_what_went_out_keeps_to_all_limits(long_loop):
    loop, inputs = long_loop
    sent = outputs(loop.directory)
    assert [*sent[:30], *sent[33:]] == inputs
    assert max(worst(loop.limits, sent).values()) <= 0
    assert max(abs(u[0]) for u in sent) > 0.8  # they are not all quiet
    missing = np.isnan(Journal(loop.directory, 6, 1).rows(30, 33).y).all()
    assert missing
    assert np.isfinite(Journal(loop.directory, 6, 1).rows(33, 34).y).any()


@pytest.mark.slow
def test_the_next_observation_is_foreseen(long_loop):
    loop, _ = long_loop
    assert loop.scores.r2 > 0.5


@pytest.mark.slow
def test_what_was_learned_is_a_model_in_units_of_the_user(long_loop):
    loop, _ = long_loop
    loop.finish()
    model = fitted.load(loop.directory)
    y, u = Journal(loop.directory, 6, 1).rows(0, 70)
    states = np.asarray(model.filter(y, u).mean)
    assert model.now is not None
    np.testing.assert_array_equal(states[-1], model.now.z)
    expected = displacements_at(loop, states) / 0.5
    np.testing.assert_allclose(model.velocity(states), expected, rtol=1e-4, atol=1e-5)
    ahead, errors = np.asarray(model.forecast(y, u, 1)), {}
    for name, guess in (("model", ahead[30:-1, 1]), ("mean", np.nanmean(y[30:], axis=0)[None])):
        errors[name] = np.nanmean((y[31:] - guess) ** 2)
    assert errors["model"] < 0.3 * errors["mean"]
    path, _ = model.predict(states[-1], np.full((1, 1), 2.0, np.float32))
    still, _ = model.predict(states[-1], np.zeros((1, 1), np.float32))
    effect = loop.knowledge.choice.candidates[0].posterior.params.effect[:, 0]
    np.testing.assert_allclose(path[1] - still[1], effect, atol=1e-5)  # 2 is the largest input
    assert (model.low, model.high, model.dt) == (-2.0, 2.0, 0.5)
    assert model.allowance is not None
    spent = 0.5 * np.abs(u[-len(model.allowance.spent) - 1 : -1, 0])  # all but the newest
    np.testing.assert_allclose(model.allowance.spent, spent, atol=1e-6)
    assert (model.allowance.rate, model.allowance.charge) == (OPTIONS.rate, OPTIONS.charge)
    places = np.stack([states[-1], states[-1] + 20])  # what plans are made with ends before
    spread = partial(choice.covariance, loop.problem.models, loop.knowledge.choice)
    covariances = np.asarray(jax.vmap(spread)(jnp.asarray(places)), float)
    deviations = np.sqrt(np.trace(covariances, axis1=1, axis2=2) / 2) / 0.5
    np.testing.assert_allclose(model.deviation(places), deviations, rtol=1e-3)
    with pytest.raises(UsageError, match="no seed, policy, field or session"):
        fitted.load(loop.directory, policy="myopic")


@pytest.mark.parametrize("value", [1e30, -1e16])
def test_a_sample_that_would_make_the_model_nan_is_refused(value):
    loop: Any = SimpleNamespace(options=OPTIONS)
    with pytest.raises(BadSample, match=r"y holds values up to 1e\+.*, expected at most 1e\+15"):
        ClosedLoop._check(loop, [value, math.nan, 0.0, 0.0, 0.0, 0.0])
    ClosedLoop._check(loop, [1e14] * 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "number", "message"),
    [
        (np.zeros(5), None, r"shape \[5\], expected \[6\]"),
        (np.zeros((1, 6)), None, "shape"),
        (["a"] * 6, None, "no numbers"),
        ([math.inf] * 6, None, "infinity"),
        ([10**400] * 6, None, "no numbers|infinity"),
        (np.zeros(6), 3, "sample 3 is late: expected 70"),
        (np.zeros(6), 71 + LONGEST_GAP, "1,001 ahead of 70"),
    ],
)
def test_what_is_no_sample_is_refused_and_changes_nothing(long_loop, y, number, message):
    loop, _ = long_loop
    before = loop.last_input
    with pytest.raises(BadSample, match=message):
        loop.observe(y, number)
    assert (loop.next_number, loop.last_input) == (70, before)


@pytest.mark.slow
def test_a_restart_goes_on_as_if_there_had_been_none(tmp_path):
    """Killed at any moment: the last row is half written."""
    first = replace(OPTIONS, directory=str(tmp_path / "stream"))
    options, directory = settings.begin(first)
    loop = ClosedLoop(options, directory, PromptLearner(options, directory))
    play(loop, 45)
    loop.close()  # by which nothing is written
    with (directory / "samples.bin").open("ab") as file:
        file.write(b"\0" * 7)
    with open_loop(Options(resume=str(directory)), waits_for_fits=True) as again:
        quiet = again.next_number - 45
        assert 0 <= quiet - abs(outputs(directory)[44][0]) / 0.8 < 2  # as long as it takes
        assert again.last_input == (0.0,)
        play(again, 25 - quiet)
        again.finish()
        assert max(worst(again.limits, outputs(directory)).values()) <= 0
        state = first_state(again.problem, OPTIONS)
        update = compiled_update(settings.learning(OPTIONS))
        y, u = Journal(directory, 6, 1).rows(0, 70)
        for sample in zip(y, in_units(again.problem, u), strict=True):
            state = update(state, *sample)
        jax.tree.map(np.testing.assert_array_equal, state.params, again.knowledge)


def test_settings_are_saved_and_cannot_be_changed_later(tmp_path):
    options, directory = settings.begin(replace(OPTIONS, directory=str(tmp_path / "stream")))
    assert settings.read(directory) == options
    again, same = settings.begin(Options(resume=str(directory), port=1234))
    assert (again, same) == (replace(options, port=1234), directory)
    with pytest.raises(UsageError, match="has settings of its own"):
        settings.begin(Options(resume=str(directory), rate=(0.5,)))
    with pytest.raises(UsageError, match="exists already"):
        settings.begin(replace(OPTIONS, directory=str(directory)))
    with pytest.raises(UsageError, match="no directory of a stream"):
        settings.begin(Options(resume=str(tmp_path)))


def test_a_learner_does_not_go_on_beside_other_samples_than_those_that_it_knows(tmp_path):
    options, directory = settings.begin(replace(OPTIONS, directory=str(tmp_path / "stream")))
    again = lambda: settings.begin(Options(resume=str(directory)))
    journal = Journal(directory, options.channels, options.inputs)
    journal.begin_writing()
    journal.append(np.zeros((3, options.channels)), np.zeros((3, options.inputs)))
    journal.close()
    path = checkpoint.save(directory / "checkpoints", 3, {"x": jnp.zeros(2)}, {})
    again()
    (directory / "samples.bin").write_bytes(b"")
    with pytest.raises(UsageError, match=r"holds 0 of the 3 samples that .* from: put it back"):
        again()
    (path / "state.npz").write_bytes(b"half")
    with pytest.raises(UsageError, match="no checkpoint that can be read: delete"):
        again()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bound": (1.0, 2.0)}, "--bound has 2 numbers, expected 1$"),
        ({"low": (3.0,)}, "the smallest first"),
        ({"low": (0.5,), "charge": 1.0}, "is less than 2.5"),
        ({"policy": "rnd"}, "policy rnd"),
        ({"policy": "d_optimum"}, "unknown"),
        ({"policy": "d_optimal", "plan_every": 50}, "horizon"),
        ({"fields": ()}, "fields"),
        ({"dims": 7}, "more than 6 channels"),
        ({"channels": 0}, "--channels"),
        ({"first_fit": 61}, "--first-fit 61 is more than --capacity 60"),
        ({"policy": "goal", "goal": (1.0, 2.0)}, "goal has 2 numbers"),
        ({"goal": (1.0,)}, "--goal has no effect: it needs --policy goal"),
        ({"plan_every": 3}, "--plan-every has no effect"),
        ({"charge": math.inf}, "--window has no effect: it needs --charge"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_compiled(tmp_path, changes, message):
    options = replace(OPTIONS, directory=str(tmp_path / "stream"), **changes)
    with pytest.raises(UsageError, match=message):
        settings.begin(options)
    assert not (tmp_path / "stream").exists()
