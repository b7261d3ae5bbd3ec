"""`python -m train.goals RUN`."""

import sys
from collections.abc import Container
from itertools import pairwise
from pathlib import Path

from train.host.command_line import command
from train.host.machine import start


def with_run_named(arguments: list[str], presets: Container[str]) -> list[str]:
    """The arguments, with a run directory preceded by its flag, `--learned`.

    It stands first, after a preset, or after the value of a flag; without a preset, that of the run
    is named.
    """
    preset = arguments[:1] if arguments and arguments[0] in presets else []
    rest = arguments[len(preset) :]
    if place := place_of_run(rest):
        rest = [rest[place], *rest[:place], *rest[place + 1 :]]
    if not rest or rest[0].startswith("-"):
        return arguments
    return [*(preset or preset_names(rest[0])), "--learned", *rest]


def place_of_run(arguments: list[str]) -> int:
    """The index of a directory behind the value of a flag; 0 if there is none."""
    if not arguments or not arguments[0].startswith("-"):
        return 0
    may_be_run = lambda before, word: (
        not word.startswith("-")
        and (not before.startswith("-") or "=" in before)
        and Path(word).is_dir()
    )
    return next((i for i, pair in enumerate(pairwise(arguments), 1) if may_be_run(*pair)), 0)


def preset_names(directory: str) -> list[str]:
    """The preset for a run of train.allo, if that is another one than the first."""
    from train.goals.presets import has_no_cells  # only once JAX may be imported

    return ["space"] if has_no_cells(directory) else []


if __name__ == "__main__":
    start.begin()
    from train.goals.program import PROGRAM

    sys.exit(command.main(PROGRAM, with_run_named(sys.argv[1:], PROGRAM.presets)))
