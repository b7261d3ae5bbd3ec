"""`python -m train.evaluate RUN`: the score of the agents of a finished or running run.

`python -m train.evaluate --policy NAME`: the score of a trained policy, without a run. Some
programs have flags of their own: see `python -m train.evaluate RUN --help`.
"""

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from rich.console import Console

from jaxrl.checks import Seed
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.host.files.whole_files import refuse_unwritable
from train.host.machine import jax_settings
from train.host.plain_config import check_options
from train.host.program import Run
from train.host.running import saved_policies, saved_runs
from train.host.scoring import best, scores_file
from train.host.scoring.scores import evaluation_keys, read_evaluation, write_evaluation
from train.host.scoring.scores_file import ScoresFile
from train.host.training import Games
from train.policies import dependence


@dataclass(frozen=True)
class Options(ScoresFile):
    """Evaluates the newest checkpoint and writes RUN/eval.json."""

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Policy instead: a file, or a name that `python -m train.policies list` shows."""
    games: Annotated[Games | None, tyro.conf.arg(metavar="INT")] = None
    """Complete games per seed, where games are played; None: 1,000."""
    best: bool = False
    """The policies that were best while training, kept in RUN/best, instead of the newest."""
    key: Seed = 1
    """Root of the random numbers; the evaluation after training uses another one."""
    sampled: bool = False
    """Draw actions from the policy, or explore, instead of acting greedily."""


def main(arguments: list[str]) -> int:
    def evaluate(arguments: list[str]) -> None:
        program = saved_policies.program_of(arguments) or saved_runs.program_of(arguments)
        if program and (own := program.evaluator):
            options = parse_flags("python -m train.evaluate", own.options, arguments)
            run = load(options)
            before = time_of_scores(run)
            with jax_settings.network_precision(run.config.run.precision):
                Console().print(own.evaluate(run, options))
            tell_luck(run, options, before)
            return
        options = parse_flags("python -m train.evaluate", Options, arguments)
        check_options(options)
        run = load(options)
        before = time_of_scores(run)
        config, extra = requested_config(run, options)
        if options.sampled and (options.policy is not None or options.best):
            source = options.policy or str(run.directory)
            advice = "leave out --sampled, or evaluate its run"
            dependence.refuse_sampling(run, run.agents[0], source, advice)
        training = run.program.training(config)
        keys = evaluation_keys(options.key, run.seeds)
        with jax_settings.network_precision(config.run.precision):
            evaluation = training.evaluate(run.agents, run.seeds, keys)
        about = {"updates": run.updates, "key": options.key, **extra}
        write_evaluation(run.directory, evaluation, options.out, **about)
        Console().print(evaluation.table)
        tell_luck(run, options, before)

    return command(evaluate, arguments)


def load(options: Any) -> Run:
    """The run or policy of the options. Raises UsageError, also if scores cannot be kept there, or
    where `--out` says."""
    scores_file.refuse(options)
    run = saved_policies.load_run_or_policy(options.run, options.policy, options.best)
    advice = "its scores are kept there, so evaluate a copy of it"
    if options.run is None:  # of a policy, which lies elsewhere
        advice = "the scores of a policy are kept there, so start in a folder that can"
    refuse_unwritable(run.directory, advice)
    return run


def time_of_scores(run: Run) -> int:
    """When the scores of a run were last written, ns; 0 without any."""
    path = RunDirectory(run.directory).evaluation
    return path.stat().st_mtime_ns if path.is_file() else 0


def tell_luck(run: Run, options: Any, before: int) -> None:
    """Prints how much of the score that chose the best policies was luck.

    Only where scores were written since the time `before`, of games played as those that chose: not
    of other boards or grounds, nor of sampled actions after greedy ones.
    """
    if not options.best or time_of_scores(run) == before:
        return
    content = read_evaluation(run.directory)
    chosen_greedily = getattr(run.config.run, "evaluation_greedy", True)
    if content is None or content.get("greedy", chosen_greedily) != chosen_greedily:
        return
    for line in best.selection_bias_report(run.directory, content):
        print(line)


def requested_config(run: Run, options: Options) -> tuple[Any, dict[str, Any]]:
    """The run's configuration with the games of the options, and extra entries of `eval.json`.

    Raises UsageError for options of games if the run plays none.
    """
    greedy = not options.sampled
    if run.plays_games:
        games = {"evaluation_games": options.games or 1_000, "evaluation_greedy": greedy}
        return saved_runs.with_run_fields(run.config, **games), {"greedy": greedy}
    if options.games is not None or options.sampled:
        raise UsageError(f"{run.directory} plays no games: leave out --games and --sampled")
    return run.config, {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
