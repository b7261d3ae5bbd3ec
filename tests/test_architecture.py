"""The examples of ARCHITECTURE.md run as they stand, from the files the page says they are.

Those of README.md run as they stand, too, with what a clone has.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

import envs
import jaxrl.agents
import train
from envs.checker import env_checker
from jaxrl.agent_checker import agent_checker
from jaxrl.evaluate import evaluate
from jaxrl.networks.mlp import MLP, ActorCritic
from tests.test_layering import LAYERS, ROOT, violations
from train import evaluate as evaluate_command
from train.host.command_line import command
from train.policies import export

TEXT = (ROOT / "ARCHITECTURE.md").read_text()
# A block that is a file follows that file's name; the other block brings two files together.
FILES = dict(re.findall(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)^```", TEXT, re.M | re.S))
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
README = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
(MEETING,) = (block for block in BLOCKS if block not in FILES.values())
PROGRAM = "corridor_run.py"


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files of the page, found as if they stood among ours."""
    for path, source in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(source)
    for package in (envs, jaxrl.agents):
        folder = tmp_path.joinpath(*package.__name__.split("."))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)  # scores of policies are written into runs/ there
    yield tmp_path
    for path in FILES:  # or the next test would get these, whose files are gone
        package, _, name = module_name(path).rpartition(".")
        sys.modules.pop(module_name(path), None)
        if package:
            vars(sys.modules[package]).pop(name, None)


def module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def expected_steps(size: int, slip: float) -> float:
    """Mean length of an episode that always walks right, by solving for the hitting times."""
    steps = np.eye(size - 1)
    for cell in range(size - 1):
        if cell + 1 < size - 1:
            steps[cell, cell + 1] -= 1 - slip
        steps[cell, max(cell - 1, 0)] -= slip
    return float(np.mean(np.linalg.solve(steps, np.ones(size - 1))))


@pytest.mark.slow
def test_the_front_page_runs_and_learns(capsys):
    """Its corridor takes 7 - cell steps from a start that is uniform over 0 to 6: 4 on average."""
    for block in README:
        names: dict = {}
        exec(compile(block, "README.md", "exec"), names)
    assert float(capsys.readouterr().out) == pytest.approx(4.0, abs=0.2)
    env_checker(names["Corridor"]())


def test_the_page_has_an_environment_an_agent_and_a_program():
    folders = sorted(path.rpartition("/")[0] for path in FILES)
    assert folders == ["", "envs", "jaxrl/agents"]
    assert PROGRAM in FILES


@pytest.mark.slow
def test_the_examples_meet_and_learn(examples: Path, key: jax.Array):
    names: dict = {}
    exec(compile(MEETING, "ARCHITECTURE.md", "exec"), names)
    assert Path(names["a2c"].__file__).is_relative_to(examples)
    env, length = names["env"], names["mean_length"]
    optimum = expected_steps(8, env.default_params.slip)
    assert float(np.mean(length[:5])) > 3 * optimum
    assert float(np.mean(length[-50:])) < 1.5 * optimum
    assert float(np.min(names["arrived"][-50:])) == 1.0

    network = names["ActorCritic"](names["MLP"]((32,)), env.num_actions)
    greedy = names["a2c"].make(network, names["a2c"].Config(), greedy=True)
    games = evaluate(
        env, env.default_params, greedy, names["state"].agent, key, 64, 16, max_steps=2_000
    )
    assert bool(np.all(games.complete))
    assert float(np.mean(games.length)) == pytest.approx(optimum, rel=0.1)  # five standard errors


def test_the_example_environment_keeps_the_contract(examples: Path):
    env_checker(importlib.import_module("envs.corridor").Corridor(size=5))


