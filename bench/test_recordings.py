"""The bench of recordings can be run, goes on where it was, and its tables can be written."""

import json
import sys

import numpy as np
import pytest

from bench import recordings
from bench.recordings_peers import linear_forecasts, registry, scaling
from bench.tables import markdown
from bench.tables import recordings as tables
from tests.recordings.__main__ import write
from tests.recordings.systems import record
from train.vector_field.data import episodes
from train.vector_field.data.files import loading
from train.vector_field.recorded.baselines import Scales
from train.vector_field.recorded.prediction_scores import Forecasts, Starts, score


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


def test_forecasts_of_a_linear_model_are_those_of_a_plain_loop():
    rng, dims, channels, ahead = np.random.default_rng(0), 2, 3, 4
    root = rng.standard_normal((4, dims, dims))
    process, now, later = (x @ x.T for x in root[:3])
    normal = lambda *shape: rng.standard_normal(shape)
    model = linear_forecasts.LinearModel(
        *(0.5 * root[3], normal(dims, 1), normal(dims), process),
        *(normal(channels, dims), normal(channels, 1), normal(channels), rng.random(channels)),
    )
    spread = lambda x: np.broadcast_to(x, (1, 6, dims, dims))
    filtered = linear_forecasts.Filtered(
        normal(1, 6, dims), spread(now), normal(1, 6, dims), spread(later)
    )
    u, v = normal(1, 6, 1), normal(1, 6, 1)
    starts = Starts(np.array([0]), np.array([3]))
    mean, variance = linear_forecasts.gaussians(model, filtered, u, v, starts, ahead)
    at = lambda x, t: x[0, t] if t < 6 else np.zeros(1)
    for k in range(ahead + 1):
        z, covariance = filtered.mean[0, 3], now
        if k:
            z, covariance = filtered.next_mean[0, 3], later
        for t in range(4, 3 + k):
            z = model.transition @ z + model.effect @ at(u, t) + model.drift
            covariance = model.transition @ covariance @ model.transition.T + process
        expected = model.matrix @ z + model.feedthrough @ at(v, 3 + k) + model.offset
        np.testing.assert_allclose(mean[0, k], expected)
        total = np.diag(model.matrix @ covariance @ model.matrix.T) + model.noise
        np.testing.assert_allclose(variance[0, k], total)


def test_moments_of_squares_are_those_of_gauss_and_hermite():
    scales = Scales(np.array([0.7, -2.0]), np.array([1.3, 2.0]), np.ones(1))
    scaled = scaling.Scaled(None, None, scales, np.array([True, False]), None)  # type: ignore
    mean, variance = np.array([[[0.4, 0.1]]]), np.array([[[0.8, 0.5]]])
    of_counts = scaling.restore(mean, variance, scaled)
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    y = (1.3 * (0.4 + 0.8**0.5 * nodes) + 0.7) ** 2
    first, second = (weights @ x / weights.sum() for x in (y, y**2))
    np.testing.assert_allclose(of_counts[0][0, 0], [first, 2.0 * 0.1 - 2.0])
    np.testing.assert_allclose(of_counts[1][0, 0], [second - first**2, 4 * 0.5])


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "PSID", None)
    with pytest.raises(SystemExit):
        recordings.main(["--models", "ipsid"])
    assert "pip install PSID==1.2.6" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # packages of others warn of what they use
@pytest.mark.parametrize("name", registry.PEERS)
def test_peers_foresee_a_linear_system_nearly_as_the_linear_model_does(name, tmp_path):
    pytest.importorskip(registry.PEERS[name].package)
    recording = record("linear", 0, small=True)
    write(recording, tmp_path / "linear.npz")
    data = loading.load(str(tmp_path / "linear.npz"))
    training, held_out = episodes.split(data, recordings.SHARE, recordings.AHEAD + 30)
    problem = recordings.Problem(
        tmp_path / "linear.npz", training, held_out, recording.is_count, recording.model.dims
    )
    of_ours = recordings.fit_simple(problem)["linear_gaussian"]
    ours, peers = (
        score(training, held_out, x, recording.is_count, recordings.AHEAD)
        for x in (of_ours, registry.fit_function(name)(problem).forecaster)
    )
    assert peers.r2[1] > 0.7 * ours.r2[1] > 0
    assert 0.85 < peers.coverage[0] < 0.95
