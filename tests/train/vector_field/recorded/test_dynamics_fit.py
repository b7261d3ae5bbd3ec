"""Fits of state-space models to recordings simulated by code that shares nothing with them."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.recordings import AHEAD, fit_truth
from tests.recordings.__main__ import write
from tests.recordings.systems import record
from tests.train.images import assert_drawn
from train.host.running import saved_runs
from train.host.running.session import Session
from train.vector_field import program
from train.vector_field.config import Config, Dynamics, preset_for
from train.vector_field.data import recordings
from train.vector_field.data.files import loading
from train.vector_field.presets import PRESETS
from train.vector_field.recorded import (
    dynamics_fit,
    dynamics_problem,
    prediction_scores,
    state_space,
)

SMALL = Dynamics(field="linear", prior=0.3, steps=100)


def config_of(path: Path, **dynamics) -> Config:
    """A small fit to a file, which leaves nothing open."""
    default = PRESETS["recordings"].config
    run = replace(default.run, total_steps=100, chunk_steps=50, directory=str(path.with_suffix("")))
    settings = replace(SMALL, **dynamics)
    return replace(default, data=(str(path),), state_space=settings, run=run)


@pytest.fixture(scope="module")
def simulated_file(tmp_path_factory):
    """`(simulated system, its file)`."""
    path = tmp_path_factory.mktemp("linear") / "linear.npz"
    recording = record("linear", 0, small=True)
    write(recording, path)
    return recording, path


@pytest.fixture(scope="module")
def linear(simulated_file):
    """`(simulated system, its file, the run of a fit)`."""
    recording, path = simulated_file
    result = program.train(config_of(path, dims=recording.model.dims), "recordings")
    return recording, path, result


@pytest.mark.parametrize(("steps", "lines"), [(100, 0), (200, 1)])
def test_a_fit_whose_run_ends_before_its_steps_is_told(simulated_file, caplog, steps, lines):
    config = config_of(simulated_file[1], dims=1, steps=steps)
    assert dynamics_fit.complete(config) == config
    assert caplog.text.count("--run.total-steps 200 makes them all") == lines
    training = dynamics_fit.make_training(config)
    assert training.ends_after == steps
    run: Any = SimpleNamespace(training=training, settings=replace(config.run, total_steps=150))
    run.most_steps = Session.most_steps.fget(run)  # pyright: ignore[reportOptionalCall]
    assert run.most_steps == min(steps, 150)
    run.fraction = lambda counters: 1 / 3
    assert Session.progress(run, None) == pytest.approx(50 / run.most_steps)  # pyright: ignore


@pytest.mark.slow
def test_a_linear_fit_forecasts_nearly_as_well_as_the_truth(linear):
    recording, _, result = linear
    problem = dynamics_problem.problem_of(saved_runs.load(result.directory).config)
    training = dynamics_fit.make_training(saved_runs.load(result.directory).config)
    assert result.evaluation.content["score"] == training.score.evaluation
    (own,) = result.evaluation.content["seeds"]
    truth = fit_truth(recording.model, problem.held_out, 500)
    true = prediction_scores.score(
        problem.training, problem.held_out, truth, recording.is_count, AHEAD
    )
    # 800 steps leave what was learned from them some hundredths of R² behind.
    assert own["r2"][1] > true.r2[1] - 0.03
    assert own["r2"][10] > true.r2[10] - 0.05
    assert own["nats"] > true.gain - 0.03
    assert all(0.84 < x < 0.96 for x in own["coverage"].values())
    assert own["r2"][1] > result.evaluation.content["baselines"]["persistence"]["r2"][1]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "mean", "input_size"), [(1e-6, 0.0, 100.0), (300.0, 2e3, 1e-3)])
def test_units_of_numbers_and_inputs_do_not_matter(tmp_path, size, mean, input_size):
    """In volts as well as in raw values of a converter, all scores are the same."""
    scores = []
    write(record("mixed", 0, small=True), tmp_path / "mixed.npz")
    with np.load(tmp_path / "mixed.npz") as file:
        arrays = dict(file)
    is_number = ~np.all(np.nan_to_num(arrays["y"]) == np.round(np.nan_to_num(arrays["y"])), (0, 1))
    for name, scale, offset, push in (("one", 1.0, 0.0, 1.0), ("other", size, mean, input_size)):
        y = np.where(is_number, scale * arrays["y"] + offset, arrays["y"])
        np.savez(tmp_path / f"{name}.npz", **{**arrays, "y": y, "u": push * arrays["u"]})
        result = program.train(config_of(tmp_path / f"{name}.npz", dims=2), "recordings")
        assert result.evaluation is not None
        scores.append(result.evaluation.content["seeds"][0])
    one, other = scores
    np.testing.assert_allclose(other["r2"], one["r2"], atol=0.01)
    assert abs(other["nats"] - one["nats"]) < 0.005


@pytest.mark.slow
def test_the_portrait_and_the_scores_are_in_the_record_and_drawn(linear):
    _, _, result = linear
    content = json.loads((result.directory / "eval.json").read_text(encoding="utf-8"))
    portrait = content["seeds"][0]["portrait"]
    assert len(portrait["fixed_points"]) == 1  # of a linear map
    assert "stable" in portrait["fixed_points"][0]["kind"]
    assert not portrait["cycles"]
    assert {"persistence", "arx", "linear_gaussian"} < content["baselines"].keys()
    for name in ("forecasts", "portrait", "channels"):
        assert_drawn(result.directory / f"{name}.png")
    with np.load(result.directory / "recorded.npz") as arrays:
        assert arrays["states"].shape[:2] == arrays["variances"].shape[:2]


@pytest.mark.slow
def test_the_start_of_the_smallest_loss_counts(linear):
    _, _, result = linear
    agent = result.state.agent
    both = np.asarray(agent.fits.params.transition)  # of the state, whatever the data's units
    assert np.isfinite(both).all()
    assert not np.array_equal(both[0], both[1])  # from different first guesses
    assert any(np.array_equal(agent.params.transition, x) for x in both)


def test_channels_of_counts_are_found_and_may_be_overruled(tmp_path):
    recording = record("mixed", 0, small=True)
    path = tmp_path / "mixed.npz"
    write(recording, path)
    data = loading.load(str(path))
    np.testing.assert_array_equal(state_space.count_channels(data, "auto"), recording.is_count)
    assert not state_space.count_channels(data, "gaussian").any()
    with pytest.raises(ValueError, match=r"data are noisy; choose env\.noise gaussian, poisson"):
        state_space.count_channels(data, "none")
    with pytest.raises(ValueError, match="numbers that are not counts"):
        state_space.count_channels(data, "poisson")


def test_counts_of_thousands_are_numbers():
    """One channel has them; another one a few among a thousand, which remain counts."""
    y = np.random.default_rng(0).poisson([5.0, 6000.0, 5.0], (1, 1000, 3)).astype(np.float32)
    y[0, :5, 2] = 4000.0
    data = recordings.Data(y, np.zeros((1, 1000, 1)), np.ones(y.shape, bool), np.array([1000]))
    np.testing.assert_array_equal(state_space.count_channels(data, "auto"), [True, False, True])
    with pytest.raises(ValueError, match="counts above 2,981 in a step"):
        state_space.count_channels(data, "poisson")


def test_data_have_a_preset_unless_a_sequence_vae_is_asked_for():
    config_with = lambda **fields: replace(PRESETS["vector_field"].config, **fields)
    assert preset_for("vector_field", config_with(data=("FILE.npz",))) == "recordings"
    assert preset_for("vector_field", config_with()) == "vector_field"
    vae = config_with(data=("FILE.npz",), learner="sequence_vae")
    assert preset_for("vector_field", vae) == "vector_field"
    assert preset_for("sequence_vae", config_with(data=("FILE.npz",))) == "sequence_vae"


def test_what_cannot_be_fitted_is_refused_in_one_line(simulated_file):
    _, path = simulated_file
    with pytest.raises(ValueError, match=r"are chosen by the data first.*a sweep varies other"):
        dynamics_fit.make_training(config_of(path))
    with pytest.raises(ValueError, match="20 dimensions for 12 channels: expected at most that"):
        dynamics_fit.make_training(config_of(path, dims=20))
    with pytest.raises(ValueError, match="makes experiments: for recorded data begin with"):
        program.train(replace(PRESETS["vector_field"].config, data=(str(path),)))
    with pytest.raises(ValueError, match=r"give --data FILE\.npz"):
        program.PROGRAM.training(PRESETS["recordings"].config)


def test_a_guess_of_what_data_choose_refuses_what_they_refuse(simulated_file):
    """A sweep asks it at once, before candidates are fitted for minutes."""
    fields = {"dims": 0, "field": "auto", "prior": 0.0, "steps": 0, "most_delay": 3}
    config = config_of(simulated_file[1], **fields)
    guess = dynamics_fit.guess_completion(config)
    dynamics_problem.problem_of(guess)  # leaves nothing open
    assert dynamics_fit.guess_completion(guess) is guess
    too_many = replace(guess, state_space=replace(guess.state_space, dims=20))
    with pytest.raises(ValueError, match="20 dimensions for 12 channels"):
        dynamics_fit.make_training(too_many)


@pytest.mark.slow
def test_a_file_alone_is_enough_to_find_an_oscillator(tmp_path, capsys):
    """Two dimensions, a field that is not linear, one cycle of the true period."""
    path = tmp_path / "oscillator.npz"
    write(record("stuart_landau", 1), path)
    config = replace(PRESETS["recordings"].config, data=(str(path),))
    config = replace(config, run=replace(config.run, directory=str(tmp_path / "run")))
    completed = dynamics_fit.complete(config)
    assert completed.state_space.dims == 2
    assert completed.state_space.field != "linear"
    assert "channels of counts" in capsys.readouterr().out
    evaluation = program.train(completed, "recordings").evaluation
    assert evaluation is not None
    content = evaluation.content
    own, simple = content["seeds"][0], content["baselines"]["linear_gaussian"]
    assert own["r2"][10] > simple["r2"][10]
    assert own["r2"][30] > simple["r2"][30]
    (cycle,) = own["portrait"]["cycles"]
    assert abs(cycle["period"] / 16.7 - 1) < 0.02
