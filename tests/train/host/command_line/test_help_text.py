"""The help of a command: what has an effect, in lines that fit the terminal."""

import pytest

from tests.train import tiny
from train.host.command_line import help_text
from train.host.command_line.command import parse
from train.host.command_line.help_text import Flag, Group, group_of, text
from train.host.program import find

BOX = """\
│ How long, and where.                      │
│                                           │
│ Two paragraphs.                           │
│ ───────────────────────────────────────── │
│ --run.seed INT                            │
│       Root of all random numbers, and     │
│                                           │
│           more of it. (default:           │
│       0)                                  │
│ --run.kind {one,two,                      │
│ three}                                    │
│       Either. (required)                  │
│ --fast, --no-fast  In a line. (default:   │
│                    False)                 │
"""


def test_boxes_are_unpacked():
    assert group_of("run options", BOX) == Group(
        "run",
        ["How long, and where.", "Two paragraphs."],
        [
            Flag("--run.seed INT", "Root of all random numbers, and more of it. (default: 0)"),
            Flag("--run.kind {one,two,three}", "Either. (required)"),
            Flag("--fast, --no-fast", "In a line. (default: False)"),
        ],
    )


def test_idle_flags_are_left_out_and_lines_fit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "50")
    groups = [group_of("run options", BOX), Group("idle", [], [Flag("--x INT", "Nothing.")])]
    lines = text("python -m x", "About.\n  one: first", groups, ["--x", "--fast"]).splitlines()
    assert max(map(len, lines)) <= 50
    assert "  --run.kind {one, two, three}" in lines
    assert "  one: first" in lines
    assert not [line for line in lines if "--fast" in line or "idle" in line or "--x" in line]


@pytest.mark.parametrize(
    ("flags", "is_there"),
    [
        ([], False),
        (["--run.evaluate-every", "3"], True),
        (["--run.evaluate-every", "nonsense"], False),
    ],
)
def test_help_shows_what_has_an_effect(flags, is_there, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    texts = {}
    for question in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as stop:
            parse(tiny.PROGRAM, ["slow", *flags, question])
        assert stop.value.code == 0
        texts[question] = capsys.readouterr().out
        assert max(map(len, texts[question].splitlines())) <= 80
    assert ("--run.patience" in texts["--help"]) == is_there
    assert "--run.patience" in texts["--help-all"]
    for help_output in texts.values():
        assert "are those of slow" in help_output
        assert "--no-cache" in help_output


def test_a_terminal_of_any_width(monkeypatch: pytest.MonkeyPatch):
    for columns in ("1", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        lines = text("x", "word " * 99, [], ()).splitlines()
        assert help_text.NARROWEST - 5 <= max(map(len, lines)) <= help_text.WIDEST


def test_a_long_help_folds_groups_within_groups():
    flags = lambda prefix, count: [Flag(f"--{prefix}.f{i} INT", "A number.") for i in range(count)]
    groups = [Group("env", [], flags("env", 3)), Group("env.w", ["Weights."], flags("env.w", 4))]
    for most, count in ((7, 7), (6, 3)):
        lines = text("x", "About.", groups, (), most).splitlines()
        assert sum(line.startswith("  --") for line in lines) == count
        folded = "env.w: Weights. 4 flags, which --help-all shows." in lines
        assert folded == (most == 6)
        assert ("env.w: Weights." in lines) == (most == 7)


@pytest.mark.parametrize(
    ("name", "preset"),
    [("durotaxis", "normal"), ("two_snake", "dqn"), ("vector_field", "sequence_vae")],
)
def test_no_help_is_longer_than_one_reads(name, preset, capsys):
    """The programs with the most flags, each with its longest list."""
    with pytest.raises(SystemExit):
        parse(find(name, "the test"), [preset, "--help"])
    assert 40 < capsys.readouterr().out.count("\n  --") <= help_text.MOST
