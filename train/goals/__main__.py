"""`python -m train.goals RUN`."""

import sys
from collections.abc import Container

from train.host.command_line import command
from train.host.machine import start


def with_run_named(arguments: list[str], presets: Container[str]) -> list[str]:
    """The arguments, with a run directory preceded by its flag, `--learned`.

    It stands first or after a preset; without one, that of the run is named.
    """
    preset = arguments[:1] if arguments and arguments[0] in presets else []
    rest = arguments[len(preset) :]
    if not rest or rest[0].startswith("-"):
        return arguments
    return [*(preset or preset_names(rest[0])), "--learned", *rest]


def preset_names(directory: str) -> list[str]:
    """The preset for a run of train.allo, if that is another one than the first."""
    from train.goals.presets import has_no_cells  # only once JAX may be imported

    return ["space"] if has_no_cells(directory) else []


if __name__ == "__main__":
    start.begin()
    from train.goals.program import PROGRAM

    sys.exit(command.main(PROGRAM, with_run_named(sys.argv[1:], PROGRAM.presets)))
