"""The host side of a training: run chunks, record, save, resume, stop, evaluate.

Knows no agent and no environment: a program joins them into a `Training`. A run is a directory (see
`train.host.records`), with the whole state in its `checkpoints/` (see `jaxrl.checkpoint`). With the
same configuration a run gives the same numbers, whether or not it was stopped and resumed on the
way. Python only starts chunks and reads what they report. Reading takes a few milliseconds, so each
chunk is read before the next one starts.
"""

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console

from jaxrl import checkpoint, checks
from jaxrl.types import RunState
from train.host import compiled, metrics_file, policy_files, records
from train.host.config import differences, plain
from train.host.errors import Interrupted, NonFiniteError, RunError, UsageError
from train.host.preparation import (
    compile_within_memory,
    policy_for,
    refuse_lost,
    refuse_other_config,
    trace,
)
from train.host.program import Program, Run
from train.host.progress import Display, clock, per_second
from train.host.records import CHECKPOINTS
from train.host.rows import Counters, by_seed, chunk_rows, counted, mean_score, what_is_not_finite
from train.host.scores import agents_of, evaluate_run, write_evaluation
from train.host.settings import Config, Evaluation, Training
from train.host.signals import StopRequest

MAX_RESTORES = 3
"""How often `on_nonfinite="restore"` returns to the same checkpoint."""

FOLD_IN_EACH = jax.vmap(jax.random.fold_in, in_axes=(0, None))
_log = logging.getLogger(__name__)


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
    started = time.perf_counter()
    traced = trace(training, config)
    policy = policy_for(training, settings, name)
    directory = Path(settings.resume or records.create(settings.directory, name))
    with metrics_file.MetricsFile(directory) as record, Display(name) as display:
        records.write_config(directory, name, preset, config)
        display.say(f"{name}: compiling; the run is in {directory}")
        with StopRequest(display.say) as stop:
            programs = compile_within_memory(traced, config)
            display.say(f"{name}: compiled in {clock(time.perf_counter() - started)}")
            meta = {"name": name, "config": plain(config), **records.provenance()}
            session = Session(
                training, settings, directory, programs, policy, record, display, stop, meta
            )
            try:
                return session.run()
            except checkpoint.CheckpointError as error:
                raise UsageError(str(error)) from error
            except Exception as error:
                if not isinstance(error, RunError):
                    error.add_note(f"--resume {directory} continues from the newest checkpoint")
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


