"""Delays of inputs: found in a simulated recording, and what a fitted model does with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.recordings.systems import record
from train.vector_field import fitted, program
from train.vector_field.config import Config
from train.vector_field.data.recordings import join_episodes
from train.vector_field.presets import PRESETS
from train.vector_field.recorded import dynamics_fit, dynamics_problem
from train.vector_field.recorded.choices import delays

DELAY = 3
RNG = np.random.default_rng(0)


def write(path: Path) -> str:
    """A damped rotation, with inputs that are given three steps before they act, and idle ones."""
    recording = record("linear", 0, small=True)
    u = np.zeros((*recording.u.shape[:2], 2))
    u[:, :-DELAY, 0] = np.nan_to_num(recording.u[:, DELAY:, 0])
    u[..., 1] = RNG.normal(size=u.shape[:2])
    np.savez(path, y=recording.y, u=np.where(np.isnan(recording.u), np.nan, u))
    return str(path)


def config_of(file: str, **settings) -> Config:
    default = PRESETS["recordings"].config
    linear = replace(default.state_space, dims=2, field="linear", prior=0.3, steps=20, **settings)
    run = replace(default.run, total_steps=20, chunk_steps=20)
    return replace(default, data=(file,), state_space=linear, run=run)


@pytest.mark.slow
def test_the_delay_of_each_input_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(delays, "STEPS", 20)  # the fit begins at the largest likelihood
    monkeypatch.setattr(delays, "MORE_STEPS", 20)
    config = config_of(write(tmp_path / "late.npz"), most_delay=5)
    with pytest.raises(ValueError, match="are chosen by the data first"):
        dynamics_problem.problem_of(config)
    completed = dynamics_fit.complete(config)
    assert completed.state_space.delay == (DELAY, 0)
    assert not delays.is_open(completed)
    assert dynamics_fit.complete(completed) is completed


def test_an_input_that_never_changes_has_no_delay():
    data = join_episodes([(RNG.normal(size=(n, 3)), np.full((n, 1), 5.0)) for n in (40, 30)])
    delay, _ = delays.choose(config_of("no.npz", most_delay=4), data, pytest.fail)
    assert delay == (0,)


def test_the_likeliest_delay_must_be_surely_likelier_than_none():
    gains = np.array([0, 1, 3, 2])[:, None]
    assert delays.likeliest(np.tile(gains, 10) / 10) == 0  # 3 nats in all
    assert delays.likeliest(np.tile(gains, 10)) == 2
    assert delays.likeliest(-np.tile(gains, 10)) == 0
    failed = np.tile(gains, 10) * 1.0
    failed[3] = np.nan
    assert delays.likeliest(failed) == 2
    failed[0] = np.nan
    assert delays.likeliest(failed) == 2


@pytest.mark.parametrize(("few", "many", "expected"), [(2, 8, 8), (0, 6, 6), (2, 2, 2), (0, 1, 1)])
def test_a_delay_half_a_period_off_is_told_from_the_true_one(monkeypatch, few, many, expected):
    """A rhythm of 12 steps fits as well 6 steps later: few steps favour one, many the other."""
    tried = []

    def likelihoods(config, training, candidates, steps):
        tried.append(candidates)
        delay = np.array([x for (x,) in candidates])
        favoured = few if steps == delays.STEPS else many
        near = 100 * np.cos(2 * np.pi / 6 * (delay - favoured)) - 7 * (delay != favoured)
        return np.repeat(near[:, None] / 40, 40, axis=1)

    monkeypatch.setattr(delays, "likelihoods_of", likelihoods)
    config = replace(PRESETS["recordings"].config.state_space, most_delay=10)
    config = replace(PRESETS["recordings"].config, data=("late.npz",), state_space=config)
    data = join_episodes([(np.zeros((40, 1)), np.arange(40.0)[:, None])])
    assert delays.choose(config, data, print)[0] == (expected,)
    assert len(tried[1]) < len(tried[0])


def test_an_input_that_makes_no_sure_difference_has_no_delay_to_decide_on():
    assert delays.still_likely(np.array([0.0, 2, 1, 4, 2])) == [0]
    assert delays.still_likely(np.array([0.0, 2, 60, 40, 20, 35, 10])) == [0, 1, 2, 3, 4, 5, 6]
    assert delays.still_likely(np.array([0.0, 2, 60, 9, 0, 9, 0])) == [0, 1, 2, 3]
    assert delays.still_likely(np.array([0, 2, np.nan, 90, 3])) == [0, 2, 3, 4]
    assert delays.still_likely(np.full(3, np.nan)) == [0]


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    """`(file, run)` of a fit in which inputs act late."""
    directory = tmp_path_factory.mktemp("late")
    file = write(directory / "late.npz")
    config = config_of(file, delay=(DELAY,))
    config = replace(config, run=replace(config.run, directory=str(directory / "run")))
    return file, program.train(config, "recordings")


@pytest.mark.slow
def test_a_fitted_model_takes_inputs_as_they_were_given(late):
    """Each function sees what a model without a delay sees of inputs that come later."""
    file, result = late
    model = fitted.load(result.directory)
    with np.load(file) as arrays:
        y, u = arrays["y"][0, :60], arrays["u"][0, :60].astype(np.float32)
    states = np.asarray(model.filter(y, u).mean)
    for t in range(1, 50):  # a prediction from the state before, without an observation
        gap = np.where(np.arange(60)[:, None] < t, y, np.nan)
        acting = u[max(t - 1 - DELAY, 0)]
        alone = np.asarray(model.filter(gap, u).mean)[t]
        if t % 10 == 1:
            np.testing.assert_allclose(
                alone, model.predict(states[t - 1], acting[None])[0][1], 1e-3
            )
    # Inputs that are still on their way at the end have a part in forecasts, later ones have none.
    ahead = np.asarray(model.forecast(y, u, 6))
    y_longer, u_longer = (np.pad(x, ((0, 9), (0, 0))) for x in (y, u))
    longer = np.asarray(model.forecast(y_longer, u_longer, 6))
    np.testing.assert_allclose(ahead[-1, 0], longer[59, 0], rtol=0.2, atol=0.2)
    pushed = u.copy()
    pushed[-2, 0] += 50
    change = np.abs(np.asarray(model.forecast(y, pushed, 6)) - ahead)[-1].max(-1)
    assert change[:DELAY].max() < 1e-3 < change[DELAY]


@pytest.mark.slow
def test_advice_begins_where_the_next_input_acts(late):
    file, result = late
    model = fitted.load(result.directory)
    with np.load(file) as arrays:
        length = int((~np.isnan(arrays["u"][-1]).all(-1)).sum())
        y, u = (arrays[name][-1, :length] for name in ("y", "u"))
    states = np.asarray(model.filter(y, u).mean)
    expected = model.predict(states[-1], u[-1 - DELAY : -1])[0][-1]
    assert model.now is not None
    np.testing.assert_allclose(model.now.z, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.now.u, u[-2], rtol=1e-6)
