"""`python -m train.evaluate RUN`: complete games of a finished or running run, and their table."""

import sys
from dataclasses import dataclass
from typing import Annotated

import jax
import tyro
from rich.console import Console

from train import runs
from train.command import command, parse_flags
from train.errors import UsageError
from train.scores import evaluation_table, play, write_evaluation


@dataclass(frozen=True)
class Options:
    """Plays complete games with the newest checkpoint and writes RUN/eval.json."""

    run: Annotated[str, tyro.conf.Positional]
    """Run directory."""
    games: int = 1_000
    """Complete games per seed."""
    key: int = 1
    """Root of the games' random numbers; the end of a training uses another one."""
    sampled: bool = False
    """Draw actions from the policy, or explore, instead of taking the best one."""


def main(arguments: list[str]) -> int:
    def evaluate() -> None:
        options = parse_flags("python -m train.evaluate", Options, arguments)
        if options.games < 1:
            raise UsageError(f"--games is {options.games}; expected at least 1")
        run = runs.load(options.run)
        config = runs.with_evaluation(
            run.config, evaluation_games=options.games, evaluation_greedy=not options.sampled
        )
        training = run.entry.make_training(config)
        keys = [jax.random.fold_in(jax.random.key(options.key), seed) for seed in run.seeds]
        played = play(training.evaluate, run.agents, keys)
        extra = {"updates": run.updates, "key": options.key, "greedy": not options.sampled}
        evaluation = write_evaluation(run.directory, run.seeds, played, training.score, **extra)
        Console().print(evaluation_table(evaluation))

    return command(evaluate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
