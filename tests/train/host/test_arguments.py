"""Flags that are read before a command line is parsed, against what each line should mean."""

import pytest

from train.host.arguments import flag_value, split_flag
from train.host.errors import UsageError


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("ppo --resume runs/a --run.seed 1", "runs/a"),
        ("--resume=runs/a=b", "runs/a=b"),
        ("--resume= --resume runs/b", "runs/b"),
        ("--resume --run.seed", "--run.seed"),  # whoever reads it says that this is no run
        ("--resume", None),
        ("--resume=", None),
        ("--resumed runs/a --run.resume=runs/b resume", None),
        ("", None),
    ],
)
def test_the_value_of_a_flag(line, value):
    assert flag_value(line.split(), "--resume") == value


def test_a_flag_with_two_values_is_refused():
    line = ["ppo", "--resume", "runs/a", "--run.seed", "1", "--resume=runs/b"]
    message = "--resume is given twice, runs/a and runs/b; expected it once"
    with pytest.raises(UsageError, match=f"^{message}$"):
        flag_value(line, "--resume")


def test_a_flag_is_split_from_the_others_each_time():
    line = ["ppo", "--config", "a", "--run.seed", "1", "--config=b", "--x=--config", "--config"]
    assert split_flag(line, "--config") == (
        ["a", "b", ""],
        ["ppo", "--run.seed", "1", "--x=--config"],
    )
