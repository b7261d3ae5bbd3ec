"""A small run in three dimensions from the outside, whose experiments stop early."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from tests.train.images import assert_drawn
from train.host.command_line import command
from train.host.files.metrics_file import read_metrics
from train.host.program import EpisodeSelection
from train.host.running.saved_runs import load
from train.vector_field.experiment import held_out, run_record
from train.vector_field.pictures import scene
from train.vector_field.program import PROGRAM

FLAGS = (
    "lorenz --policies bang5 off --bayesian.fourier.count=20 --run.num-seeds=2 "
    "--run.total-steps=300 --run.chunk-steps=150 --stop-gain=1000 --stop-over=100"
)


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "HELD_OUT_STEPS", 100)
        directory = tmp_path_factory.mktemp("space") / "run"
        assert command.main(PROGRAM, [*FLAGS.split(), f"--run.directory={directory}"]) == 0
    return directory


@pytest.mark.slow
def test_it_ends_when_all_experiments_have_stopped(run_directory):
    rows = read_metrics(run_directory)
    assert [row["steps"] for row in rows] == [150, 150]
    assert [row["agent"]["stopped_at"] for row in rows] == 2 * [[[100, 100]]]
    assert rows[-1]["agent"]["all_stopped"] == pytest.approx(2 / 3)  # a mean over the chunk
    for name in ("bang5", "off"):
        recorded = np.load(run_directory / "recordings" / f"{name}-lorenz-seed0.npz")
        assert recorded["z"].shape == (100, 3)
        assert recorded["belief"].shape == (100, 3)
        np.testing.assert_array_equal(recorded["y"], recorded["z"])  # the state is seen


@pytest.mark.slow
def test_its_pictures_show_a_plane_and_channels(run_directory):
    for name in ("fields.png", "information.png", "errors.png", "forecasts.png", "channels.png"):
        assert_drawn(run_directory / name)
    arrays = np.load(run_directory / "experiments.npz")
    assert arrays["learned"].shape == (2, 2, 1, 25, 25, 2)
    assert arrays["trails"].shape[-1] == 3
    axis = np.linspace(-2, 2, 25)
    x, height = np.meshgrid(12 * axis, 12 * axis + 25, indexing="ij")  # and y is 0
    velocity = 0.05 / 12 * np.stack([-10 * x, -8 / 3 * height], axis=-1)
    np.testing.assert_allclose(arrays["true"][0, 0], velocity, rtol=1e-3, atol=1e-3)
    content = json.loads((run_directory / "eval.json").read_text())
    assert np.shape(content["seeds"][0]["bang5"]["r2"]) == (1, 31)


@pytest.mark.slow
def test_its_report_ends_where_experiments_stopped(run_directory):
    report = scene.show(load(run_directory), EpisodeSelection(9, jax.random.key(0), 1_000, 0))
    assert report is not None
    first = report.episodes[0]
    assert first.frames["z"].shape == first.frames["belief"].shape == (100, 2)
    assert {"channel 2", "forecast of 2"} <= set(first.lines)
    assert np.isnan(first.lines["forecast of 1"][:10]).all()
    assert np.isfinite(first.lines["forecast of 1"][10:]).all()


@pytest.mark.slow
def test_the_table_names_the_samples_taken(run_directory):
    config = command.parse(PROGRAM, [*FLAGS.split()])[0]
    console = Console(width=100)
    with console.capture() as captured:
        console.print(run_record.stops_table(read_metrics(run_directory), config))
    assert "2 of 2" in captured.get()
    np.testing.assert_array_equal(
        run_record.samples_taken(run_directory, config), np.full((2, 2, 1), 100)
    )
    without = command.parse(PROGRAM, ["lorenz"])[0]
    assert run_record.samples_taken(run_directory, without) is None
