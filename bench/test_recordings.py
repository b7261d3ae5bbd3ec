"""The bench of recordings can be run, goes on where it was, and its tables can be written."""

import json

import numpy as np
import pytest

from bench import recordings
from bench.tables import markdown
from bench.tables import recordings as tables
from train.vector_field.recorded.prediction_scores import Forecasts


@pytest.mark.slow
def test_the_bench_goes_on_and_its_tables_are_written(tmp_path, monkeypatch, capsys):
    out = tmp_path / "recordings.json"
    few = ["--systems", "short", "--seeds", "1", "--particles", "200", "--out", str(out)]
    recordings.main([*few, "--models", "simple"])
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setitem(recordings.MODELS, "mean", fit_mean)
    few += ["--models", "true", "simple", "mean"]
    recordings.main(few)  # the true model and the mean alone
    assert [x.split()[2] for x in capsys.readouterr().out.splitlines()] == ["true:", "mean:"]
    recordings.main(few)
    assert not capsys.readouterr().out
    rows = {x["model"]: x for x in json.loads(out.read_bytes())}
    assert list(rows) == ["persistence", "arx", "linear_gaussian", "true", "mean"]
    assert rows["true"]["r2"]["1"] > max(rows["arx"]["r2"]["1"], rows["mean"]["r2"]["1"])
    assert abs(rows["mean"]["r2"]["10"]) < 0.05
    assert rows["persistence"]["r2"]["0"] is None
    assert 0.85 < rows["true"]["coverage"]["1"] < 0.95

    monkeypatch.setattr(markdown, "RESULTS", tmp_path)
    text = tables.shares()
    expected = 100 * rows["arx"]["r2"]["1"] / rows["true"]["r2"]["1"]
    line = next(x for x in text.splitlines() if x.startswith("| short | 1 | "))
    assert f"| {expected:.0f} · " in line
    assert f"{100 * rows['true']['coverage']['30']:.0f} %" in tables.calibration()


def fit_mean(problem: recordings.Problem) -> dict:
    """A model of a constant mean, which says nothing else."""
    data = problem.training
    mean = data.y.sum((0, 1)) / data.observed.sum((0, 1))

    def forecaster(starts) -> Forecasts:
        count, channels = len(starts.step), len(mean)
        nothing = np.zeros((count, 3, channels))
        expected = np.broadcast_to(mean, (count, recordings.AHEAD + 1, channels))
        return Forecasts(expected, nothing, nothing, nothing[:, 0])

    return {"mean": forecaster}
