"""`python -m train.goals RUN`."""

import sys
from collections.abc import Container
from pathlib import Path

from train.host.command_line import command
from train.host.machine import start


def with_run_named(arguments: list[str], presets: Container[str]) -> list[str]:
    """The arguments, with a run directory preceded by its flag, `--learned`.

    It stands first, after a preset, or last; without a preset, that of the run is named.
    """
    preset = arguments[:1] if arguments and arguments[0] in presets else []
    rest = arguments[len(preset) :]
    if ends_with_run(rest):
        rest = [rest[-1], *rest[:-1]]
    if not rest or rest[0].startswith("-"):
        return arguments
    return [*(preset or preset_names(rest[0])), "--learned", *rest]


def ends_with_run(arguments: list[str]) -> bool:
    """Whether the last argument is a directory that is not the value of the flag before it."""
    if len(arguments) < 2 or not arguments[0].startswith("-"):
        return False
    before, last = arguments[-2:]
    return (not before.startswith("-") or "=" in before) and Path(last).is_dir()


def preset_names(directory: str) -> list[str]:
    """The preset for a run of train.allo, if that is another one than the first."""
    from train.goals.presets import has_no_cells  # only once JAX may be imported

    return ["space"] if has_no_cells(directory) else []


if __name__ == "__main__":
    start.begin()
    from train.goals.program import PROGRAM

    sys.exit(command.main(PROGRAM, with_run_named(sys.argv[1:], PROGRAM.presets)))
