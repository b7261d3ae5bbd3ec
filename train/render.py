"""`python -m train.render RUN`: pictures of a finished or running run, into its directory."""

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from train import runs
from train.command import command, parse_flags
from train.errors import UsageError


@dataclass(frozen=True)
class Options:
    """Draws the learning curve, and what else shows how good the newest checkpoint is.

    Where games are played, that is a film of the best of some.
    """

    run: Annotated[str, tyro.conf.Positional]
    """Run directory."""
    games: int = 100
    """Games to choose the best from, where games are played."""
    key: int = 2
    """Root of the random numbers."""


def main(arguments: list[str]) -> int:
    def render() -> None:
        options = parse_flags("python -m train.render", Options, arguments)
        if options.games < 1:
            raise UsageError(f"--games is {options.games}; expected at least 1")
        run = runs.load(options.run)
        for path in run.entry.draw(run, options.games, options.key):
            print(path)

    return command(render)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
