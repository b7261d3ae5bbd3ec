"""`python -m train.two_snake` from the outside: a small run and what it refuses."""

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from tests.train.host import crashes
from tests.train.two_snake.two_snake_runs import assert_refused, final_state, two_snake_command
from train import evaluate as evaluate_command
from train import render
from train.host.files.metrics_file import read_metrics
from train.host.running import saved_runs
from train.host.showing.live_game import Game
from train.policies import export
from train.two_snake import scene
from train.two_snake.training import ENDINGS

pytestmark = pytest.mark.usefixtures("tournaments_compiled_once")
SMALL = (
    "--env.rows=5 --env.cols=9 --env.max-steps-in-episode=12 --network.hidden 8 "
    "--agent.minibatches=4 --agent.epochs=1 --loop.num-envs=8 --loop.num-steps=16 "
    "--curriculum.static.share=0.25 --curriculum.random.share=0 --curriculum.greedy.share=0.25 "
    "--curriculum.greedy.won=0 --curriculum.greedy.target=1 --curriculum.frozen.share=0.25 "
    "--curriculum.pool.target=2 --rivals.snapshot-updates=1 --rivals.pool-size=2 "
    "--run.total-steps=768 --run.chunk-steps=128 --run.checkpoint-every=4 "
    "--run.evaluation-games=7"
)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("two_snake") / "run"
    assert two_snake_command(*SMALL.split(), f"--run.directory={directory}") == 0
    return directory


@pytest.mark.slow
def test_a_snake_learns_among_three_and_meets_two_as_well(tmp_path):
    """From the first stage to the pool, in which former selves move the two others."""
    directory = tmp_path / "three"
    assert two_snake_command(*SMALL.split(), "--env.snakes=3", f"--run.directory={directory}") == 0
    rows = read_metrics(directory)
    assert [row["agent"]["stage"] for row in rows] == [0, 0, 1, 1, 2, 2]
    seed = json.loads((directory / "eval.json").read_text())["seeds"][0]
    for summary in seed["tournament"].values():
        assert sum(summary[x]["mean"] for x in ("won", "draw", "lost")) == pytest.approx(1)
    with Image.open(directory / "against_greedy.gif") as film:
        assert getattr(film, "n_frames", 1) > 1
    game = Game(scene.live(saved_runs.load(directory), 0), 0)
    while not game.ending:
        game.step()
    moment = game.moment_data()
    assert moment["frames"]["score"].shape == (1, 3)
    assert {"own_head", "other_head", "third_head"} < set(moment["frames"])
    pair = two_snake_command(
        *SMALL.split(),
        *(f"--run.policy={export.export(directory, str(tmp_path / 'three.safetensors'))}",),
        f"--run.directory={tmp_path / 'pair'}",
    )
    assert pair == 0


@pytest.mark.slow
def test_a_run_goes_through_its_stages_and_leaves_score_and_pictures(finished_run: Path):
    rows = read_metrics(finished_run)
    assert [row["steps"] for row in rows] == [128, 256, 384, 512, 640, 768]
    # two updates at most in each stage but the last, and the games of `greedy` need not be won
    assert [row["agent"]["stage"] for row in rows] == [0, 0, 1, 1, 2, 2]
    # each update but the frozen ones, and each new stage, add one to the untrained member
    assert [row["agent"]["snapshots"] for row in rows] == [2, 3, 5, 6, 7, 7]
    for row in rows:
        if row["finished"]["won"] is not None:
            met = [x for name, x in row["finished"].items() if name.startswith("met_")]
            assert sum(met) == pytest.approx(1)
            ways = [row["finished"][name] for name in ENDINGS if name]
            assert sum(ways) <= 1 + 1e-6
    seed = json.loads((finished_run / "eval.json").read_text())["seeds"][0]
    assert seed["games"] == 8  # an even number
    assert set(seed["tournament"]) == {"static", "random", "greedy", "defensive", "itself"}
    for summary in seed["tournament"].values():
        assert sum(summary[x]["mean"] for x in ("won", "draw", "lost")) == pytest.approx(1)
        assert summary["score"]["max"] <= 2  # the target of the last stage
    for name, is_film in (
        ("learning_curve.png", False),
        ("endings.png", False),
        ("scores.png", False),
        ("against_greedy.gif", True),
        ("against_defensive.gif", True),
    ):
        with Image.open(finished_run / name) as image:
            assert (getattr(image, "n_frames", 1) > 1) == is_film


