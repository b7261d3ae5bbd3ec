"""`python -m train.allo` from the outside: a small run, what it leaves, and what it refuses."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chex
import jax
import numpy as np
import pytest
from PIL import Image

from jaxrl.spectral.learning import allo_state, allo_walks
from tests.train.host import crashes
from train import evaluate, render
from train.allo import pictures, scene, scores
from train.allo.config import PRESETS, Config, learning_config, make_network
from train.allo.program import PROGRAM
from train.allo.training import make_problem, make_training
from train.host.command_line import command
from train.host.compilation import compiled
from train.host.files.metrics_file import read_metrics
from train.host.program import EpisodeSelection
from train.host.running import saved_runs

SMALL = (
    "--env.maze=GridMaze-9 --env.transitions=20000 --network.hidden 32 32 --agent.num-features=4 "
    "--agent.spare-features=2 --agent.optimizer=adam --run.num-seeds=2 --run.total-steps=200 "
    "--run.chunk-steps=50 --run.checkpoint-every=2"
)
PICTURES = ("eigenvectors.png", "similarity.png", "eigenvalues.png", "losses.png", "visits.png")
TIMES = ("seconds", "steps_per_second", "compile_seconds")
BLOCKS = "#######\n#..#..#\n#..#..#\n#######"  # two regions of four cells
allo_command = partial(command.main, PROGRAM)


def parse_config(flags: str) -> Config:
    return command.parse(PROGRAM, flags.split())[0]


def without_times(content: dict) -> dict:
    return {name: value for name, value in content.items() if name not in TIMES}


def read_evaluation(directory: Path) -> dict:
    return json.loads((directory / "eval.json").read_text())


def read_arrays(directory: Path) -> dict[str, np.ndarray]:
    with np.load(directory / "eigenvectors.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("allo") / "run"
    assert allo_command(arguments=[*SMALL.split(), f"--run.directory={directory}"]) == 0
    return directory


# What a run leaves.


@pytest.mark.slow
def test_a_run_leaves_a_record_and_a_score(finished_run):
    rows = read_metrics(finished_run)
    assert [(row["seed"], row["steps"]) for row in rows] == [
        (seed, steps) for steps in (50, 100, 150, 200) for seed in (0, 1)
    ]
    for row in rows:
        assert 0 <= row["agent"]["similarity"] <= 1
        assert len(row["agent"]["cosines"]) == len(row["agent"]["eigenvalues"]) == 4
    assert rows[0]["agent"]["similarity"] != rows[1]["agent"]["similarity"]
    content = read_evaluation(finished_run)
    assert (content["maze"], content["states"], content["regions"]) == ("GridMaze-9", 13, [13])
    assert len(content["true_eigenvalues"]) == 4
    np.testing.assert_allclose(
        content["published_eigenvalues"], [0, 0.1582, 0.3083, 0.4899], atol=6e-5
    )
    assert [row["seed"] for row in content["seeds"]] == [0, 1]
    for row, last in zip(content["seeds"], rows[-2:], strict=True):
        assert row["similarity"] > 0.98
        assert row["ceiling"] > 0.98
        assert row["collapsed"] == 0
        for name in ("similarity", "near_similarity", "cosines", "eigenvalues"):
            np.testing.assert_allclose(row[name], last["agent"][name], atol=1e-5)


@pytest.mark.slow
def test_a_run_leaves_arrays_and_pictures(finished_run):
    arrays, content = read_arrays(finished_run), read_evaluation(finished_run)
    shapes = {name: array.shape for name, array in arrays.items()}
    assert shapes == {
        "learned": (2, 13, 4),
        "learned_eigenvalues": (2, 4),
        "true": (13, 4),
        "true_eigenvalues": (4,),
        "cells": (13, 2),
        "seeds": (2,),
    }
    along = [(4, col) for col in range(1, 8)]  # row 4, and column 7 across its end
    across = [(row, 7) for row in range(1, 8) if row != 4]
    assert list(map(tuple, arrays["cells"])) == sorted(along + across)
    np.testing.assert_array_equal(arrays["seeds"], [0, 1])
    truth = arrays["true"] / np.linalg.norm(arrays["true"], axis=0)
    for row, learned, values in zip(
        content["seeds"], arrays["learned"], arrays["learned_eigenvalues"], strict=True
    ):  # on this maze all states are equally likely, and no eigenvalue is repeated
        cosines = np.abs(np.sum(truth * learned, axis=0)) / np.linalg.norm(learned, axis=0)
        np.testing.assert_allclose(cosines, row["cosines"], atol=1e-4)
        assert row["similarity"] == pytest.approx(cosines.mean(), abs=1e-4)
        error = np.abs(values - arrays["true_eigenvalues"]).max()
        assert row["eigenvalue_error"] == pytest.approx(error, abs=1e-5)
    for name in PICTURES:
        with Image.open(finished_run / name) as picture:
            assert picture.width > 300


@pytest.mark.slow
def test_a_finished_run_is_evaluated_and_drawn_again(finished_run, capsys):
    before, arrays = read_evaluation(finished_run), read_arrays(finished_run)
    assert evaluate.main([str(finished_run)]) == 0
    evaluation = read_evaluation(finished_run)
    assert (evaluation["updates"], evaluation.pop("key")) == (4, 1)
    assert without_times(evaluation) == without_times(before)
    for name in (*PICTURES, "eigenvectors.npz"):
        (finished_run / name).unlink()
    assert render.main([str(finished_run)]) == 0
    assert all((finished_run / name).exists() for name in PICTURES)
    chex.assert_trees_all_equal(read_arrays(finished_run), arrays)
    capsys.readouterr()
    for flag in ("--games=5", "--sampled"):
        assert evaluate.main([str(finished_run), flag]) == 2
        complaint = capsys.readouterr().err
        assert "plays no games: leave out --games and --sampled" in complaint
        assert complaint.count("\n") == 1


@pytest.mark.slow
def test_stopping_and_resuming_changes_nothing(finished_run, tmp_path):
    assert_resuming_changes_nothing(finished_run, tmp_path)


def assert_resuming_changes_nothing(finished_run: Path, tmp_path: Path) -> None:
    """From what a crash after the first of two checkpoints leaves."""
    interrupted = tmp_path / "run"
    crashes.after_the_first_checkpoint(finished_run, interrupted)
    assert allo_command(arguments=["--resume", str(interrupted)]) == 0
    runs = (finished_run, interrupted)
    chex.assert_trees_all_equal(*(crashes.last_state_leaves(PROGRAM, run) for run in runs))
    chex.assert_trees_all_equal(*map(read_arrays, runs))
    rows = [list(map(without_times, read_metrics(run))) for run in runs]
    assert rows[0] == rows[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--network.hidden 16", "network.hidden: [32, 32] -> [16]"),
        ("--env.wind=0.1", "env.wind: 0.0 -> 0.1"),
        ("--run.total-steps=400", "run.total_steps: 200 -> 400"),  # its cosine ends with it
    ],
)
def test_another_configuration_is_refused_and_shown(finished_run, flags, message, capsys):
    assert allo_command(arguments=["--resume", str(finished_run), *flags.split()]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


# Every kind of learner.


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("preset", PRESETS)
def test_an_update_of_any_preset_keeps_all_shapes(preset):
    maze = "" if preset == "environment" else "--env.maze=GridMaze-9"
    config = parse_config(f"{preset} {maze} --env.transitions=1000")
    training = make_training(config)
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, metrics = jax.eval_shape(training.update, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    d = config.agent.num_features
    assert metrics.agent[training.score.name].shape == ()
    assert metrics.agent["cosines"].shape == metrics.agent["eigenvalues"].shape == (d,)


def test_presets_of_the_paper_hold_its_numbers():
    paper, ggdo, short = (PRESETS[name].config for name in ("paper", "ggdo", "short"))
    paper_fields = {"num_features": 11, "spare_features": 0, "discount": 0.9, "batch_size": 1024}
    paper_fields |= {
        "learning_rate": 1e-3,
        "optimizer": "adam",
        "schedule": "constant",
        "turn_every": 0,
    }
    for config in (paper, ggdo):
        assert {name: getattr(config.agent, name) for name in paper_fields} == paper_fields
        assert config.network.hidden == (256, 256, 256)
        assert (config.env.transitions, config.env.walk_steps) == (1_000_000, 50)
    assert (paper.agent.dual_step, paper.agent.graph_weight) == (1e-4, 1.0)
    assert (paper.agent.barrier_start, paper.agent.barrier_step) == (0.5, 0.01)
    assert (ggdo.agent.barrier_start, ggdo.agent.barrier_step) == (2.0, 0.0)
    assert (paper.agent.method, ggdo.agent.method) == ("allo", "ggdo")
    short_fields = {"num_features": 10, "discount": 0.2, "batch_size": 256, "learning_rate": 3e-4}
    short_fields |= {
        "graph_weight": 0.5,
        "dual_start": -2.0,
        "dual_step": 3e-4,
        "barrier_start": 0.5,
    }
    assert {name: getattr(short.agent, name) for name in short_fields} == short_fields
    assert (short.network.hidden, short.env.walk_steps) == ((256,) * 4, 1000)


TINY = (
    "--env.transitions=500 --network.hidden 8 --agent.num-features=3 --agent.steps-per-update=5 "
    "--env.walk-steps=10"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "regions"),
    [
        ("sampled --network.observation=pixels --env.maze=GridMaze-9", [13]),
        ("ggdo --network.observation=one_hot --maze-file=FILE --allow-disconnected", [4, 4]),
    ],
    ids=["sampled pixels", "ggdo one_hot in two regions"],
)
def test_a_few_steps_of_other_learners_are_finite(flags, regions, tmp_path):
    (tmp_path / "blocks.txt").write_text(BLOCKS)
    config = parse_config(
        f"{flags} {TINY} --agent.batch-size=32".replace("FILE", str(tmp_path / "blocks.txt"))
    )
    training = make_training(config)
    state = jax.jit(training.init)(jax.random.key(0))
    first, update = state.agent.learner.params, jax.jit(training.update)
    for updates in (1, 2):
        state, metrics = update(state)
        assert compiled.all_finite((state.agent.learner, metrics.agent))
        assert (int(state.updates), int(state.agent.learner.steps)) == (updates, 5 * updates)
    changes = jax.tree.map(lambda a, b: np.abs(a - b).max(), first, state.agent.learner.params)
    assert min(jax.tree.leaves(changes)) > 0
    assert allo_walks.visits(learning_config(config), state.agent).sum() == 500
    content = training.evaluate([state.agent], [0], [jax.random.key(1)]).content
    assert content["regions"] == regions
    assert np.count_nonzero(np.array(content["true_eigenvalues"]) < 1e-9) == len(regions)
    assert np.isfinite(content["seeds"][0]["ceiling"])


def test_visits_at_the_edge_of_a_maze_without_walls_are_in_its_last_cell(tmp_path):
    """A position just inside, rounded as what the network sees, is the edge itself."""
    maze = tmp_path / "maze.txt"
    maze.write_text("..\n..")
    config = parse_config(f"continuous --maze-file {maze} --env.truth-cells=4")
    config = replace(config, agent=replace(config.agent, num_features=3))
    coordinates = np.array([[[1, 1], [-1, -1], [1, -1], [0.1, 0.1]]], np.float32)
    data = SimpleNamespace(
        state=coordinates, left=np.array([[1, 1, 1, 0]])
    )  # the last was not recorded
    agent: Any = SimpleNamespace(walk=SimpleNamespace(data=data))
    visits = pictures.visits_of(config, make_problem(config), agent)
    assert np.flatnonzero(visits).tolist() == [0, 56, 63]


@pytest.mark.slow
def test_permuted_outputs_are_sorted_again_in_a_windy_maze():
    """The second and the fourth of 4 updates end with a permutation; the head is not rotated."""
    config = parse_config(
        "--env.maze=GridMaze-9 --env.wind=0.3 --env.transitions=20000 --network.hidden 32 "
        "--agent.num-features=4 --agent.spare-features=0 --agent.turn-every=0 "
        "--agent.optimizer=adam --agent.schedule=constant --agent.dual-step=0.02 "
        "--agent.steps-per-update=500 --permute-every=1000"
    )
    training, network = make_training(config), make_network(config, 13)
    assert make_problem(config).published is None
    state, update = jax.jit(training.init)(jax.random.key(0)), jax.jit(training.update)
    for updates in (1, 2, 3, 4):
        state, metrics = update(state)
        assert metrics.agent["similarity"] > 0.99  # before the permutation
        features = allo_state.features(network, config.agent, state.agent)
        after = scores.similarities(features, state.truth)["similarity"]
        assert (after < 0.5) == (updates % 2 == 0)


@pytest.mark.slow
def test_an_update_of_one_maze_serves_another_without_a_second_trace():
    flags = f"{TINY} --agent.spare-features=1 --agent.optimizer=adam --agent.turn-every=5"
    mazes = [f"corridors-40-seed{seed}" for seed in (0, 1)]
    trainings = [make_training(parse_config(f"{flags} --env.maze={maze}")) for maze in mazes]
    states = [jax.jit(training.init)(jax.random.key(7)) for training in trainings]
    assert not np.array_equal(states[0].agent.inputs, states[1].agent.inputs)
    update = jax.jit(chex.assert_max_traces(trainings[0].update, n=1))
    same_key = jax.random.clone(states[1].key)
    (_, first_metrics), (state, metrics) = [update(state) for state in states]
    own_update = jax.jit(trainings[1].update)(states[1]._replace(key=same_key))
    chex.assert_trees_all_equal(
        (state.agent, metrics.agent), (own_update[0].agent, own_update[1].agent)
    )
    assert first_metrics.agent["similarity"] != metrics.agent["similarity"]


# What is refused.

FILES = {
    "ragged": "....\n...",
    "unknown": "..?.",
    "single": "###\n#.#\n###",
    "blocks": BLOCKS,
}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--maze-file=missing.txt", "cannot read maze missing.txt"),
        ("--maze-file=ragged.txt", "ragged.txt: "),
        ("--maze-file=unknown.txt", "unknown.txt: "),
        ("--maze-file=single.txt", "has 1 free cell; expected at least 2"),
        ("--maze-file=blocks.txt", "2 regions, of 4 and 4 cells; expected one; --allow-disconn"),
        ("--maze-file=blocks.txt --env.maze=GridMaze-9", "--env.maze has no effect, as --maze-f"),
        ("--env.maze=GridMaze-0", "maze 'GridMaze-0' is unknown; expected one of GridMaze-7, "),
        ("--env.wind=1.5", "--env.wind is 1.5, expected a number above -1.0 and"),
        ("--env.transitions=0", "--env.transitions is 0, expected a number at least 1"),
        ("--env.walk-steps=0", "--env.walk-steps is 0, expected a number at least 1"),
        ("--agent.num-features=40", "--agent.num-features is 40, but there are 13 states, and"),
        (
            "--agent.discount=1.0",
            "--agent.discount is 1.0, expected a number at least 0.0 and",
        ),
        ("--agent.learning-rate=nan", "--agent.learning-rate is nan, expected a number"),
        ("--agent.graph-weight=0", "--agent.graph-weight is 0"),
        ("--agent.barrier-start=-1", "--agent.barrier-start is -1.0, expected a number"),
        ("--permute-every=-50", "--permute-every is -50"),
        ("--network.frequencies=0", "--network.frequencies is 0"),
        ("--agent.discount=-0.1", "discount is -0.1, expected a number at least 0.0"),
        ("--agent.discount=nan", "discount is nan, expected a number at least 0.0"),
        ("--agent.turn-every=30", "expected a multiple of --agent.turn-every=30"),
        ("--network.hidden 0", "--network.hidden[0] is 0, expected a number at least 1"),
        ("--network.observation=sound", "sound"),
        ("--permute-every=75", "--permute-every is 75; expected a multiple of --agent"),
        (
            "fast",
            "there is no preset fast: choose one of allo, directed, sampled, continuous, ",
        ),
        ("--resume=/nowhere", "/nowhere is not a run directory"),
    ],
    ids=lambda value: value if value.startswith(("-", "fast")) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / f"{name}.txt").write_text(text)
    maze = "" if "maze" in flags else "--env.maze=GridMaze-9"
    arguments = f"{flags} {maze} --run.directory=run"
    assert allo_command(arguments=arguments.split()) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert {path.stem for path in tmp_path.iterdir()} == set(FILES)


@pytest.mark.slow
def test_the_report_shows_eigenvectors_while_they_are_learned(finished_run):
    run = saved_runs.load(finished_run)
    report_scene = scene.show(run, EpisodeSelection(5, jax.random.key(0), 100))
    assert report_scene is not None
    assert [x.title.split(",")[0] for x in report_scene.episodes] == ["seed 0", "seed 1"]
    with np.load(finished_run / "eigenvectors.npz") as arrays:
        learned, true = arrays["learned"], arrays["true"]
    record = read_metrics(finished_run)
    for s, episode in enumerate(report_scene.episodes):
        assert episode.frames["steps"].tolist() == [0, 50, 100, 150, 200]
        last = episode.frames["learned"][-1].reshape(-1, len(true))
        for k, vector in enumerate(last):
            sign = np.sign(np.dot(learned[s][:, k], true[:, k])) or 1.0
            np.testing.assert_allclose(vector, sign * learned[s][:, k], atol=5e-3)
        scores = [row["agent"]["similarity"] for row in record if row["seed"] == s]
        np.testing.assert_allclose(episode.lines["similarity"][1:], scores, atol=5e-3)
    policy = run._replace(directory=finished_run / "nowhere")
    assert scene.show(policy, EpisodeSelection(1, jax.random.key(0), 100)) is None
