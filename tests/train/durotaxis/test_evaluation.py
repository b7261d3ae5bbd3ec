"""Colonies are evaluated, summarised and drawn; what cannot be is refused."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from envs.durotaxis.rewards.registry import Ending
from envs.durotaxis.rules import Colony
from jaxrl import evaluate as jaxrl_evaluate
from jaxrl.numerics.statistics import wilson
from tests.train.durotaxis.colonies import COUNT, SMALL, rows_of
from tests.train.images import assert_drawn
from train import evaluate as evaluate_command
from train.allo.program import PROGRAM as ALLO
from train.durotaxis import program, strip_pictures
from train.durotaxis.config import Config, Experiment, make_env
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes import tables
from train.durotaxis.episodes.record import Episode
from train.durotaxis.evaluation import evaluate
from train.durotaxis.evaluation.options import Options, apply_options
from train.durotaxis.presets import PRESETS
from train.durotaxis.training import make_parts
from train.host.files.run_directory import RunDirectory
from train.host.program import Run
from train.host.running import saved_runs
from train.host.scoring import games
from train.host.training import Evaluation


def make_results(arrived: list[bool], length: list[int], progress: list[float]):
    column: Any = lambda values: np.array(values)[:, None]
    outcome = {"arrived": column(arrived), "progress": column(progress)}
    outcome |= {"num_nodes": column(length), "reward_way": column(progress)}
    complete: Any = np.ones((len(arrived), 1), bool)
    return jaxrl_evaluate.Episodes(
        column(progress), column(length), column(arrived), column(arrived), outcome, complete
    )


def test_the_climb_to_show():
    some = make_results([True, False, True, True, False], [40, 90, 37, 50, 1], [1, 0.9, 1, 1, 0.1])
    assert colonies.typical_index(some) == 0
    none = make_results([False, False, False], [40, 90, 37], [0.2, 0.5, 0.3])
    assert colonies.typical_index(none) == 1


def test_a_summary_counts_goals_and_nothing_else():
    summary = tables.summary(make_results([True, False, True], [40, 90, 50], [1, 0.5, 0.75]))
    low, high = wilson(2, 3)
    assert summary["arrived"] == {"mean": pytest.approx(2 / 3), "low": low, "high": high}
    assert summary["steps_to_goal"]["mean"] == 45
    assert summary["length"] == {
        "mean": 60, "median": 50, "std": pytest.approx(np.sqrt(700)), "min": 40, "max": 90
    }  # fmt: skip
    assert summary["rewards"] == {"way": tables.spread(np.array([1, 0.5, 0.75]))}
    none = tables.summary(make_results([False], [9], [0.5]))
    assert set(none["steps_to_goal"].values()) == {None}
    cut = make_results([True, False], [40, 90], [1, 0.5])
    summary = tables.summary(cut._replace(complete=np.array([[True], [False]])))
    assert (summary["episodes"], summary["arrived"]["mean"], summary["length"]["max"]) == (
        1,
        1.0,
        40,
    )


@pytest.fixture
def run(parts, tmp_path: Path, monkeypatch) -> Run:
    """A run whose agent acts at random: there is no network to compile."""

    def make(config: Config, greedy: bool = False) -> tuple:
        make_parts(config, greedy)  # refuses what does not fit together
        return *make_env(config.env), parts[2]

    config = replace(PRESETS["linear"].config, env=SMALL)
    RunDirectory(tmp_path).write_config("durotaxis", "linear", config)
    run = Run(tmp_path, program.PROGRAM, config, 7, [()])
    monkeypatch.setattr(saved_runs, "load", lambda directory, best: run)
    for module in (evaluate, program):
        monkeypatch.setattr(module, "make_parts", make)
    return run


@pytest.mark.slow
def test_evaluation_on_other_ground(run: Run, capsys):
    flags = f"--substrate exponential --m 0.02 --b 1.5 --episodes {COUNT} --max-steps 9"
    for _ in range(2):
        assert evaluate_command.main([str(run.directory), *flags.split()]) == 0
    folders = sorted(run.directory.glob("eval-exponential-m0.02-b1.5-*"))
    assert len(folders) == 2  # nothing is overwritten
    assert "arrived" in capsys.readouterr().out
    assert not (run.directory / "eval.json").exists()
    folder = folders[0]
    episodes, rows = rows_of(folder / "episodes.csv"), rows_of(folder / "trajectory.csv")
    assert len(episodes) == COUNT
    for number, episode in enumerate(episodes):
        mine = [row for row in rows if int(row["episode"]) == number]
        assert int(episode["length"]) == int(mine[-1]["step"]) <= 9
        assert int(episode["final_nodes"]) == int(mine[-1]["num_nodes"])
        assert float(episode["farthest_x"]) == max(float(row["node_x"]) for row in mine)
        assert float(episode["centroid_start"]) == float(mine[0]["centroid_x"])
        rewards = [float(value) for name, value in episode.items() if name.startswith("reward_")]
        assert sum(rewards) == pytest.approx(float(episode["return"]), rel=1e-4, abs=1e-5)
    for row in rows[::20]:
        expected = 1.5 * np.exp(0.02 * int(float(row["node_x"])))
        assert float(row["node_intensity"]) == pytest.approx(expected, rel=1e-5)
    summary = json.loads((folder / "summary.json").read_text())
    seed = summary["seeds"][0]
    assert summary["experiment"]["ground"] == "exponential"
    assert seed["endings"] == Counter(episode["ending"] for episode in episodes)
    assert seed["arrived"]["mean"] == np.mean([e["arrived"] == "True" for e in episodes])
    returns = [float(episode["return"]) for episode in episodes]
    assert seed["return"]["std"] == pytest.approx(np.std(returns, ddof=1), rel=1e-5)
    assert_drawn(folder / "trajectories.png")
    assert "jax" in summary["versions"]


def test_evaluation_of_the_runs_own_experiment(run: Run):
    out = run.directory / "scores.json"
    flags = [f"--episodes={COUNT}", "--key=4", f"--out={out}"]
    assert evaluate_command.main([str(run.directory), *flags]) == 0
    (summary,) = run.directory.glob("eval-*/summary.json")
    assert json.loads(out.read_text()) == json.loads(summary.read_text())
    content = json.loads((run.directory / "eval.json").read_text())
    assert (content["key"], content["updates"], content["score"]) == (4, 7, "arrived")
    assert content["seeds"][0]["games"] == COUNT
    assert len(list(run.directory.glob("eval-linear-m0.05-b1-*"))) == 1


def test_the_room_for_nodes_grows_with_what_is_asked_for():
    options = Options("", threshold_nodes=20.5, num_founders=12, height=99)
    changed_experiment = apply_options(SMALL, options)
    changes = {"threshold_nodes": 20.5, "num_founders": 12, "height": 99, "capacity": 21}
    assert changed_experiment == replace(SMALL, **changes)
    assert apply_options(SMALL, Options("")) == SMALL


@pytest.mark.parametrize(
    ("name", "has_range"), [("a.npy", False), ("a.tif", False), ("a.png", True)]
)
def test_black_and_white_of_a_run_hold_for_greys_alone(tmp_path, name, has_range):
    values = np.ones((40, 50), np.float32)
    np.save(tmp_path / "a.npy", values)
    Image.fromarray(values).save(tmp_path / "a.tif")
    Image.fromarray(values.astype(np.uint8)).save(tmp_path / "a.png")
    trained = replace(SMALL, field_file="gel.png", field_range=(1.0, 40.0))
    path = str(tmp_path / name)
    experiment = apply_options(trained, Options("", field_file=path))
    assert experiment.field_range == ((1.0, 40.0) if has_range else None)
    make_env(experiment)
    own_range = Options("", field_file=path, field_range=(2.0, 3.0))
    assert apply_options(trained, own_range).field_range == (2.0, 3.0)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--episodes 0", "--episodes is 0, expected a number at least 1"),
        ("--max-steps 0", "--max-steps is 0"),
        ("--substrate exponential --m 2", "which float32 cannot hold"),
        ("--substrate random --m 0.1", "--m would have no effect, as random ground"),
        ("--field-file FIELD --b 1 --width 50", "--b and --width would have no effect"),
        ("--field-file FIELD --substrate linear", "exclude each other"),
        ("--field-file nowhere.npy", "there is no file nowhere.npy"),
        ("--field-file FIELD --field-range 1 2", "--field-range tells the stiffness of"),
        ("--field-file FIELD --field-pixel-size 500 --pixel-size 0.5", "give a larger --pixel-siz"),
        ("--width 10", "--width is 10, expected a number at least 20"),
        ("--num-founders 0", "--num-founders is 0"),
        ("--threshold-nodes nan", "--threshold-nodes is nan"),
        ("--substrate cubic", "cubic"),
        ("--games 3", "Unrecognized options"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run, flags, complaint, capsys):
    field = run.directory / "field.npy"
    np.save(field, np.ones((40, 50), np.float32))
    arguments = [str(run.directory), *flags.replace("FIELD", str(field)).split()]
    assert evaluate_command.main(arguments) == 2
    error_output = capsys.readouterr().err
    assert complaint in error_output
    assert error_output.count("\n") == 1
    assert {entry.name for entry in run.directory.iterdir()} == {"config.yaml", "field.npy"}


@pytest.mark.slow
def test_a_run_is_drawn_at_its_end_and_again(run: Run, episodes, monkeypatch):
    def play(*arguments) -> list[Episode]:
        keep = arguments[6] if len(arguments) > 6 else range(COUNT)
        return [episodes[k] for k in keep]

    monkeypatch.setattr(colonies, "play", play)
    row = {"seed": 0, "updates": 1, "steps": 9, "episodes": 3, "seconds": 1.0, "agent": {}}
    row |= {"finished": {"arrived": 0.5}}
    (run.directory / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    played_games = games.GameResults([colonies.episode_results(episodes)], 0.0, 0.0)
    run_evaluation = Evaluation({}, "", played_games)
    training: Any = SimpleNamespace(evaluate=lambda agents, seeds, keys: run_evaluation)
    monkeypatch.setattr(program, "make_training", lambda config: training)
    pictures = [run.directory / name for name in ("learning_curve.png", "climb.gif", "climb.png")]
    assert program.draw(run, COUNT, jax.random.key(2), run_evaluation) == pictures
    before = [path.read_bytes() for path in pictures[1:]]
    assert program.draw(run, COUNT, jax.random.key(2)) == pictures
    assert [path.read_bytes() for path in pictures[1:]] == before
    for path in pictures:
        assert_drawn(path)


def test_other_runs_know_no_such_flags(tmp_path: Path, capsys):
    preset, (config, *_) = next(iter(ALLO.presets.items()))
    RunDirectory(tmp_path).write_config("allo", preset, config)
    assert evaluate_command.main([str(tmp_path), "--m", "1"]) == 2
    assert "Unrecognized options: --m" in capsys.readouterr().err
    RunDirectory(tmp_path).write_config("chess", preset, config)
    assert evaluate_command.main([str(tmp_path), "--m", "1"]) == 2
    assert "is of the program chess, which is unknown here" in capsys.readouterr().err


def drawn_strip(width: int, height: int, spread: float, monkeypatch: pytest.MonkeyPatch) -> Figure:
    """The figure of the strip of a colony of 99 nodes, `spread` px wide and high, on its way."""
    _, params = make_env(Experiment(width=width, height=height))
    places = np.random.default_rng(0).random((2, 301, 99)) * spread
    x, y = places[0] + np.linspace(0, width - spread, 301)[:, None], places[1] + height / 3
    link = np.tile(np.arange(-1, 98), (301, 1))
    colony: Any = Colony(*(x, y, link, 0 * link, np.full(301, 99)))  # pyright: ignore
    outcome = {name: name == "retreated" for name in Ending._fields}
    way, law = np.stack([x.mean(1), y.mean(1)], -1), jax.tree.map(np.asarray, params.law)
    ended = SimpleNamespace(complete=True, outcome=outcome)
    content = (colony, link < -1, link + 1, x, way, x[:, 0], {}, x[1:, 0], {}, law, ended)
    episode = Episode(*content)
    figures = []
    monkeypatch.setattr(strip_pictures, "save", lambda figure, path: figures.append(figure))
    strip_pictures.strip(episode, params, "")
    figures[0].draw_without_rendering()
    return figures[0]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("width", "height"), [(20, 400), (600, 400), (60, 300), (200, 220)])
def test_titles_of_a_strip_cross_nothing(width: int, height: int, monkeypatch):
    *panels, bar = drawn_strip(width, height, 15.0, monkeypatch).axes
    assert "retreated" in panels[-1].get_title("left")
    titles = [axes._left_title.get_window_extent() for axes in panels]  # pyright: ignore
    for title in titles:
        others = [bar.get_tightbbox(), *(axes.get_window_extent() for axes in panels)]
        assert not any(title.overlaps(x) for x in others + [x for x in titles if x is not title])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("spread", "count"), [(30.0, 6), (60.0, 0)])
def test_a_close_up_is_larger_than_what_it_shows(spread: float, count: int, monkeypatch):
    """Its side is 52 % of the shorter side of the ground, 83 px; it shows 60 px, or 84 px."""
    *panels, _ = drawn_strip(200, 160, spread, monkeypatch).axes
    assert sum(len(axes.child_axes) for axes in panels) == count
