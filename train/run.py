"""The host side of a training: run chunks, record, save, resume, stop, evaluate.

Knows no agent and no environment: an entry point joins them into a `Training`. A run is a
directory (see `train.records`), with the whole state in its `checkpoints/` (see
`jaxrl.checkpoint`). With the same configuration a run gives the same numbers, whether or not it
was stopped and resumed on the way. Python only starts chunks and looks at what they report;
that takes a few milliseconds each, so a chunk is looked at before the next one starts.
"""

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl import checkpoint
from jaxrl.loop import TrainState
from train import policy_files, programs, records
from train.config import differences, plain
from train.errors import Interrupted, NonFiniteError, RunError, UsageError
from train.progress import Display, clock
from train.records import CHECKPOINTS
from train.rows import Counters, by_seed, chunk_rows, counted, mean_score, what_is_not_finite
from train.scores import evaluate_run, write_evaluation
from train.settings import MAY_CHANGE, Config, Evaluation, Training
from train.signals import StopRequest

MAX_RESTORES = 3
"""How often `on_nonfinite="restore"` goes back to one and the same checkpoint."""

FOLD_IN_EACH = jax.vmap(jax.random.fold_in, in_axes=(0, None))
_log = logging.getLogger(__name__)


class Result(NamedTuple):
    """What a finished run leaves, beside its directory."""

    directory: Path
    state: TrainState  # with a leading axis S if there are several seeds
    evaluation: Evaluation | None  # with keys `programs.keys_of`; None if not wanted


def run(training: Training, config: Any, name: str, preset: str = "") -> Result:
    """Trains, records and evaluates; returns when the budget is used up.

    `config` is a dataclass whose field `run` is a `Config`. Raises UsageError before anything is
    written if something does not fit; Interrupted after a signal, once all is saved; and
    NonFiniteError as `on_nonfinite` says.
    """
    settings: Config = config.run
    if settings.resume:
        refuse_other_config(training, config, name)
    started = time.perf_counter()
    traced = trace(training, settings)
    policy = policy_for(training, settings, name)
    directory = Path(settings.resume or records.create(settings.directory, name))
    with records.MetricsFile(directory) as record, Display(name) as display:
        records.write_config(directory, name, preset, config)
        display.say(f"{name}: compiling; the run is in {directory}")
        with StopRequest(display.say) as stop:
            compiled = traced.compile()
            display.say(f"{name}: compiled in {clock(time.perf_counter() - started)}")
            meta = {"name": name, "config": plain(config), **records.provenance()}
            session = Session(
                training, settings, directory, compiled, policy, record, display, stop, meta
            )
            try:
                return session.run()
            except checkpoint.CheckpointError as error:
                raise UsageError(str(error)) from error
            except Exception as error:
                if not isinstance(error, RunError):
                    error.add_note(f"What was saved of this run goes on with --resume {directory}")
                raise


def refuse_other_config(training: Training, config: Any, name: str) -> None:
    """Raises, naming each field, if `config.run.resume` is the run of another configuration."""
    directory = config.run.resume
    saved = records.read_config(directory)
    if saved["name"] != name:
        raise UsageError(f"{directory} is a run of {saved['name']}, not of {name}")
    if checkpoint.steps(Path(directory) / CHECKPOINTS):  # the file may have been edited since
        try:
            saved = checkpoint.read_meta(Path(directory) / CHECKPOINTS)
        except checkpoint.CheckpointError as error:
            raise UsageError(f"{error}: delete that folder to start over") from None
    fixed = {"run.total_steps"} if training.budget_shapes_learning else set()
    changed = differences(saved["config"], plain(config), MAY_CHANGE - fixed)
    if changed:
        raise UsageError(
            f"{directory} has another configuration ({'; '.join(changed)}): "
            "resume it without these fields, or start a new run"
        )


def policy_for(training: Training, settings: Config, name: str) -> dict[str, np.ndarray] | None:
    """The parameters that a new run begins with, if they are not random.

    Raises UsageError unless the policy is of this entry point and has the same network.
    """
    has_begun = settings.resume and checkpoint.steps(Path(settings.resume) / CHECKPOINTS)
    if not settings.begins_with or has_begun:
        return None
    path = policy_files.file_of(settings.begins_with)
    trained_by = policy_files.read_metadata(path)["entry_point"]
    if trained_by != name:
        raise UsageError(f"{path} is a policy of {trained_by}, not of {name}")
    agent = jax.eval_shape(training.init, jax.random.key(0)).agent
    return policy_files.read_arrays(path, policy_files.parameters(agent))


def trace(training: Training, settings: Config) -> programs.Traced:
    """Traces the programs; sizes that do not fit together show here."""
    try:
        traced = programs.trace(
            training.init,
            training.update,
            settings.seed_array(),
            settings.chunk_updates(training.steps_per_update),
            skip=settings.on_nonfinite == "skip",
        )
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from error
    refuse_other_score(training.score, traced.chunk.out_info[1])
    return traced


def refuse_other_score(score: str, report: programs.Report) -> None:
    """Raises UsageError unless such a report has a measure `score` that is one number."""
    measures = report.metrics.agent | report.metrics.finished
    per_update = len(report.finite.shape)
    numbers = sorted(name for name, x in measures.items() if len(x.shape) == per_update)
    if score not in numbers:
        names = ", ".join(numbers)
        raise UsageError(f"there is no number {score!r} to score: choose one of {names}")


