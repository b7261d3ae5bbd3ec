"""A training that is no game: its score is the agent's, its steps are of the gradient."""

import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxrl import checkpoint
from tests.train.host import descent
from tests.train.images import assert_drawn
from train import evaluate, render
from train.host.command_line import command
from train.host.compilation import compiled
from train.host.errors import REFUSED
from train.host.files.metrics_file import read_metrics
from train.host.files.run_directory import RunDirectory
from train.host.program import Views

SEEDS, UPDATES = (0, 1), 8


def descend(*arguments: str) -> int:
    return command.main(descent.PROGRAM, arguments)


def place(seed: int, updates: int) -> np.ndarray:
    """Where that many updates lead: each gradient step takes a quarter of the way, `[3]`."""
    start = descent.init(compiled.keys_of(seed)[0]).agent.params
    return np.asarray(start) * 0.75 ** (5 * updates)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("descent") / "run"
    assert descend(f"--run.directory={directory}") == 0
    return directory


@pytest.mark.slow
def test_a_run_ends_once_nothing_more_would_be_learnt(tmp_path: Path):
    """After the chunk of two updates in which the slower of two seeds has come near; for good."""
    starts = [np.linalg.norm(place(seed, 0)) for seed in SEEDS]
    near = 0.03 * max(starts)
    assert descend(f"--run.directory={tmp_path / 'run'}", f"--near={near}") == 0
    needed = next(u for u in range(1, 9) if max(starts) * 0.75 ** (5 * u) < near)
    last_update = 2 * -(-needed // 2)
    assert last_update < UPDATES
    rows = read_metrics(tmp_path / "run")
    assert {row["updates"] for row in rows} == set(range(2, last_update + 1, 2))
    assert descend(f"--resume={tmp_path / 'run'}") == 0
    assert read_metrics(tmp_path / "run") == rows


def test_a_picture_that_fails_takes_no_score_with_it(tmp_path: Path, capsys):
    def fail(*_):
        raise RuntimeError("nothing to draw")

    broken_program = descent.PROGRAM._replace(views=Views(pictures=fail))
    directory = tmp_path / "my run"
    assert (
        command.main(broken_program, [f"--run.directory={directory}", "--run.num-seeds=1"])
        == REFUSED
    )
    error = capsys.readouterr().err
    assert error.startswith("RuntimeError: nothing to draw (")
    assert f"train.render '{directory}' draws it" in error
    assert error.count("\n") == 1
    (row,) = json.loads((directory / "eval.json").read_text())["seeds"]
    assert row["distance"] == pytest.approx(np.linalg.norm(place(0, UPDATES)), rel=1e-5)


def test_the_record_holds_numbers_and_lists(finished_run: Path):
    rows = read_metrics(finished_run)
    assert [(row["seed"], row["steps"]) for row in rows] == [
        (seed, steps) for steps in (10, 20, 30, 40) for seed in SEEDS
    ]
    for row in rows:
        assert (row["episodes"], row["finished"]) == (0, {})
        chunk = [place(row["seed"], row["updates"] - before) for before in (1, 0)]
        np.testing.assert_allclose(row["agent"]["place"], np.mean(chunk, 0), rtol=1e-5)
        distance = np.linalg.norm(chunk, axis=1).mean()
        assert row["agent"]["distance"] == pytest.approx(distance, rel=1e-5)


def check_evaluation(directory: Path, keys: list[jax.Array]) -> dict:
    """The distances are right, and the numbers drawn were those of the keys."""
    content = json.loads((directory / "eval.json").read_text())
    assert content["score"] == "distance"
    for row, seed, key in zip(content["seeds"], SEEDS, keys, strict=True):
        assert row["seed"] == seed
        assert row["distance"] == pytest.approx(np.linalg.norm(place(seed, UPDATES)), rel=1e-5)
        assert row["drawn"] == int(jax.random.bits(key))
    return content


def test_it_is_evaluated_and_drawn_without_games(finished_run: Path, capsys):
    check_evaluation(finished_run, [compiled.keys_of(seed)[1] for seed in SEEDS])
    assert evaluate.main([str(finished_run), "--key", "7"]) == 0
    keys = [jax.random.fold_in(jax.random.key(7), seed) for seed in SEEDS]
    content = check_evaluation(finished_run, keys)
    assert list(content)[-3:] == ["updates", "key", "seeds"]
    assert (content["updates"], content["key"]) == (UPDATES, 7)
    capsys.readouterr()
    assert render.main([str(finished_run)]) == 0
    curve, diagnostics = capsys.readouterr().out.split()
    assert Path(diagnostics).name == "diagnostics.png"
    for path in (curve, diagnostics):
        assert_drawn(Path(path))


def test_scores_go_into_a_file_of_any_name(finished_run: Path, tmp_path: Path, capsys):
    out, written = tmp_path / "scores.json", finished_run / "eval.json"
    flags = [str(finished_run), f"--out={out}"]
    assert evaluate.main([*flags, "--key=3"]) == 0
    assert out.read_bytes() == written.read_bytes()
    assert json.loads(out.read_text())["key"] == 3
    assert evaluate.main([*flags, "--key=4", "--overwrite"]) == 0
    assert json.loads(out.read_text())["key"] == 4
    capsys.readouterr()
    messages = {
        f"--out={out}": "scores.json exists already: choose another --out, or give --overwrite",
        f"--out={tmp_path / 'none' / 'a.json'}": "lies in no folder; create that first",
        f"--out={tmp_path / 'a.csv'}": "a.csv is no .json file, as scores are: name one",
        "--overwrite": "--overwrite has no effect without --out",
    }
    (tmp_path / "folder.json").mkdir()
    messages[f"--out={tmp_path / 'folder.json'}"] = "is a folder; name a file in it"
    before = written.stat().st_mtime_ns
    for flag, message in messages.items():
        assert evaluate.main([str(finished_run), flag]) == 2
        assert message in (error := capsys.readouterr().err)
        assert error.count("\n") == 1
    assert written.stat().st_mtime_ns == before  # they are refused before anything is evaluated


@pytest.mark.parametrize("flags", [("--games", "3"), ("--sampled",)])
def test_it_has_no_games_to_choose(finished_run: Path, capsys, flags: tuple[str, ...]):
    assert evaluate.main([str(finished_run), *flags]) == 2
    message = capsys.readouterr().err
    assert message == f"{finished_run} plays no games: leave out --games and --sampled\n"


def test_progress_is_shown_in_its_unit(tmp_path: Path, capsys):
    assert descend(f"--run.directory={tmp_path / 'run'}") == 0
    output = capsys.readouterr().out
    assert re.search(r"descent: 40 gradient steps in [\d.]+s, [\d,]+ gradient steps/s", output)


def test_its_configuration_knows_no_games(finished_run: Path, capsys, tmp_path: Path):
    assert "evaluation_games" not in RunDirectory.open(finished_run).config()["config"]["run"]
    assert descend("--run.evaluation_games=3", f"--run.directory={tmp_path / 'run'}") == 2
    assert "Unrecognized options: --run.evaluation" in capsys.readouterr().err


@pytest.mark.parametrize("score", ["place", "return"])
def test_a_score_is_one_number(score: str, capsys, tmp_path: Path):
    assert descend(f"--score={score}", f"--run.directory={tmp_path / 'run'}") == 2
    message = capsys.readouterr().err
    assert message == f"there is no number '{score}' to score: choose one of distance\n"


def test_it_is_resumed(finished_run: Path, tmp_path: Path):
    """One seed alone, stopped in the middle, arrives where two side by side do."""
    directory = tmp_path / "run"
    alone = ["--run.num_seeds=1", "--run.seed=1", f"--run.directory={directory}"]
    assert descend(*alone, "--run.total_steps=15", "--run.chunk_steps=10") == 0
    assert checkpoint.steps(directory / "checkpoints") == [3]
    assert descend(f"--resume={directory}", "--run.total_steps=40") == 0
    *_, last = read_metrics(directory)
    *_, expected = read_metrics(finished_run)
    assert (last["seed"], last["steps"]) == (1, 40)
    np.testing.assert_allclose(last["agent"]["place"], expected["agent"]["place"], rtol=1e-5)
