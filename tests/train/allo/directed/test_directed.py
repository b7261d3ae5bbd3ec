"""`python -m train.allo directed` from the outside: a small run, its files, what it refuses."""

import io
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from PIL import Image
from rich.console import Console
from scipy import stats

from jaxrl.spectral import hitting_times
from tests.train.allo.test_allo import (
    allo_command,
    assert_resuming_changes_nothing,
    parse_config,
    read_arrays,
)
from train import evaluate
from train.allo import scene
from train.allo.directed import directed_maps, directed_pictures, directed_run, directed_scores
from train.allo.training import make_problem
from train.host.files.metrics_file import read_metrics
from train.host.program import EpisodeSelection
from train.host.running import saved_runs
from train.policies import export as policies

MAZE = "DR:0.1,.,.,.\n.,#,#,DD:0.1\nDU:0.1,#,#,.\n.,.,.,DL:0.1\n"  # a ring walked clockwise
SMALL = (
    "directed --env.transitions=40000 --network.hidden 48 48 --agent.num-features=5 "
    "--agent.spare-features=7 --run.num-seeds=2 --run.total-steps=400 "
    "--agent.schedule=budget --run.chunk-steps=100 --run.checkpoint-every=2"
)
PICTURES = ("right", "left", "hitting_times", "eigenvalues", "similarity", "visits")


@pytest.fixture(scope="module")
def maze(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("maze") / "ring.txt"
    path.write_text(MAZE)
    return path


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory, maze) -> Path:
    directory = tmp_path_factory.mktemp("directed") / "run"
    flags = f"{SMALL} --maze-file={maze} --run.directory={directory}"
    assert allo_command(arguments=flags.split()) == 0
    return directory


@pytest.mark.slow
def test_both_sides_and_hitting_times_are_found(finished_run):
    content = json.loads((finished_run / "eval.json").read_text())
    rows = read_metrics(finished_run)
    for row, last in zip(content["seeds"], rows[-2:], strict=True):
        for side in ("right", "left"):
            assert row[side] > 0.99
            assert row[f"ceiling_{side}"] > 0.99
            np.testing.assert_allclose(row[side], last["agent"][side], atol=1e-4)
        assert row["eigenvalues_within"] == 5
        assert row["is_converged"]
        np.testing.assert_allclose(
            row["eigenpair_angle"], last["agent"]["eigenpair_angle"], atol=1e-4
        )
        assert row["rank_goals"] > 0.95 < row["rank_sources"]
        assert row["ceiling_rank_goals"] > row["symmetric_rank_goals"] + 0.1, "direction matters"
    true = np.array(content["true_eigenvalues"]) @ [1, 1j]
    assert np.abs(np.imag(true)).max() > 0.01
    np.testing.assert_allclose(true[1], true[2].conj())


@pytest.mark.slow
def test_arrays_hold_eigenpairs_of_the_walk_and_their_times(finished_run, maze):
    """Against SciPy's eigenvectors of P and its rank correlation."""
    arrays, content = (
        read_arrays(finished_run),
        json.loads((finished_run / "eval.json").read_text()),
    )
    problem = make_problem(parse_config(f"{SMALL} --maze-file={maze}"))
    P, w = problem.chain.toarray(), np.asarray(problem.truth.weight, float)
    scipy_solution: Any = scipy.linalg.eig(P, left=True, right=True)
    values, left, right = scipy_solution
    size = lambda x: np.sqrt(w @ np.abs(x) ** 2)
    for s, row in enumerate(content["seeds"]):
        for k, mu in enumerate(arrays["true_eigenvalues"]):
            nearest = np.argmin(np.abs(values - mu))
            assert abs(arrays["eigenvalues"][s, k] - mu) <= row["eigenvalue_error"] + 1e-6
            true = {"right": right[:, nearest], "left": left[:, nearest] / w}
            for side, vector in true.items():
                learned = arrays[side][s, :, k]
                cosine = abs(np.sum(w * vector.conj() * learned)) / size(vector) / size(learned)
                assert cosine == pytest.approx(row[f"cosines_{side}"][k], abs=1e-3)
        exact, times = arrays["true_hitting_times"], arrays["hitting_times"][s]
        rank_correlations: Any = [
            stats.spearmanr(np.delete(times[:, j], j), np.delete(exact[:, j], j))[0]
            for j in range(len(P))
        ]
        assert row["rank_goals"] == pytest.approx(np.mean(rank_correlations), abs=1e-6)
        assert row["rank_goals_least"] == pytest.approx(np.min(rank_correlations), abs=1e-6)
    for name in PICTURES:
        with Image.open(finished_run / f"{name}.png") as picture:
            assert picture.width > 300