@pytest.mark.slow
def test_a_resumed_run_is_the_same_run(finished_run: Path, tmp_path: Path):
    interrupted = tmp_path / "run"
    crashes.after_the_first_checkpoint(finished_run, interrupted)
    assert two_snake_command("--resume", str(interrupted), "--run.evaluation_games=0") == 0
    without_times = [
        [{k: v for k, v in row.items() if "second" not in k} for row in read_metrics(directory)]
        for directory in (finished_run, interrupted)
    ]
    assert without_times[0] == without_times[1]
    before, after = final_state(finished_run), final_state(interrupted)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_tournament_is_played_by_command(finished_run: Path, capsys):
    before = json.loads((finished_run / "eval.json").read_text())
    out = finished_run.parent / "scores.json"
    flags = ["--games=7", "--key=5", f"--out={out}"]
    assert evaluate_command.main([str(finished_run), *flags]) == 0
    assert out.read_bytes() == (finished_run / "eval.json").read_bytes()
    assert "0 defensive" in capsys.readouterr().out
    after = json.loads((finished_run / "eval.json").read_text())
    assert (after["key"], after["updates"], after["greedy"]) == (5, 6, True)
    assert after["seeds"][0]["tournament"] != before["seeds"][0]["tournament"]
    assert evaluate_command.main([str(finished_run), "--games=0"]) == 2
    assert "--games is 0, expected a number at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_policy_is_filmed_and_plays_the_tournament_without_its_run(
    finished_run: Path, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    policy = export.export(finished_run, str(tmp_path / "small.safetensors"))
    assert render.main([f"--policy={policy}", "--games=7"]) == 0
    *paths, line = capsys.readouterr().out.splitlines()
    strips, films = paths[::2], paths[1::2]
    assert strips == [path.replace(".gif", "_strip.png") for path in films]
    assert films == [f"runs/policy-small/against_{name}.gif" for name in ("greedy", "defensive")]
    for path in films:
        with Image.open(path) as film:
            assert getattr(film, "n_frames", 1) > 1
    share = r"[\d.]+%"
    assert re.fullmatch(rf"7 games: won {share} against greedy and {share} against defensive", line)
    assert evaluate_command.main([f"--policy={policy}", "--games=7", "--key=5"]) == 0
    of_policy = json.loads(Path("runs/policy-small/eval.json").read_text())
    assert evaluate_command.main([str(finished_run), "--games=7", "--key=5"]) == 0
    of_run = json.loads((finished_run / "eval.json").read_text())
    assert (of_policy["updates"], of_policy["greedy"]) == (6, True)
    assert of_policy["seeds"][0]["tournament"] == of_run["seeds"][0]["tournament"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env.cols=8", "--env.cols is 8, expected a number at least 9"),
        ("--curriculum.pool.target=0", "--curriculum.pool.target is 0, expected a number at"),
        ("--curriculum.pool.opponents.rival=-1", "opponents.rival is -1.0, expected a number"),
        ("greedy --curriculum.greedy.share=0", "no stage of the curriculum has a share above 0"),
        ("direct --curriculum.pool.opponents.rival=0", "curriculum.pool.opponents are all 0"),
        ("--rivals.pool-size=0", "--rivals.pool-size is 0, expected a number"),
        ("--rivals.snapshot-updates=0", "--rivals.snapshot-updates is 0, expected a number"),
        ("--agent.learning-rate=nan", "--agent.learning-rate is nan, expected a number"),
        pytest.param(
            "guest --opponent snake-10x10",
            "expected players of train.two_snake",
            marks=pytest.mark.slow,  # test_ranking.py refuses it, too
        ),
        ("--curriculum.pool.opponents.guest=1", "say who that is with --opponent"),
        ("direct --opponent somebody", "--opponent has no effect, as no stage has a guest"),
        ("dqn --network.mask", "network.mask needs a preset of PPO"),
        ("dqn --agent.categorical", "needs a network with atoms"),
        (
            "steep",
            "there is no preset steep: choose one of curriculum, curriculum_wide, direct, greedy, "
            "guest, dqn",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path):
    assert_refused(flags, message, tmp_path / "run", capsys)