@dataclass
class Session:
    """One run in progress."""

    training: Training
    settings: Config
    directory: Path
    programs: compiled.Programs
    policy: dict[str, np.ndarray] | None  # the parameters a new run begins with
    record: metrics_file.MetricsFile
    display: Display
    stop: StopRequest
    meta: dict[str, Any]
    _saved: Counters = field(init=False)  # those of the newest checkpoint

    def run(self) -> Result:
        """From the newest checkpoint, or from the beginning, to the end."""
        state, counters = self.load()
        self.display.begin(self.fraction(counters), self.training.unit)
        while self.fraction(counters) < 1:
            if self.stop.requested:
                self.save(state, counters)
                raise Interrupted(
                    f"stopped after {self.steps(counters):,} of "
                    f"{self.settings.total_steps:,} {self.training.unit}: "
                    f"--resume {self.directory}"
                )
            state, counters = self.advance(state, counters)
        self.save(state, counters)
        self.display.end()
        rate = self.steps(counters) * self.settings.num_seeds / max(counters.seconds, 1e-9)
        unit = self.training.unit
        self.display.say(
            f"{self.meta['name']}: {self.steps(counters):,} {unit} in "
            f"{clock(counters.seconds)}, {per_second(rate)} {unit}/s"
        )
        return Result(self.directory, state, self.evaluate(state), counters.updates)

    def advance(self, state: RunState, counters: Counters) -> tuple[RunState, Counters]:
        """Runs one chunk, records it and, where due, saves a checkpoint."""
        per_update = self.training.steps_per_update
        length = self.settings.chunk_updates(per_update)
        count = min(
            length - counters.updates % length,  # so that chunks end at multiples of their length
            self.settings.total_updates(per_update) - counters.updates,
        )
        started = time.perf_counter()
        state, report = self.programs.chunk(state, np.int32(count))
        report = by_seed(jax.device_get(report), count)  # waits for the chunk
        seconds = time.perf_counter() - started
        if not report.finite.all():
            problem = what_is_not_finite(report, counters, self.settings.seeds)
            if self.settings.on_nonfinite == "restore":
                return self.restore(counters, seconds, problem)
            if self.settings.on_nonfinite == "raise" or not report.finite.any(axis=0).all():
                raise self.not_finite(problem)
        counters = counted(counters, report, seconds, self.training.settled)
        self.write(report, counters, count * per_update * self.settings.num_seeds / seconds)
        if counters.updates % (length * self.settings.checkpoint_every) == 0:
            self.save(state, counters)
        return state, counters

    def write(self, report: compiled.Report, counters: Counters, rate: float) -> None:
        """Writes the rows of a chunk into the record and shows the progress."""
        per_update = self.training.steps_per_update
        rows = chunk_rows(report, counters, self.settings.seeds, per_update, rate)
        self.record.append(rows)
        score = (self.training.score, mean_score(rows, self.training.score))
        self.display.update(self.fraction(counters), self.steps(counters), rate, score)

    def save(self, state: RunState, counters: Counters) -> None:
        """Saves a checkpoint unless this update has one; rows reach the disk before it."""
        if counters.updates == self._saved.updates:
            return
        self.record.sync()
        meta = {**self.meta, "counters": counters._asdict()}
        checkpoint.save(self.directory / CHECKPOINTS, counters.updates, state, meta)
        self._saved = counters

    def load(self) -> tuple[RunState, Counters]:
        """The newest checkpoint, or the initial state if there is none; cuts the record to it."""
        if checkpoint.steps(self.directory / CHECKPOINTS):
            state, meta, _ = checkpoint.restore(self.directory / CHECKPOINTS, self.programs.like)
            counters = Counters(**meta["counters"])
            ours = {name: self.meta[name] for name in ("versions", "device")}
            for change in differences({name: meta[name] for name in ours}, ours):
                _log.warning("%s since the run was saved: it may not continue bit for bit", change)
        else:
            zeros = [0] * self.settings.num_seeds
            state = self.programs.init(self.settings.seed_array())
            if self.policy is not None:
                state = state._replace(agent=policy_files.warm_started(state.agent, self.policy))
            counters = Counters(0, episodes=zeros, skipped=zeros, restores=0, seconds=0.0, rows=0)
        if dropped := self.record.cut(counters.rows):
            told = f"rows that came after update {counters.updates} are computed again"
            self.display.say(f"{self.meta['name']}: {dropped} {told}")
        self._saved = counters
        return state, counters

    def restore(
        self, counters: Counters, seconds: float, problem: str
    ) -> tuple[RunState, Counters]:
        """The newest checkpoint again, all seeds of it, with other random numbers."""
        state, saved = self.load()
        attempt = counters.restores + 1 - saved.restores
        if attempt > MAX_RESTORES:
            raise self.not_finite(f"{problem}, also after each of {MAX_RESTORES} restores")
        self.display.say(f"{problem}: back to update {saved.updates} with new random numbers")
        fold_in = jax.random.fold_in if self.settings.num_seeds == 1 else FOLD_IN_EACH
        state = state._replace(key=fold_in(state.key, attempt))
        return state, saved._replace(
            restores=counters.restores + 1, seconds=counters.seconds + seconds
        )

    def not_finite(self, problem: str) -> NonFiniteError:
        policies = {"skip", "restore"} - {self.settings.on_nonfinite}
        return NonFiniteError(
            f"{problem}: lower the learning rate, or try --resume {self.directory} "
            f"--run.on-nonfinite {' or '.join(sorted(policies))}"
        )

    def evaluate(self, state: RunState) -> Evaluation | None:
        """Evaluates the trained agents, if wanted; prints and writes the scores."""
        if not self.settings.evaluates:
            return None
        evaluation = evaluate_run(self.training, self.settings, state)
        write_evaluation(self.directory, evaluation)
        self.display.console.print(evaluation.table)
        self.display.say(
            f"evaluated in {clock(evaluation.content['seconds'])}, "
            f"after compiling for {clock(evaluation.content['compile_seconds'])}"
        )
        return evaluation

    def steps(self, counters: Counters) -> int:
        """Steps of each seed, in `Training.unit`."""
        return counters.updates * self.training.steps_per_update

    def fraction(self, counters: Counters) -> float:
        """How much of the run is done, 0 to 1; 1 also if every seed has settled."""
        if counters.settled:
            return 1.0
        per_update = self.training.steps_per_update
        return self.settings.fraction_done(counters.updates, counters.episodes, per_update)