def test_the_line_that_names_the_example_makes_it_known(examples: Path, monkeypatch):
    """`envs` keeps names, not classes, and imports them when asked: the line is as it is read."""
    (line,) = re.findall(r'line `("Corridor-v0": [^`]*),` to `ALL`', TEXT)
    monkeypatch.setattr(envs, "ALL", envs.ALL | ast.literal_eval(f"{{{line}}}"))
    env, params = envs.make("Corridor-v0", size=5)
    assert type(env).__module__ == "envs.corridor"
    assert env.observation_space(params).shape == (5,)


def test_the_example_agent_keeps_the_contract(examples: Path):
    env = importlib.import_module("envs.corridor").Corridor(size=5)
    a2c = importlib.import_module("jaxrl.agents.a2c")
    network = ActorCritic(MLP((4,)), env.num_actions)
    agent, greedy = (a2c.make(network, a2c.Config(normalise=x), x) for x in (False, True))
    agent_checker(agent, env, env.default_params, greedy)


@pytest.mark.slow
def test_the_example_program_has_all_that_ours_have(examples: Path, tmp_path: Path, capsys):
    """Trains, is resumed, evaluated again, exported, and begun with as a policy."""
    # train
    program = importlib.import_module("corridor_run").PROGRAM
    run = tmp_path / "run"
    budget = ["--run.total-steps=150000", "--run.chunk-steps=50000", "--run.evaluation-games=20"]
    assert command.main(program, [*budget, f"--run.directory={run}"]) == 0
    assert (run / "learning_curve.png").is_file()
    evaluation = json.loads((run / "eval.json").read_text())
    assert evaluation["score"] == "arrived"
    assert evaluation["seeds"][0]["arrived"]["mean"] == 1.0
    greedy = evaluation["seeds"][0]["length"]["mean"]
    # resume, and evaluate again
    assert command.main(program, ["--resume", str(run), "--run.total-steps=200000"]) == 0
    steps = [json.loads(row)["steps"] for row in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps))
    assert steps[-1] >= 200_000
    assert evaluate_command.main([str(run), "--games=20", "--sampled"]) == 0
    sampled = json.loads((run / "eval.json").read_text())
    assert sampled["greedy"] is False
    assert sampled["seeds"][0]["length"]["mean"] != greedy
    assert evaluate_command.main([str(run), "--games=20"]) == 0
    # export, and act
    policy = tmp_path / "corridor.safetensors"
    assert export.main(["export", str(run), str(policy)]) == 0
    assert evaluate_command.main(["--policy", str(policy), "--games=20"]) == 0
    assert export.main(["compile", "--policy", str(policy)]) == 0
    player = train.load(run)
    np.testing.assert_array_equal(player.act(np.eye(8, dtype=np.float32))[0][:7], 1)  # the right
    assert player.env == importlib.import_module("envs.corridor").Corridor(8)
    assert train.load(policy).act(np.eye(8)[0])[0] == 1
    # begin a run with the policy
    policy_flags = [*budget, f"--run.policy={policy}", f"--run.directory={tmp_path / 'second'}"]
    assert command.main(program, policy_flags) == 0
    capsys.readouterr()
    # mistakes are refused in one line
    for mistake in ("--agent.learning-rate=fast", "--agent.discount=1.5", "--size=0"):
        assert command.main(program, [mistake]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_the_table_is_the_enforced_one():
    rows = re.findall(r"^\| (\d) \| (.*?) \|", TEXT, re.M)
    names = lambda cell: re.findall(r"(\w+)(?:\.py|/)`", cell.replace("`jaxrl/", "`"))
    assert {int(row): set(names(cell)) for row, cell in rows} == dict(enumerate(map(set, LAYERS)))


def test_the_examples_keep_the_layers(examples: Path):
    for path, source in FILES.items():
        if "/" not in path:
            continue  # not among ours: it may import whatever it likes
        assert violations(module_name(path), source) == []


def test_the_examples_are_in_style(examples: Path):
    for check in (["check"], ["format", "--diff"]):
        config = ["--config", str(ROOT / "pyproject.toml")]
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *check, *config, str(examples)],
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stdout + run.stderr
