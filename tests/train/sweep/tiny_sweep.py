"""A sweep of the tiny program, whose members end at different times."""

import csv
from pathlib import Path

from train.sweep import __main__ as command
from train.sweep import files

RATES = ("0.005", "0.02")
EPISODES = 20
VARY = f"agent.learning_rate={','.join(RATES)}"


def arguments(directory: Path, *flags: str) -> list[str]:
    """What is typed for a small sweep, whose members end at different times."""
    always = ["--seeds", "2", "--run.max-episodes", str(EPISODES), "--directory", str(directory)]
    return ["tests.train.tiny", "plain", *always, *flags]


def sweep(directory: Path, *flags: str) -> int:
    return command.main(arguments(directory, *flags))


def table(directory: Path) -> list[dict[str, str]]:
    with (directory / files.TABLE).open() as file:
        return list(csv.DictReader(file))
