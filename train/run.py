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
from train import programs, records
from train.config import differences, plain
from train.errors import Interrupted, NonFiniteError, RunError, UsageError
from train.progress import Display, clock, evaluation_table
from train.settings import MAY_CHANGE, Config, Training
from train.signals import StopRequest

MAX_RESTORES = 3
"""How often `on_nonfinite="restore"` goes back to one and the same checkpoint."""

_log = logging.getLogger(__name__)


class Result(NamedTuple):
    """What a finished run leaves, beside its directory."""

    directory: Path
    state: TrainState  # with a leading axis S if there are several seeds
    evaluation: dict[str, Any] | None  # what `eval.json` holds


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
    directory = Path(settings.resume or records.create(settings.directory, name))
    with records.MetricsFile(directory) as record, Display(name) as display:
        records.write_config(directory, name, preset, config)
        display.say(f"{name}: compiling; the run is in {directory}")
        with StopRequest(display.say) as stop:
            compiled = traced.compile()
            display.say(f"{name}: compiled in {clock(time.perf_counter() - started)}")
            meta = {"name": name, "config": plain(config), **records.provenance()}
            session = Session(training, settings, directory, compiled, record, display, stop, meta)
            try:
                return session.run()
            except Exception as error:
                if not isinstance(error, RunError):
                    error.add_note(f"What was saved of this run: --resume {directory}")
                raise


def refuse_other_config(training: Training, config: Any, name: str) -> None:
    """Raises, naming each field, if `config.run.resume` is the run of another configuration."""
    directory = config.run.resume
    saved = records.read_config(directory)
    if saved["name"] != name:
        raise UsageError(f"{directory} is a run of {saved['name']}, not of {name}")
    fixed = {"run.total_transitions"} if training.budget_shapes_learning else set()
    changed = differences(saved["config"], plain(config), MAY_CHANGE - fixed)
    if changed:
        raise UsageError(
            f"{directory} has another configuration ({'; '.join(changed)}): "
            "resume it without these fields, or start a new run"
        )


def trace(training: Training, settings: Config) -> programs.Traced:
    """Traces the programs; sizes that do not fit together show here."""
    try:
        return programs.trace(
            training.init,
            training.update,
            settings.seed_array(),
            settings.chunk_updates(training.transitions_per_update),
            skip=settings.on_nonfinite == "skip",
        )
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from error


class Counters(NamedTuple):
    """How far a run is; on the host, where integers do not overflow."""

    updates: int
    episodes: list[int]  # [S]
    skipped: list[int]  # [S] updates undone
    restores: int
    seconds: float  # spent in chunks


@dataclass
class Session:
    """One run on its way."""

    training: Training
    settings: Config
    directory: Path
    programs: programs.Programs
    record: records.MetricsFile
    display: Display
    stop: StopRequest
    meta: dict[str, Any]
    _saved: Counters | None = field(default=None, init=False)  # what the newest checkpoint counts

    def run(self) -> Result:
        """From the newest checkpoint, or from the beginning, to the end."""
        state, counters = self.load()
        self.display.begin(self.fraction(counters))
        while self.fraction(counters) < 1:
            if self.stop.requested:
                self.save(state, counters)
                raise Interrupted(
                    f"stopped after {self.transitions(counters):,} of "
                    f"{self.settings.total_transitions:,} steps: --resume {self.directory}"
                )
            state, counters = self.advance(state, counters)
        self.save(state, counters)
        self.display.end()
        rate = self.transitions(counters) * self.settings.num_seeds / max(counters.seconds, 1e-9)
        self.display.say(
            f"{self.meta['name']}: {self.transitions(counters):,} steps in "
            f"{clock(counters.seconds)}, {rate:,.0f} steps/s"
        )
        return Result(self.directory, state, self.evaluate(state, rate))

    def advance(self, state: TrainState, counters: Counters) -> tuple[TrainState, Counters]:
        """One chunk, its rows and, where due, a checkpoint."""
        per_update = self.training.transitions_per_update
        length = self.settings.chunk_updates(per_update)
        count = min(
            length - counters.updates % length,  # chunks end where those of any other run do
            self.settings.total_updates(per_update) - counters.updates,
        )
        started = time.perf_counter()
        state, report = self.programs.chunk(state, np.int32(count))
        report = by_seed(jax.device_get(report), count)  # waits for the chunk
        seconds = time.perf_counter() - started
        if not report.finite.all():
            problem = what_is_not_finite(report, counters.updates, self.settings.seeds)
            if self.settings.on_nonfinite == "restore":
                return self.go_back(counters, seconds, problem)
            if self.settings.on_nonfinite == "raise" or not report.finite.any(0).all():
                raise NonFiniteError(
                    f"{problem}: learn more gently, or --resume {self.directory} "
                    "--run.on_nonfinite skip or restore"
                )
        counters = Counters(
            updates=counters.updates + count,
            episodes=[a + int(b) for a, b in zip(counters.episodes, report.metrics.episodes.sum(0), strict=True)],
            skipped=[a + int(b) for a, b in zip(counters.skipped, (~report.finite).sum(0), strict=True)],
            restores=counters.restores,
            seconds=counters.seconds + seconds,
        )
        rate = count * per_update * self.settings.num_seeds / seconds
        rows = chunk_rows(report, counters, self.settings.seeds, per_update, rate)
        self.record.append(rows)
        scores = [row["finished"][self.training.score] for row in rows]
        score = float(np.mean([x for x in scores if x is not None])) if any(x is not None for x in scores) else None
        self.display.update(
            self.fraction(counters), self.transitions(counters), rate, (self.training.score, score)
        )
        if counters.updates % (length * self.settings.checkpoint_every) == 0:
            self.save(state, counters)
        return state, counters