@pytest.mark.slow
def test_stopping_and_resuming_changes_nothing(finished_run, tmp_path):
    assert_resuming_changes_nothing(finished_run, tmp_path)


@pytest.mark.slow
def test_the_report_shows_both_sides_while_they_are_learned(finished_run):
    report_scene = scene.show(
        saved_runs.load(finished_run), EpisodeSelection(5, jax.random.key(0), 100)
    )
    assert report_scene is not None
    assert report_scene.scripts[-1].name == "directed.js"
    arrays, record = read_arrays(finished_run), read_metrics(finished_run)
    for s, episode in enumerate(report_scene.episodes):
        for side in ("right", "left"):
            drawn = episode.frames[side][-1].reshape(2, 5, -1)  # real parts, then imaginary ones
            learned = directed_maps.align_phases(arrays[f"true_{side}"], arrays[side][s, :, :5])
            np.testing.assert_allclose(drawn[0] + 1j * drawn[1], learned.T, atol=2e-2)
        scores = [row["agent"]["similarity"] for row in record if row["seed"] == s]
        np.testing.assert_allclose(episode.lines["similarity"][1:], scores, atol=5e-3)


@pytest.mark.slow
def test_an_exported_policy_holds_both_sides_and_their_values(finished_run, tmp_path, monkeypatch):
    """All but the ceilings, which need the recorded transitions."""
    monkeypatch.chdir(tmp_path)
    assert policies.main(["export", str(finished_run), "both", "--seed=1"]) == 0
    assert evaluate.main(["--policy=both"]) == 0
    (written,) = Path("runs").rglob("eval.json")
    (row,) = json.loads(written.read_text())["seeds"]
    before = json.loads((finished_run / "eval.json").read_text())["seeds"][1]
    for name in ("right", "left", "eigenvalue_error", "rank_goals", "rank_sources"):
        assert row[name] == pytest.approx(before[name], abs=2e-3)
    assert not [name for name in row if name.startswith(("ceiling", "symmetric"))]


@pytest.mark.slow
def test_exact_eigenpairs_have_all_there_is(maze):
    """Scores and hitting times of the walk's own eigenpairs, which SciPy computes, too."""
    config = parse_config(f"{SMALL} --maze-file={maze}")
    problem = make_problem(config)
    P, w = problem.chain.toarray(), np.asarray(problem.truth.weight, float)
    exact = directed_scores.eigenpairs_of(problem.chain, config.env.walk_steps, 0.9)
    eigenvalues, right, left = (jnp.asarray(x, jnp.complex64) for x in exact[:3])
    pairs = directed_scores.EigenpairEstimate(eigenvalues, right, left, exact.weight)
    times = hitting_times.exact_times(P)
    row = directed_scores.seed_scores(pairs, P, problem.truth, times, 0.9)
    for name in ("right", "left", "ceiling_right", "ceiling_left", "rank_goals", "rank_sources"):
        assert row[name] == pytest.approx(1, abs=2e-3)
    assert row["eigenvalues_within"] == 5
    assert row["ceiling_rank_goals"] > row["symmetric_rank_goals"] + 0.1, "direction matters"
    np.testing.assert_allclose(directed_scores.times_of(pairs), times, rtol=2e-3, atol=1e-2)
    scipy_solution: Any = scipy.linalg.eig(P, left=True, right=True)
    values, left, right = scipy_solution
    size = lambda x: np.sqrt(w @ np.abs(x) ** 2)
    for k, mu in enumerate(np.asarray(problem.truth.values)):
        nearest = np.argmin(np.abs(values - mu))
        assert abs(values[nearest] - mu) < 1e-5
        for side, vector in (("right", right[:, nearest]), ("left", left[:, nearest] / w)):
            true = np.asarray(getattr(problem.truth, side).eigenvectors)[:, k]
            cosine = abs(np.sum(w * vector.conj() * true)) / size(vector) / size(true)
            assert cosine == pytest.approx(1, abs=1e-4)
    assert directed_run.convergence(config, pairs, P)["is_converged"]
    mixed_pairs = pairs._replace(right=pairs.right + 0.3 * jnp.roll(pairs.right, 1, axis=1))
    assert not directed_run.convergence(config, mixed_pairs, P)["is_converged"]
    row = directed_scores.seed_scores(mixed_pairs, None, problem.truth, times, 0.9)
    assert row["right"] < 0.98 < row["left"]


