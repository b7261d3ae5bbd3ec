"""Which presets a benchmark looks at, by its command line."""

import sys

import pytest

from bench import flags, memory


@pytest.fixture
def type_in(monkeypatch):
    """Types the arguments of a command."""
    return lambda text: monkeypatch.setattr(sys, "argv", ["bench", *text.split()])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("--presets dqn", ["snake dqn", "two_snake dqn", "gymnax dqn"]),
        ("two_snake snake --presets dqn guest", ["two_snake guest", "two_snake dqn", "snake dqn"]),
    ],
)
def test_presets_are_those_of_the_programs_that_have_them(text, names, type_in):
    type_in(text)
    assert [f"{x.name} {preset}" for x, preset in flags.selected_presets(None)] == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("snake --presets direct", "there is no preset direct of snake"),
        ("sneak", "the command line is of the program sneak"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(text, message, type_in, capsys):
    type_in(text)
    with pytest.raises(SystemExit):
        list(flags.selected_presets(None))
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.slow
def test_a_preset_without_its_data_stops_no_other(type_in, capsys):
    type_in("vector_field goals --presets recordings goals vector_field")
    assert memory.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert "vector_field vector_field: neither environments nor a replay" in lines
    assert any("give --data FILE.npz" in line for line in lines)
    assert any("goals goals: expected the directory of a run" in line for line in lines)