@dataclass
class Session:
    """One run on its way."""

    training: Training
    settings: Config
    directory: Path
    compiled: programs.Programs
    policy: dict[str, np.ndarray] | None  # that a new run begins with
    record: records.MetricsFile
    display: Display
    stop: StopRequest
    meta: dict[str, Any]
    _saved: Counters = field(init=False)  # what the newest checkpoint counts

    def run(self) -> Result:
        """From the newest checkpoint, or from the beginning, to the end."""
        state, counters = self.load()
        self.display.begin(self.fraction(counters))
        while self.fraction(counters) < 1:
            if self.stop.requested:
                self.save(state, counters)
                raise Interrupted(
                    f"stopped after {self.steps(counters):,} of "
                    f"{self.settings.total_steps:,} steps: --resume {self.directory}"
                )
            state, counters = self.advance(state, counters)
        self.save(state, counters)
        self.display.end()
        rate = self.steps(counters) * self.settings.num_seeds / max(counters.seconds, 1e-9)
        self.display.say(
            f"{self.meta['name']}: {self.steps(counters):,} steps in "
            f"{clock(counters.seconds)}, {rate:,.0f} steps/s"
        )
        return Result(self.directory, state, self.evaluate(state))

    def advance(self, state: TrainState, counters: Counters) -> tuple[TrainState, Counters]:
        """One chunk, its rows and, where due, a checkpoint."""
        per_update = self.training.steps_per_update
        length = self.settings.chunk_updates(per_update)
        count = min(
            length - counters.updates % length,  # so that chunks end at multiples of their length
            self.settings.total_updates(per_update) - counters.updates,
        )
        started = time.perf_counter()
        state, report = self.compiled.chunk(state, np.int32(count))
        report = by_seed(jax.device_get(report), count)  # waits for the chunk
        seconds = time.perf_counter() - started
        if not report.finite.all():
            problem = what_is_not_finite(report, counters, self.settings.seeds)
            if self.settings.on_nonfinite == "restore":
                return self.go_back(counters, seconds, problem)
            if self.settings.on_nonfinite == "raise" or not report.finite.any(axis=0).all():
                raise self.not_finite(problem)
        counters = counted(counters, report, seconds, self.training.settled)
        self.write(report, counters, count * per_update * self.settings.num_seeds / seconds)
        if counters.updates % (length * self.settings.checkpoint_every) == 0:
            self.save(state, counters)
        return state, counters

    def write(self, report: programs.Report, counters: Counters, rate: float) -> None:
        """The rows of a chunk into the record, their gist onto the display."""
        per_update = self.training.steps_per_update
        rows = chunk_rows(report, counters, self.settings.seeds, per_update, rate)
        self.record.append(rows)
        score = (self.training.score, mean_score(rows, self.training.score))
        self.display.update(self.fraction(counters), self.steps(counters), rate, score)

    def save(self, state: TrainState, counters: Counters) -> None:
        """A checkpoint, unless the newest one is of this update; rows reach the disk before it."""
        if counters.updates == self._saved.updates:
            return
        self.record.sync()
        meta = {**self.meta, "counters": counters._asdict()}
        checkpoint.save(self.directory / CHECKPOINTS, counters.updates, state, meta)
        self._saved = counters

    def load(self) -> tuple[TrainState, Counters]:
        """The newest checkpoint, or the beginning where there is none; the record is cut to it."""
        if checkpoint.steps(self.directory / CHECKPOINTS):
            state, meta, _ = checkpoint.restore(self.directory / CHECKPOINTS, self.compiled.like)
            counters = Counters(**meta["counters"])
            ours = {name: self.meta[name] for name in ("versions", "device")}
            for change in differences({name: meta[name] for name in ours}, ours):
                _log.warning("%s since the run was saved: it may not go on bit for bit", change)
        else:
            zeros = [0] * self.settings.num_seeds
            state = self.compiled.init(self.settings.seed_array())
            if self.policy is not None:
                state = state._replace(agent=policy_files.begun(state.agent, self.policy))
            counters = Counters(updates=0, episodes=zeros, skipped=zeros, restores=0, seconds=0.0)
        self.record.cut(counters.updates)
        self._saved = counters
        return state, counters

    def go_back(
        self, counters: Counters, seconds: float, problem: str
    ) -> tuple[TrainState, Counters]:
        """The newest checkpoint again, all seeds of it, with other random numbers."""
        state, saved = self.load()
        attempt = counters.restores + 1 - saved.restores
        if attempt > MAX_RESTORES:
            raise self.not_finite(f"{problem}, and so after each of {MAX_RESTORES} restores")
        self.display.say(f"{problem}: back to update {saved.updates} with new random numbers")
        fold_in = jax.random.fold_in if self.settings.num_seeds == 1 else FOLD_IN_EACH
        state = state._replace(key=fold_in(state.key, attempt))
        return state, saved._replace(
            restores=counters.restores + 1, seconds=counters.seconds + seconds
        )

    def not_finite(self, problem: str) -> NonFiniteError:
        policies = {"raise", "skip", "restore"} - {self.settings.on_nonfinite}
        return NonFiniteError(
            f"{problem}: learn more gently, or try --resume {self.directory} "
            f"--run.on_nonfinite {' or '.join(sorted(policies))}"
        )

    def evaluate(self, state: TrainState) -> Evaluation | None:
        """Finds out how good the agents have become, if wanted; prints and writes it."""
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
        """Steps of each seed."""
        return counters.updates * self.training.steps_per_update

    def fraction(self, counters: Counters) -> float:
        """How much of the run is done; 1 as well if nothing more would be learnt."""
        if counters.settled:
            return 1.0
        per_update = self.training.steps_per_update
        return self.settings.fraction_done(counters.updates, counters.episodes, per_update)
