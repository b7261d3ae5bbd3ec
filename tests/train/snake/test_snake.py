"""`python -m train.snake` from the outside: a small run, what it leaves, and what it refuses."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from jaxrl import checkpoint
from tests.train.host import crashes
from train import evaluate, render
from train.host.command_line import command
from train.host.compilation import compiled
from train.host.files.metrics_file import read_metrics
from train.host.files.run_directory import CHECKPOINTS
from train.snake.program import PROGRAM
from train.snake.training import ENDINGS

SMALL = {
    "ppo": ["--env.rows=5", "--env.cols=6", "--loop.num_envs=8", "--loop.num_steps=16"],
    "dqn": ["--env.rows=5", "--env.cols=5", "--loop.num_envs=8", "--agent.capacity=500"],
}
BUDGET = {"ppo": 6 * 128, "dqn": 2_048}
MOST_FOOD = {"ppo": 27, "dqn": 22}  # a snake begins with three cells of the board


def snake_command(*arguments: str) -> int:
    return command.main(PROGRAM, arguments)


def train(directory: Path, preset: str) -> int:
    budget = f"--run.total_steps={BUDGET[preset]}"
    chunk = f"--run.chunk_steps={BUDGET[preset] // 6}"
    flags = [budget, chunk, "--run.checkpoint_every=3", "--run.evaluation_games=4"]
    return snake_command(preset, *SMALL[preset], *flags, f"--run.directory={directory}")


def final_state(directory: Path, preset: str):
    config, _ = command.parse(PROGRAM, ["--resume", str(directory)])
    training = PROGRAM.training(config)
    template = jax.eval_shape(compiled.init_all(training.init, config.run.members.starts), 0)
    return checkpoint.restore(directory / CHECKPOINTS, template)[0]


@pytest.fixture(scope="module", params=["ppo", pytest.param("dqn", marks=pytest.mark.slow)])
def finished_run(request, tmp_path_factory) -> tuple[Path, str]:
    directory = tmp_path_factory.mktemp(request.param) / "run"
    assert train(directory, request.param) == 0
    return directory, request.param


def test_a_run_leaves_record_score_curve_and_film(finished_run):
    directory, preset = finished_run
    rows = read_metrics(directory)
    assert [row["steps"] for row in rows][-1] == BUDGET[preset]
    assert len(rows) == 6
    scores = json.loads((directory / "eval.json").read_text())["seeds"][0]
    assert scores["games"] == 4
    assert 0 <= scores["score"]["mean"] <= MOST_FOOD[preset]
    for row in rows:
        ways = [row["finished"][name] for name in ENDINGS if name]
        if None not in ways:
            assert (
                0 <= sum(ways) <= 1 + 1e-6
            )  # each game ends in one of these ways, or by the clock
    for name in ("learning_curve", "endings", "scores"):
        with Image.open(directory / f"{name}.png") as picture:
            assert picture.width > 500
    with Image.open(directory / "best_game.gif") as film:
        assert film.n_frames > 1  # pyright: ignore


@pytest.mark.slow
def test_a_finished_run_is_evaluated_and_drawn_again(finished_run):
    directory, _ = finished_run
    (directory / "best_game.gif").unlink()
    assert evaluate.main([str(directory), "--games", "3", "--sampled"]) == 0
    evaluation = json.loads((directory / "eval.json").read_text())
    assert evaluation["seeds"][0]["games"] == 3
    assert evaluation["greedy"] is False
    assert render.main([str(directory), "--games", "3"]) == 0
    assert (directory / "best_game.gif").exists()


@pytest.mark.slow
def test_stopping_and_resuming_changes_nothing(finished_run, tmp_path):
    """From what a crash after the first of two checkpoints leaves."""
    directory, preset = finished_run
    interrupted = tmp_path / "run"
    crashes.after_the_first_checkpoint(directory, interrupted)
    assert snake_command("--resume", str(interrupted), "--run.evaluation_games=0") == 0
    assert len(read_metrics(interrupted)) == 6
    before, after = final_state(directory, preset), final_state(interrupted, preset)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--env.rows=3"], "--env.rows is 3, expected a number at least 4"),
        (["--env.cols=33"], "--env.cols is 33, expected a number at least 4 and at most 32"),
        (["--env.obstacles=10"], "obstacles is 10; a 10×10 board takes 0 to 9"),
        (["--env.smallest-side=11"], "--env.smallest-side is 11; expected 4 to 10 cells"),
        (
            ["--env.square-boards"],
            "--env.square-boards has no effect, as it needs env.smallest_side",
        ),
        (["--env.observation=eyes"], "eyes"),
        (["--agent.speed=3"], "--agent.speed"),
        (["fast"], f"there is no preset fast: choose one of {', '.join(PROGRAM.presets)}"),
        (["--loop.num_envs=10", "--loop.num_steps=3"], "30 transitions cannot be split into 16"),
        (["--agent.learning_rate=nan"], "--agent.learning-rate is nan, expected a number above 0"),
        (["--agent.learning_rate=-1e-3"], "--agent.learning-rate is -0.001"),
        (
            ["dqn", "--agent.discount=1.1"],
            "--agent.discount is 1.1, expected a number at least",
        ),
        (
            ["pqn", "--agent.epsilon_end=2"],
            "--agent.epsilon-end is 2.0, expected a number",
        ),
        (["--agent.final_discount=1"], "--agent.final-discount is 1.0, expected a number"),
        (["--loop.num_envs=0"], "--loop.num-envs is 0, expected a number at least 1"),
        (["dqn", "--agent.batch_size=0"], "--agent.batch-size is 0"),
        (
            ["a2c", "--agent.discount=1.5"],
            "--agent.discount is 1.5, expected a number at least",
        ),
        (["--env.grown-share=-1"], "--env.grown-share is -1.0, expected a number at least 0.0"),
        (["--env.rewards.food=nan"], "--env.rewards.food is nan, expected a number that is finite"),
        (["--agent.adam-epsilon=nan"], "--agent.adam-epsilon is nan, expected a number above 0.0"),
        (["--network.hidden", "-1"], "--network.hidden[0] is -1, expected a number at least 1"),
        ([f"--loop.num-envs={10**30}"], f"--loop.num-envs is {10**30}, expected a number at least"),
        ([f"--run.total-steps={10**30}"], f"--run.total-steps is {10**30}, expected a number at"),
        (["--run.evaluation-games=1000000000000"], "--run.evaluation-games is 1000000000000, exp"),
        (["--resume=/nowhere"], "/nowhere is not a run directory"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_bad_input_is_one_line_and_exit_code_2(flags, message, capsys, tmp_path):
    directory = tmp_path / "run"
    assert snake_command(*flags, f"--run.directory={directory}") == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not directory.exists()


def test_another_configuration_is_refused_and_shown(finished_run, capsys):
    directory, _ = finished_run
    code = snake_command("--resume", str(directory), "--network.hidden", "32")
    assert code == 2
    assert "network.hidden: [128, 128] -> [32]" in capsys.readouterr().err


@pytest.mark.parametrize("of", [evaluate, render])
def test_what_is_no_run_is_refused(of, capsys, tmp_path):
    assert of.main([str(tmp_path)]) == 2
    assert "is not a run directory" in capsys.readouterr().err
