"""`python -m train.render RUN`: pictures of a finished or running run, into its directory."""

import sys
from dataclasses import dataclass
from typing import Annotated

import jax
import tyro

from train import runs
from train.command import command, parse_flags
from train.errors import UsageError
from train.scores import play


@dataclass(frozen=True)
class Options:
    """Draws the learning curve, and films the best of some games of the newest checkpoint."""

    run: Annotated[str, tyro.conf.Positional]
    """Run directory."""
    games: int = 100
    """Games to choose the best from."""
    key: int = 2
    """Root of the games' random numbers."""


def main(arguments: list[str]) -> int:
    def render() -> None:
        options = parse_flags("python -m train.render", Options, arguments)
        if options.games < 1:
            raise UsageError(f"--games is {options.games}; expected at least 1")
        run = runs.load(options.run)
        config = runs.with_evaluation(run.config, evaluation_games=options.games)
        training, key = run.entry.make_training(config), jax.random.key(options.key)
        played = play(training.evaluate, run.agents[:1], [jax.random.clone(key)])
        print(run.entry.draw_curve(run.directory, config))
        print(run.entry.draw_film(run.directory, config, run.agents[0], key, played.episodes[0]))

    return command(render)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
