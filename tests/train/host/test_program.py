"""A program in a file of one's own is one like ours: its runs find it again."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import train
from tests.train import tiny
from tests.train.host import descent
from tests.train.images import assert_drawn, saved_figures
from train import evaluate, render
from train.host import program
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.host.plain_config import plain, rebuild
from train.host.program import Program
from train.host.running import saved_runs
from train.host.running.run import train_program
from train.play import __main__ as play
from train.policies import export
from train.snake.program import PROGRAM as SNAKE

ROOT = Path(__file__).resolve().parents[3]
MINE = """
import sys

from tests.train import tiny
from train.host.command_line import command
from train.host.program import Program



def make_training(config):
    return tiny.make_training(config)


PROGRAM = Program("program", tiny.PRESETS, make_training)

if __name__ == "__main__":
    sys.exit(command.main(PROGRAM))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Somewhere else, with a program in a file and a run that it was started for."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "mine.py").write_text(MINE)
    command = [sys.executable, "mine.py", "--run.total-steps=60", "--run.directory=run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
    assert "run/learning_curve.png" in process.stdout
    return folder


@pytest.fixture
def start_folder(folder: Path, monkeypatch) -> Iterator[Path]:
    """The same, as the place where commands are started."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("mine", None)


@pytest.mark.slow
def test_all_commands_know_a_program_of_ones_own(start_folder: Path, capsys):
    assert RunDirectory.open("run").config()["name"] == "mine"
    assert evaluate.main(["run", "--games=3"]) == 0
    assert json.loads(Path("run/eval.json").read_text())["seeds"][0]["games"] == 3
    assert export.main(["export", "run", "walk"]) == 0
    assert export.main(["compile", "--policy", "./walk"]) == 0
    obs = np.array([0.5, 0.0], np.float32)
    action, memory = train.load("run").act(obs)
    assert (train.load("walk").act(obs)[0], memory) == (action, 1)
    Path("run/learning_curve.png").unlink()
    assert render.main(["run"]) == 0
    assert_drawn(Path("run/learning_curve.png"))
    capsys.readouterr()
    assert evaluate.main(["run", "--games=0"]) == 2
    assert "--games is 0, expected a number at least 1" in capsys.readouterr().err
    assert render.main(["--policy", "walk"]) == 2
    advice = "use train.evaluate, or give its Program Views(film=...)"
    assert f"cannot be filmed: {advice}" in error_line(capsys)
    assert play.main(["run", "--terminal"]) == 2
    missing = "has no step_env, get_obs, is_truncated, and the Program no Views(live=...)"
    assert missing in error_line(capsys)


def error_line(capsys) -> str:
    """The one line of a command that failed."""
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


@pytest.mark.slow
def test_elsewhere_it_is_said_where_to_start(folder: Path, capsys):
    assert evaluate.main([str(folder / "run")]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "is of the program mine, which is unknown here: start where its module" in message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import not_installed", "No module named 'not_installed'"),
        ("from json import nothing_like_that", "cannot import name 'nothing_like_that'"),
    ],
)
def test_a_module_that_lacks_another_is_not_unknown(text, reason, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lacking.py").write_text(text)
    with pytest.raises(UsageError, match=f"lacking cannot be imported .{reason}") as error:
        program.find("lacking", "runs/old")
    assert "unknown" not in str(error.value)


def test_a_module_without_the_program_is_said_so(monkeypatch):
    unloadable = Program("elsewhere", tiny.PRESETS, descent.make_training)
    monkeypatch.delattr(descent, "PROGRAM")
    assert unloadable.address == "tests.train.host.descent"
    with pytest.raises(UsageError, match="descent holds no PROGRAM; give Program"):
        program.find(unloadable.address, "runs/old")


def test_a_program_named_as_one_of_ours_is_not_taken_for_it(monkeypatch):
    mine = Program("snake", tiny.PRESETS, tiny.make_training)
    monkeypatch.setattr(tiny, "PROGRAM", mine)
    assert (mine.address, mine.command) == ("tests.train.tiny", "python -m tests.train.tiny")
    assert SNAKE._replace(training=lambda config: None).address == "snake"
    assert SNAKE.command == "python -m train.snake"


def test_programs_are_known_by_their_name_or_their_module():
    assert (SNAKE.address, tiny.PROGRAM.address) == ("snake", "tests.train.tiny")
    ours = Program("snake", {}, tiny.make_training, module="train.snake.program")
    assert ours.address == "snake"
    for example in (SNAKE, tiny.PROGRAM, descent.PROGRAM):
        assert program.find(example.address, "a run") is example


@pytest.mark.parametrize(
    "address", ["nothing", "os", "train.host.command_line.command", "../snake", "", "a b", 3]
)
def test_what_is_no_program_is_refused_in_one_line(address):
    with pytest.raises(UsageError, match=re.escape("runs/old")) as error:
        program.find(address, "runs/old")
    assert "\n" not in str(error.value)


def test_presets_that_are_gone_are_refused_in_one_line(tmp_path: Path):
    content = {"name": tiny.PROGRAM.address, "preset": "best", "config": plain(tiny.Config())}
    (tmp_path / "config.yaml").write_text(json.dumps(content))
    with pytest.raises(UsageError, match="has the preset best, which is unknown here"):
        saved_runs.load(tmp_path)


def test_pictures_of_its_own_are_no_duty(start_folder: Path):
    """Without any it has the curve of its training's score."""
    with saved_figures() as figures:
        (path,) = program.learning_curve(saved_runs.load("run"))
    assert path == Path("run/learning_curve.png")
    assert figures[0].get_suptitle() == "mine, plain"
    assert figures[0].axes[0].get_ylabel() == "right"
    assert figures[0].axes[0].get_xlabel() == "environment steps"


def test_a_configuration_of_another_preset_is_refused_before_it_is_trained():
    """Its run could not be read again; one of the same classes can, by whatever name."""
    dqn = SNAKE.presets["dqn"].config
    with pytest.raises(ValueError, match=r"not of the preset 'near': .* one of dqn, ") as refused:
        train_program(SNAKE, dqn, "near")
    for preset in re.findall(r"\w+", str(refused.value).partition("one of ")[2]):
        assert rebuild(SNAKE.presets[preset].config, plain(dqn)) == dqn
    with pytest.raises(ValueError, match=r"not of the preset 'nearby': .* one of dqn, "):
        train_program(SNAKE, dqn, "nearby")
    SNAKE.refuse_other_preset("near", SNAKE.presets["fill"].config)
