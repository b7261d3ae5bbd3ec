"""A sequence VAE with three latent dimensions and an LSTM filter, from the outside."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.train.images import assert_drawn
from train.host.command_line import command
from train.host.program import EpisodeSelection
from train.host.running.saved_runs import load
from train.vector_field import fitted
from train.vector_field.experiment import held_out
from train.vector_field.pictures import scene
from train.vector_field.program import PROGRAM

FLAGS = (
    "sequence_vae --env.fields lorenz --env.dimension 3 --env.num-inputs 3 --plane 0 2 "
    "--model.grid.dims 3 --model.field fourier --model.fourier.count 20 --model.hidden 4 "
    "--model.recognition lstm --policies d_optimal bang5 --vae.policy.planner.candidates 8 "
    "--vae.policy.planner.iterations 1 --run.num-seeds 1 --run.total-steps 150 "
    "--run.chunk-steps 50"
)


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "HELD_OUT_STEPS", 100)
        directory = tmp_path_factory.mktemp("latent") / "run"
        assert command.main(PROGRAM, [*FLAGS.split(), f"--run.directory={directory}"]) == 0
    return directory


@pytest.mark.slow
def test_its_field_is_the_learned_one_after_least_squares(run_directory):
    """In NumPy: the affine map that takes the true decoder to the learned one, by `lstsq`."""
    run, model = load(run_directory), fitted.load(run_directory, policy="bang5")
    of_policies = jax.tree.map(np.asarray, run.agents[0]["d_optimal"])
    agent = jax.tree.map(lambda x: x[1, 0], of_policies)
    ours, true = agent.params["decoder"], agent.known.numbers.emission[0]
    linear = np.linalg.lstsq(ours["matrix"], true.weight, rcond=None)[0]
    shift = np.linalg.lstsq(ours["matrix"], true.bias - ours["offset"], rcond=None)[0]
    arrays = np.load(run_directory / "experiments.npz")
    axis = np.linspace(-2, 2, 25)
    for i, j in ((0, 0), (12, 12), (3, 20)):
        z = np.array([axis[i], 0.0, axis[j]])
        expected = np.linalg.solve(linear, np.asarray(model.velocity(linear @ z + shift)))
        np.testing.assert_allclose(arrays["learned"][0, 1, 0, i, j], expected[[0, 2]], rtol=2e-3)


@pytest.mark.slow
def test_what_it_records_and_scores_is_finite(run_directory):
    content = json.loads((run_directory / "eval.json").read_text())
    for name in ("d_optimal", "bang5"):
        measures = content["seeds"][0][name]
        assert np.shape(measures["r2"]) == (1, 31)
        assert np.isfinite(measures["r2"]).all()
        assert np.isfinite(measures["error"]).all()
        recorded = np.load(run_directory / "recordings" / f"{name}-lorenz-seed0.npz")
        assert recorded["y"].shape == (150, 20)
        assert recorded["z"].shape == recorded["belief"].shape == (150, 3)
        assert np.isfinite(recorded["belief"]).all()


@pytest.mark.slow
def test_its_pictures_and_report_show_a_plane(run_directory):
    for name in ("fields.png", "information.png", "errors.png", "forecasts.png", "channels.png"):
        assert_drawn(run_directory / name)
    report = scene.show(load(run_directory), EpisodeSelection(9, jax.random.key(0), 1_000, 0))
    assert report is not None
    assert report.episodes[0].frames["z"].shape == (150, 2)
