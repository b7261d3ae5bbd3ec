"""DQN goes through the stages, and meets guests."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.train.two_snake.two_snake_runs import assert_refused, final_state, two_snake_command
from train import evaluate as evaluate_command
from train.host.files.metrics_file import read_metrics
from train.policies import export

pytestmark = pytest.mark.usefixtures("tournaments_compiled_once")
TINY = (
    "--env.rows=5 --env.cols=9 --env.max-steps-in-episode=12 --loop.num-envs=8 "
    "--loop.num-steps=16 --run.total-steps=512 --run.chunk-steps=128 --run.evaluation-games=4 "
    "--run.evaluate-every=0"
)
TWO_STAGES = (
    "--curriculum.static.share=0 --curriculum.random.share=0 --curriculum.greedy.share=0.5 "
    "--curriculum.frozen.share=0 --rivals.snapshot-updates=1 --rivals.pool-size=2"
)
BY_DQN = (
    "--network.hidden 8 --agent.batch-size=8 --agent.capacity=400 --agent.warmup=64 "
    "--agent.updates-per-rollout=2"
)


@pytest.fixture(scope="module")
def dqn_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("two_snake") / "by_dqn"
    flags = f"dqn {TINY} {TWO_STAGES} {BY_DQN} --run.directory={directory}"
    assert two_snake_command(*flags.split()) == 0
    return directory


@pytest.mark.slow
def test_a_dqn_goes_through_the_stages_too(dqn_run: Path):
    rows = read_metrics(dqn_run)
    assert [row["agent"]["stage"] for row in rows] == [0, 0, 1, 1]
    # the untrained learner, each update, and the new stage
    assert [row["agent"]["snapshots"] for row in rows] == [2, 3, 5, 6]
    assert rows[-1]["agent"]["updates"] == 8
    assert rows[-1]["agent"]["epsilon"] < 1
    (seed,) = json.loads((dqn_run / "eval.json").read_text())["seeds"]
    assert set(seed["tournament"]) == {"static", "random", "greedy", "defensive", "itself"}
    state = final_state(dqn_run)
    pool = jax.tree.leaves(state.agent.pool)
    newest = [x[(6 - 1) % 2] for x in pool]
    jax.tree.map(np.testing.assert_array_equal, newest, jax.tree.leaves(state.agent.learner.params))


@pytest.mark.slow
def test_a_snake_learns_against_one_of_another_network(dqn_run: Path, tmp_path: Path, capsys):
    """PPO against the policy of the DQN; the policy that comes out needs no other file."""
    opponent = export.export(dqn_run, str(tmp_path / "by_dqn.safetensors"))
    game = "--env.observation features --network.no-equivariant"
    flags = f"guest {TINY} {game} --network.hidden 5 7 --agent.minibatches=4".split()
    directory = tmp_path / "run"
    run_flags = [f"--run.directory={directory}", f"--opponent={opponent}"]
    assert two_snake_command(*flags, *run_flags) == 0
    rows = read_metrics(directory)
    assert {row["finished"]["met_guest"] for row in rows if row["episodes"]} <= {1.0}
    learned = export.export(directory, str(tmp_path / "learned.safetensors"))
    opponent.unlink()
    assert evaluate_command.main([f"--policy={learned}", "--games=4"]) == 0
    capsys.readouterr()
    assert two_snake_command(*flags, f"--run.directory={tmp_path / 'no'}", run_flags[1]) == 2
    complaint = capsys.readouterr().err
    assert "by_dqn.safetensors" in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "no").exists()


@pytest.mark.slow
def test_guests_of_other_boards_are_refused(dqn_run: Path, tmp_path: Path, capsys):
    message = "has --env.rows 5, not 10: they cannot meet"
    assert_refused(f"guest --opponent {dqn_run}", message, tmp_path / "run", capsys)
