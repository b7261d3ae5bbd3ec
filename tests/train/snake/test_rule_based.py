"""`python -m train.snake.players` from the outside."""

import io
import json

import pytest
from rich.console import Console

from train.snake import rule_based


@pytest.mark.slow
def test_the_table_and_the_file_say_how_well_each_player_plays(tmp_path, capsys):
    path = tmp_path / "players.json"
    flags = ["--rows=4", "--cols=5", "--games=12", "--players", "hamiltonian", "direct"]
    assert rule_based.main([*flags, f"--out={path}"]) == 0
    out = capsys.readouterr().out
    assert "Snake 4×5, modern rules" in out
    assert "…" not in out  # every number is readable in a log file
    content = json.loads(path.read_text())
    assert (content["rows"], content["cols"], content["rules"]) == (4, 5, "modern")
    perfect, hasty = content["players"].values()
    assert perfect["games"] == hasty["games"] == 12
    assert perfect["score"]["mean"] == 17  # of 20 cells the snake begins with three
    assert perfect["won"]["mean"] == 1
    assert perfect["won"]["low"] == pytest.approx(1 / (1 + 1.959964**2 / 12))  # Wilson
    assert perfect["steps_per_food"] == pytest.approx(perfect["length"]["mean"] / 17)
    assert hasty["won"]["mean"] == 0
    deaths = [hasty[ending]["mean"] for ending in rule_based.ENDINGS]
    assert sum(deaths) == pytest.approx(1)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--games 0", "--games is 0, expected a number at least 1"),
        ("--max-steps 0", "--max-steps is 0, expected a number at least 1"),
        ("--rows 3", "--rows is 3, expected a number at least 4"),
        ("--players best", "no player best for 10×10; choose among random, random_safe, direct"),
        ("--rows 5 --cols 5 --players shortcuts", "no player shortcuts for 5×5; choose among"),
        ("--out nowhere/players.json", "--out nowhere/players.json lies in no folder"),
        (f"--out {__file__}", "test_rule_based.py exists already: choose another --out"),
        (f"--key {10**20}", f"--key is {10**20}, expected a number at least 0"),
        ("--rules strict", "invalid choice 'strict'"),
    ],
)
def test_a_mistake_is_answered_in_one_line(flags: str, complaint: str, capsys):
    assert rule_based.main(flags.split()) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert err.count("\n") == 1
    assert out == ""


def test_numbers_of_the_table_have_no_exponents():
    """A snake that eats one meal in a whole game on a large board, and one that nearly fills it."""
    food = {"mean": 1000.4, "median": 1001.0, "max": 1003.0, "low": 999.6, "high": 1001.3}
    share = {"mean": 0.5, "low": 0.4, "high": 0.6}
    row = dict.fromkeys(("won", *rule_based.ENDINGS), share) | {"score": food}
    content = {"rules": "classic", "players": {"one": row | {"steps_per_food": 32400.0}}}
    board = {"rows": 32, "cols": 32, "obstacles": 0, "foods": 1}
    console = Console(width=80, file=io.StringIO())
    with console.capture() as printed:
        console.print(rule_based.table(board | content))
    words = printed.get().split()
    assert {"1000", "1000–1001", "1001", "1003", "32400", "50", "40–60"} <= set(words)
    assert not [x for x in words if "e+" in x]
