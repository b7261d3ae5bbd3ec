"""The host side of a training: run chunks, record, save, resume, stop, evaluate.

Knows no agent and no environment: a program joins them into a `Training`. A run is a directory (see
`train.host.records`), with the whole state in its `checkpoints/` (see `jaxrl.checkpoint`). With the
same configuration a run gives the same numbers, whether or not it was stopped and resumed on the
way. Python only starts chunks and reads what they report. Reading takes a few milliseconds, so each
chunk is read before the next one starts.
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from jaxrl import checkpoint, checks
from jaxrl.types import RunState
from train.host import compiled, log, metrics_file, records
from train.host.best import make as make_best
from train.host.config import plain
from train.host.errors import RunError, UsageError
from train.host.preparation import (
    compile_within_memory,
    policy_for,
    refuse_lost,
    refuse_other_config,
    trace,
)
from train.host.program import Program, Run
from train.host.progress import Display, clock
from train.host.scores import agents_of
from train.host.session import Session
from train.host.settings import Config, Evaluation, Training
from train.host.signals import StopRequest


class Result(NamedTuple):
    """What a finished run leaves, beside its directory."""

    directory: Path
    state: RunState  # with a leading axis S if there are several seeds
    evaluation: Evaluation | None  # with keys `compiled.keys_of`; None if not wanted
    updates: int


def run(training: Training, config: Any, name: str, preset: str = "") -> Result:
    """Trains, records and evaluates; returns when the budget is used up.

    `config` is a dataclass whose field `run` is a `Config`. Raises UsageError before anything is
    written if something does not fit; Interrupted after a signal, once all is saved; and
    NonFiniteError as `on_nonfinite` says.
    """
    settings: Config = config.run
    if settings.resume:
        refuse_other_config(training, config, name)
        refuse_lost(Path(settings.resume))
    log.refuse_missing(settings.log)
    started = time.perf_counter()
    traced = trace(training, config)
    policy = policy_for(training, settings, name)
    directory = Path(settings.resume or records.create(settings.directory, name))
    with (
        metrics_file.MetricsFile(directory) as record,
        log.opened(settings.log, directory, settings.seeds, plain(config)) as logged,
        Display(name) as display,
    ):
        records.write_config(directory, name, preset, config)
        display.say(f"{name}: compiling; the run is in {directory}")
        with StopRequest(display.say) as stop:
            programs = compile_within_memory(traced, config)
            best = make_best(training, settings, settings.members, directory, traced.like.agent)
            display.say(f"{name}: compiled in {clock(time.perf_counter() - started)}")
            meta = {"name": name, "config": plain(config), **records.provenance()}
            session = Session(
                training,
                settings,
                settings.members,
                directory,
                programs,
                policy,
                record,
                display,
                stop,
                meta,
                best,
                logged,
            )
            return completed(session)


def completed(session: Session) -> Result:
    """Trains and evaluates; an error that nobody foresaw also says how the run goes on."""
    try:
        state, counters = session.train()
        return Result(session.directory, state, session.evaluate(state), counters.updates)
    except checkpoint.CheckpointError as error:
        raise UsageError(str(error)) from error
    except Exception as error:
        if not isinstance(error, RunError):
            error.add_note(f"--resume {session.directory} continues from the newest checkpoint")
        raise


def train_program(
    program: Program, config: Any, preset: str, training: Training | None = None
) -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs.

    `training` is `program.training(config)`, if that has been made already. Raises ValueError for
    what does not fit together, and what `run` raises.
    """
    if training is None:
        checks.config(config)
        training = program.training(config)
    result = run(training, config, program.address, preset)
    settings: Config = config.run
    agents = agents_of(result.state.agent, settings.num_seeds)
    finished = Run(result.directory, program, config, result.updates, agents, result.state)
    games = getattr(settings, "evaluation_games", 0)
    key = compiled.keys_of(settings.seed)[1]
    paths = program.pictures(finished, games, key, result.evaluation)
    for table in program.tables(finished):
        Console().print(table)
    for path in paths:
        print(path)
    return result