def test_seeds_that_have_not_converged_are_named():
    rows = [{"seed": s, "similarity": 0.5, "is_converged": s == 4} for s in (3, 4, 5)]
    assert directed_scores.unfinished_seeds(rows) == "not converged: seed 3, 5"
    titles = directed_pictures.picture_titles("a maze", 0, directed_scores.unfinished_seeds(rows))
    assert titles == (
        "a maze; not converged: seed 3, 5",
        "a maze, seed 0; not converged: seed 3, 5",
    )
    assert directed_pictures.picture_titles("a maze", 0, "") == ("a maze", "a maze, seed 0")
    caption = str(directed_scores.scores_table(rows, 5).caption)
    assert "not converged: seed 3, 5; eigenvectors may be off by more than 0.05 rad" in caption
    assert "not converged" not in str(directed_scores.scores_table(rows[1:2], 5).caption)


def test_the_table_of_scores_fits_into_80_characters():
    """Also where ranks are negative and a mean over seeds has decimals."""
    names = (
        *("similarity", "ceiling_similarity", "near_similarity", "eigenpair_angle"),
        *("rank_goals", "rank_sources", "symmetric_rank_goals"),
    )
    rows = [{"seed": s, "eigenvalues_within": 9 + s} | dict.fromkeys(names, -0.25) for s in (1, 2)]
    console = Console(width=80, file=io.StringIO())
    with console.capture() as printed:
        console.print(directed_scores.scores_table(rows, 11))
    assert printed.get().count("-0.2500") == 3 * len(names)
    assert "…" not in printed.get()


def test_phases_are_turned_towards_the_true_ones():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(9, 3)) + 1j * rng.normal(size=(9, 3))
    turned = true * np.exp(1j * np.array([0.3, 2.0, -1.0]))
    np.testing.assert_allclose(directed_maps.align_phases(true, turned), true)


def test_maps_show_real_vectors_once_and_pairs_in_three_parts():
    values = np.array([1.0, 0.9 + 0.1j, 0.9 - 0.1j])
    true = np.arange(12.0).reshape(4, 3) * (1 + 1j)
    tiles = directed_maps.tiles(values, values, true, true, np.ones(3))
    assert [tile.labels[0].split("  ")[0] for tile in tiles] == ["1", "2", "2", "2"]
    np.testing.assert_array_equal(tiles[3].true, np.abs(true[:, 1]))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--agent.expectation=sampled", "agent.directed needs --agent.expectation exact"),
        ("--permute-every=100", "--permute-every has no effect"),
        ("--maze-file=trap.txt", "2 classes that cannot all be reached from each other"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("trap.txt").write_text("DR,.,.\n")
    small = "--agent.num-features=2 --agent.spare-features=1 --run.directory=run"
    maze = "" if "--maze-file" in flags else "--env.maze=OneWayRooms-4"
    assert allo_command(arguments=f"directed {flags} {maze} {small}".split()) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
