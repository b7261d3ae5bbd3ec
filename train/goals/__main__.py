"""`python -m train.goals RUN`."""

import sys
from collections.abc import Container

from train.host.command_line import command
from train.host.machine import start


def with_run_named(arguments: list[str], presets: Container[str]) -> list[str]:
    """The arguments, with a leading run directory preceded by its flag, `--learned`."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in presets:
        return ["--learned", *arguments]
    return arguments


if __name__ == "__main__":
    start.begin()
    from train.goals.program import PROGRAM

    sys.exit(command.main(PROGRAM, with_run_named(sys.argv[1:], PROGRAM.presets)))
