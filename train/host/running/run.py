"""The host side of a training: run chunks, record, save, resume, stop, evaluate.

Knows no agent and no environment: a program joins them into a `Training`. A run is a directory (see
`train.host.files.run_directory`), with the whole state in its `checkpoints/` (see
`jaxrl.checkpoint`). With the same configuration a run gives the same numbers, whether or not it was
stopped and resumed on the way. Python only starts chunks and reads what they report. Reading takes
a few milliseconds, so each chunk is read before the next one starts.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from jaxrl import checkpoint
from jaxrl.numerics.precision import in_float32
from jaxrl.types import RunState
from train.host.compilation import compiled
from train.host.errors import Interrupted, RunError, UsageError
from train.host.files import log, metrics_file
from train.host.files.provenance import files_of, provenance
from train.host.files.run_directory import RunDirectory, resume_flag, shell_word
from train.host.files.snapshots import make as make_snapshot_writer
from train.host.machine import devices, distributed, jax_settings
from train.host.machine.progress import Display, clock, show_activity
from train.host.machine.quiet_libraries import output_of_children
from train.host.machine.signals import StopRequest, interruption
from train.host.plain_config import plain
from train.host.program import Program, Run
from train.host.running.preparation import (
    compile_within_memory,
    complete,
    policy_file_for,
    policy_for,
    refuse_lost_checkpoints,
    refuse_other_config,
    refuse_place,
    trace,
)
from train.host.running.session import Session
from train.host.scoring.best import make as make_best
from train.host.scoring.scores import agents_of
from train.host.training import Config, Evaluation, Training

ON_CPU = {"JAX_PLATFORMS": "cpu"}
"""A page needs no accelerator, and must not take memory of the one that trains."""
STARTED_BY = "JAXRL_STARTED_BY"
"""Environment variable of a page: the number of the process that trains, after which it ends."""


class Result(NamedTuple):
    """What a finished run leaves, beside its directory."""

    directory: Path
    state: RunState  # with a leading axis S if there are several seeds
    evaluation: Evaluation | None  # with keys `compiled.keys_of`; None if not wanted
    updates: int


@in_float32
def run(training: Training, config: Any, name: str, preset: str = "") -> Result:
    """Trains, records and evaluates; returns when the budget is used up.

    `config` is a dataclass whose field `run` is a `Config`. Raises UsageError before anything is
    written if something does not fit, but for memory where only the compiled program shows it, and
    for checkpoints that cannot be read; Interrupted after a signal, once all is saved; and
    NonFiniteError as `on_nonfinite` says.
    """
    settings: Config = config.run
    start_time = time.perf_counter()
    # refuse what does not fit before anything is written
    with distributed.refused_together():
        jax_settings.refuse_unusable()
        if settings.resume:
            refuse_other_config(training, config, name)
            refuse_lost_checkpoints(config)
        log.refuse_missing(settings.log)
        refuse_place(settings)
        policy_file_for(settings, name)  # of a wrong one tracing would take seconds for nothing
        traced = trace(training, config)
        policy = policy_for(training, settings, name)
        new_path = "" if settings.resume else create_directory(settings.directory, name)
    # open what is written, then say where it is
    path = settings.resume or distributed.broadcast_text(new_path)
    directory = RunDirectory(Path(path))
    again = f"start all again with {resume_flag(directory)}"
    with (
        jax_settings.network_precision(settings.precision),
        ExitStack() as files,
        Display(name, console()) as display,
    ):
        with distributed.refused_together(again):
            record, run_log = open_files(files, directory, config)
            if distributed.is_first():
                directory.write_config(name, preset, config)
        display.say(f"{name}: compiling; the run is in {directory}")
        for caution in filter(None, (jax_settings.caution(), training.caution)):
            display.say(f"{name}: {caution}")
        # compile, then train
        with live_page(settings, directory):
            message = f"stopped while compiling: {resume_flag(directory)} begins the run"
            activity = show_activity("compiling")
            with interruption(message), activity, distributed.refused_together(again):
                programs = compile_within_memory(traced, config)
                best = make_best(
                    training, settings, settings.members, directory.best, traced.like.agent
                )
                snapshot_writer = make_snapshot_writer(training, settings, directory, traced.like)
            device_count = devices.count_of(traced.like)
            share = f", for {device_count} devices" if device_count > 1 else ""
            display.say(f"{name}: compiled in {clock(time.perf_counter() - start_time)}{share}")
            sources = provenance() | {"files": files_of(config), "devices": device_count}
            meta = {"name": name, "config": plain(config), **sources}
            parts = training, settings, settings.members, directory, programs, policy
            stop = StopRequest(display.say)
            return train_and_evaluate(
                Session(*parts, record, display, stop, meta, best, snapshot_writer, run_log)
            )


def open_files(
    files: ExitStack, directory: RunDirectory, config: Any
) -> tuple[metrics_file.MetricsFile | metrics_file.NoFile, log.Log]:
    """The record and the log of a run, which the first process writes, until `files` closes."""
    settings: Config = config.run
    record = files.enter_context(metrics_file.open_for_process(directory.path))
    kind = settings.log if distributed.is_first() else "none"
    run_log = log.open_log(kind, directory.path, settings.seeds, plain(config))
    return record, files.enter_context(run_log)


def train_and_evaluate(session: Session) -> Result:
    """Trains and evaluates; an error that nobody foresaw also says how the run goes on."""
    directory = session.directory
    try:
        with session.stop:
            state, counters = session.train()
        if session.stop.requested:  # during the last chunk
            raise Interrupted(after_training(directory))
        with interruption(after_training(directory)):
            state = state._replace(agent=devices.move_to_one_device(state.agent))
            return Result(directory.path, state, session.evaluate(state), counters.updates)
    except checkpoint.CheckpointError as error:
        raise UsageError(str(error)) from error
    except Exception as error:
        if not isinstance(error, RunError) and not distributed.is_alone():
            # such as a connection that broke
            distributed.give_up(error, f"start all again with {resume_flag(directory)}")
        if not isinstance(error, RunError):
            error.add_note(f"{resume_flag(directory)} {resumption(directory)}")
        raise


def resumption(directory: RunDirectory) -> str:
    """Where a run goes on that has failed."""
    is_begun = bool(checkpoint.steps(directory.checkpoints))
    return "continues from the newest checkpoint" if is_begun else "starts over: nothing is saved"


def after_training(directory: Path | RunDirectory) -> str:
    """What is said of a run that was stopped when it had been trained."""
    return (
        f"stopped after training: the run is saved in {directory}; {resume_flag(directory)} goes "
        "on with its scores and pictures, "
        f"python -m train.evaluate {shell_word(directory)} scores it"
    )


@contextmanager
def live_page(settings: Config, directory: RunDirectory) -> Iterator[None]:
    """Serves the page of `--live` in a process of its own, at a lower priority."""
    if not (settings.live and distributed.is_first()):
        yield
        return
    command = [sys.executable, "-m", "train.report", str(directory), "--live"]
    environment = os.environ | ON_CPU | {STARTED_BY: str(os.getpid())}
    ways: Any = {"start_new_session": True, "env": environment}
    with subprocess.Popen(command, stdout=output_of_children(), **ways) as server:
        try:
            yield
        finally:
            server.terminate()


def create_directory(directory: str, name: str) -> str:
    """A new run directory, made by the first process."""
    return str(RunDirectory.create(directory, name)) if distributed.is_first() else ""


def console() -> Console | None:
    """Where the progress of this process is shown; that of the first one is enough."""
    return None if distributed.is_first() else Console(quiet=True)


@in_float32
def train_program(
    program: Program, config: Any, preset: str, training: Training | None = None
) -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs.

    `training` is `program.training(config)`, if that has been made already. Raises ValueError for
    what does not fit together, and what `run` raises.
    """
    if training is None:
        program.refuse_other_preset(preset, config)
        config, training = complete(program, config)
    result = run(training, config, program.address, preset)
    settings: Config = config.run
    if not distributed.is_first():
        return result
    agents = agents_of(result.state.agent, settings.num_seeds)
    trained = result.updates, agents, result.state
    finished_run = Run(result.directory, program, config, *trained, preset)
    games = getattr(settings, "evaluation_games", 0)
    key = compiled.keys_of(settings.seed)[1]
    with (
        interruption(after_training(result.directory)),
        errors_with_render_hint(result.directory),
        jax_settings.network_precision(settings.precision),
    ):
        paths = program.views.pictures(finished_run, games, key, result.evaluation)
        for table in program.views.tables(finished_run):
            Console().print(table)
        for path in paths:
            print(path)
    return result


@contextmanager
def errors_with_render_hint(directory: Path) -> Iterator[None]:
    """Adds to an error while pictures are drawn how to draw them later."""
    try:
        yield
    except Exception as error:
        command = f"python -m train.render {shell_word(directory)}"
        error.add_note(f"the run has ended; {command} draws it")
        raise
