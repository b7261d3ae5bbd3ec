"""The scores of the agents of a run that has been trained."""

from dataclasses import replace
from typing import Any

from jaxrl.types import RunState
from train.host.files.run_directory import RunDirectory
from train.host.machine import distributed
from train.host.machine.progress import Display, clock
from train.host.scoring.games import GamesEvaluation
from train.host.scoring.scores import evaluate_run, write_evaluation
from train.host.training import Config, Evaluation, PlayConfig, Training


def evaluate(
    training: Training,
    settings: Config,
    state: RunState,
    directory: RunDirectory,
    updates: int,
    display: Display,
) -> Evaluation | None:
    """Evaluates the trained agents, if wanted; prints and writes the scores.

    `state` is that after so many updates, and has its agent on one device.
    """
    if not settings.evaluates:
        return None
    if not distributed.is_first():
        return None
    if isinstance(training.evaluate, GamesEvaluation):  # kept for the next run
        training = training._replace(evaluate=replace(training.evaluate, name="final games"))
    evaluation = evaluate_run(training, settings, state)
    write_evaluation(directory.path, evaluation, **about_agents(settings, updates))
    display.console.print(evaluation.table)
    display.say(
        f"evaluated in {clock(evaluation.content['seconds'])}, "
        f"after compiling for {clock(evaluation.content['compile_seconds'])}"
    )
    return evaluation


def about_agents(settings: Config, updates: int) -> dict[str, Any]:
    """Which agents an evaluation is of, for `eval.json`: the run may go on without another."""
    how = {}
    if isinstance(settings, PlayConfig):
        how = {"greedy": settings.evaluation_greedy}
    return {"updates": updates, **how}
