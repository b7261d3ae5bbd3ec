"""`python -m train` lists what can be started, and helps who forgot a dot."""

from pathlib import Path

import pytest

import train
from train.__main__ import commands, main

FOLDER = Path(train.__file__).parent


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_all_commands_have_a_line(arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    programs = [path.parent.name for path in FOLDER.glob("*/program.py")]
    started = [path.parent.name for path in FOLDER.glob("*/__main__.py")]
    for name in {*programs, *started, "evaluate", "render"} - {"host"}:
        assert len([line for line in lines if line.startswith(f"  {name} ")]) == 1
    assert dict(commands()).keys() == {*started, "evaluate", "render"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("snake dqn --run.seed 3", "write it with a dot: python -m train.snake dqn --run.seed 3\n"),
        ("snak", "there is no train.snak (perhaps snake): python -m train lists what there is\n"),
        ("nothing", "there is no train.nothing: python -m train lists what there is\n"),
    ],
)
def test_a_program_is_a_module(arguments, complaint, capsys):
    assert main(arguments.split()) == 2
    assert capsys.readouterr().err == complaint
