"""`python -m train.goals RUN`."""

import sys

from train.goals.program import PROGRAM
from train.host import command


def with_run_named(arguments: list[str]) -> list[str]:
    """The arguments, with a leading run directory preceded by its flag, `--learned`."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in PROGRAM.presets:
        return ["--learned", *arguments]
    return arguments


if __name__ == "__main__":
    sys.exit(command.main(PROGRAM, with_run_named(sys.argv[1:])))
