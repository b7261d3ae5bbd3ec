"""One training in progress: chunks, record, checkpoints, signals, scores."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl import checkpoint
from jaxrl.types import RunState
from train.host.compilation import compiled
from train.host.errors import Interrupted, NonFiniteError
from train.host.files import metrics_file
from train.host.files.log import Log
from train.host.files.rows import Counters, chunk_rows, mean_score, trim_report, updated_counters
from train.host.files.run_directory import RunDirectory, resume_flag
from train.host.files.snapshots import SnapshotWriter
from train.host.machine import devices, distributed
from train.host.machine.members import Members
from train.host.machine.progress import Display, clock, rate_text
from train.host.machine.signals import StopRequest
from train.host.numbers import quantity
from train.host.running import ended_members
from train.host.running.problems import Problem, advice, first_problem
from train.host.running.start_state import initial_state, restored_state, with_other_draws
from train.host.scoring.best import BestTracker
from train.host.training import Config, PlayConfig, Training

MAX_RESTORES = 3
"""How often `on_nonfinite="restore"` returns to the same checkpoint."""


@dataclass
class Session:
    """One run in progress."""

    training: Training
    settings: Config
    members: Members
    directory: RunDirectory
    programs: compiled.Programs
    policy: dict[str, np.ndarray] | None  # the parameters a new run begins with
    record: metrics_file.MetricsFile | metrics_file.NoFile
    display: Display
    stop: StopRequest
    meta: dict[str, Any]
    best: BestTracker | None = None
    snapshots: SnapshotWriter | None = None
    log: Log = field(default_factory=Log)
    members_are_trials: bool = False  # of a sweep: one that fails or ends leaves the others alone
    resume_path: Path | None = None  # what messages say to resume, if not the directory
    _saved: Counters = field(init=False)  # those of the newest checkpoint
    _is_out_of_patience: bool = field(init=False, default=False)  # as the settings are now

    def train(self) -> tuple[RunState, Counters]:
        """From the newest checkpoint, or from the beginning, to the end."""
        state, counters = self.load()
        self.catch_up(state, counters)
        if not distributed.any_process(self.stop.requested):  # or its games may be missing still
            self.look_for_improvement(counters)
        self.take_snapshot(state, counters)
        self.display.begin(self.progress(counters), self.training.unit)
        while self.fraction(counters) < 1:
            if distributed.any_process(self.stop.requested):
                self.save(state, counters)
                raise Interrupted(
                    f"stopped after {self.steps(counters):,} of "
                    f"{self.most_steps:,} {self.training.unit}: "
                    f"{resume_flag(self.resume_path or self.directory)}"
                )
            state, counters = self.advance(state, counters)
            self.take_snapshot(state, counters)
        self.save(state, counters)
        self.display.end()
        rate = self.steps(counters) * len(self.members.seeds) / max(counters.seconds, 1e-9)
        unit = self.training.unit
        self.display.say(
            f"{self.meta['name']}: {quantity(self.steps(counters), unit)} in "
            f"{clock(counters.seconds)}, {rate_text(rate)} {unit}/s"
        )
        best_line = (
            ""
            if self.best is None
            else self.best.summary_line(self.training.steps_per_update, unit)
        )
        if best_line:
            self.display.say(best_line)
        return state, counters

    def advance(self, state: RunState, counters: Counters) -> tuple[RunState, Counters]:
        """Runs one chunk, records it and, where due, saves a checkpoint."""
        per_update = self.training.steps_per_update
        length = self.settings.chunk_updates(per_update)
        count = min(
            length - counters.updates % length,  # so that chunks end at multiples of their length
            self.settings.total_updates(per_update) - counters.updates,
        )
        ended: list[int] = []
        if self.members_are_trials:
            ended = ended_members.places_of_ended(self.settings, counters)
        start_time = time.perf_counter()
        state, report = self.run_chunk(state, count, ended)
        seconds = time.perf_counter() - start_time
        if not report.finite.all():
            problem = first_problem(report, counters.updates, self.members.seeds)
            if self.settings.on_nonfinite == "restore" and not self.members_are_trials:
                return self.restore(counters, seconds, problem)
            if not self.goes_on(report):
                is_vain = self.settings.on_nonfinite == "skip"
                vain = ", and no update of its chunk is finite, so skipping does not help"
                raise self.not_finite(problem, vain if is_vain else "")
            if not self.members_are_trials and not any(counters.skipped):
                self.display.say(f"{problem.description}: undone, as are later ones like it")
        measure = self.training.converged_metric
        counters = updated_counters(counters, report, seconds, measure, ended)
        rows = self.evaluate_if_due(state, counters)
        if rows:
            self.look_for_improvement(counters)
        goes_on = np.delete(report.finite, ended, axis=1)
        if self.members_are_trials and not goes_on.any():
            counters = counters._replace(settled=True)  # nobody is left
        rate = count * per_update * (len(self.members.seeds) - len(ended)) / seconds
        self.write(report, counters, rate, rows, ended)
        if counters.updates % (length * self.settings.checkpoint_every) == 0:
            self.save(state, counters)
        return state, counters

    def run_chunk(
        self, state: RunState, count: int, ended: Sequence[int]
    ) -> tuple[RunState, compiled.Report]:
        """The state after `count` updates, which leave members at the places `ended` alone."""
        final_states = ended_members.copies(state, ended)
        state, report = self.programs.chunk(state, np.int32(count))
        report = trim_report(jax.device_get(report), count)  # waits for the chunk
        if not ended:
            return state, report
        state = ended_members.put_back(state, final_states, self.programs.like)
        return state, ended_members.report_without(report, ended)

    def take_snapshot(self, state: RunState, counters: Counters) -> None:
        """Keeps what the run looks like, if that is due."""
        if self.snapshots is not None:
            self.snapshots.write_if_due(
                state, counters.updates, is_last=self.fraction(counters) >= 1
            )

    def goes_on(self, report: compiled.Report) -> bool:
        """Whether the run may continue after updates that were not finite."""
        undone = self.settings.on_nonfinite == "skip" and bool(report.finite.any(axis=0).all())
        return undone or self.members_are_trials

    def evaluate_if_due(self, state: RunState, counters: Counters) -> list[dict[str, Any]] | None:
        """The scores of all members if they are due.

        None also after a signal that came while the games were played: `catch_up` plays them when
        the run is resumed.
        """
        if self.best is None or counters.updates % self.updates_per_evaluation:
            return None
        try:
            agents = devices.move_to_one_device(state.agent)
            return self.best.evaluate(agents, counters.updates, self.look_for_signals)
        except Interrupted:
            return None

    @property
    def updates_per_evaluation(self) -> int:
        """Updates from one evaluation to the next of a run that has them."""
        assert isinstance(self.settings, PlayConfig)
        length = self.settings.chunk_updates(self.training.steps_per_update)
        return length * self.settings.evaluate_every

    def look_for_improvement(self, counters: Counters) -> None:
        """Ends the run if no member has improved for long.

        No checkpoint says so: a resumed run may have another patience.
        """
        if self.best is None or not isinstance(self.settings, PlayConfig):
            return
        patience, updates = self.settings.patience, counters.updates
        if patience is None:
            return
        count = self.best.evaluations_without_improvement(updates, self.updates_per_evaluation)
        if count >= patience:
            self.display.say(f"{self.meta['name']}: {self.best.why_to_stop(patience)}")
            self._is_out_of_patience = True

    def look_for_signals(self, step: int) -> None:
        """Raises Interrupted after a signal, between two pieces of games.

        Several processes play theirs to the end, to stop at the same chunk.
        """
        del step
        if self.stop.requested and distributed.is_alone():
            raise Interrupted

    def catch_up(self, state: RunState, counters: Counters) -> None:
        """Plays the games for the score of the newest rows, if a signal kept them from it."""
        rows = self.record.rows()[-len(self.members.seeds) :] if self.best is not None else []
        is_missing = bool(rows) and "evaluated" not in rows[0]
        if not distributed.any_process(is_missing):  # the first one alone has a record
            return
        scores = self.evaluate_if_due(state, counters)
        if scores and rows:
            self.record.replace(counters.rows - len(rows), with_scores(rows, scores))
            self.log.begin(self.record.rows)

    def write(
        self,
        report: compiled.Report,
        counters: Counters,
        rate: float,
        scores: list[dict[str, Any]] | None = None,
        ended: Collection[int] = (),
    ) -> None:
        """Writes the rows of a chunk into the record and shows the progress."""
        rows = chunk_rows(report, counters, self.members, self.training, rate, ended)
        if scores:
            rows = with_scores(rows, scores)
        self.record.append(rows)
        self.log.append(rows)
        name = self.training.score.name
        score = (name, mean_score(rows, name))
        self.display.update(self.progress(counters), self.steps(counters), rate, score)

    def save(self, state: RunState, counters: Counters) -> None:
        """Saves a checkpoint unless this update has one; rows reach the disk before it."""
        if counters.updates == self._saved.updates:
            return
        self.record.sync()
        meta = {**self.meta, "counters": counters._asdict()}
        checkpoint.save(self.directory.checkpoints, counters.updates, state, meta)
        self.mark_saved(counters)

    def mark_saved(self, counters: Counters) -> None:
        """Remembers of when the newest checkpoint is."""
        self._saved = counters
        if self.best is not None:
            self.best.saved_updates = counters.updates

    def load(self) -> tuple[RunState, Counters]:
        """The newest checkpoint, or the initial state if there is none; cuts the record to it."""
        if checkpoint.steps(self.directory.checkpoints):
            state, counters = restored_state(self.directory, self.programs.like, self.meta)
        else:
            state, counters = initial_state(self.programs, self.members, self.policy)
        if dropped_count := self.record.cut(counters.rows):
            rows = quantity(dropped_count, "rows")
            text = f"computes again {rows} that came after update {counters.updates}"
            self.display.say(f"{self.meta['name']}: {text}")
        self.log.begin(self.record.rows)
        self.mark_saved(counters)
        return state, counters

    def restore(
        self, counters: Counters, seconds: float, problem: Problem
    ) -> tuple[RunState, Counters]:
        """The newest checkpoint again, all seeds of it, with other random numbers."""
        state, old_counters = self.load()
        attempt = counters.restores + 1 - old_counters.restores
        if attempt > MAX_RESTORES:
            raise self.not_finite(problem, f", also after each of {MAX_RESTORES} restores")
        self.display.say(
            f"{problem.description}: back to update {old_counters.updates} with new random numbers"
        )
        if self.best is not None:
            self.best.return_to(old_counters.updates)
        state = with_other_draws(state, attempt, self.programs.like)
        return state, old_counters._replace(
            restores=counters.restores + 1, seconds=counters.seconds + seconds
        )

    def not_finite(self, problem: Problem, addition: str) -> NonFiniteError:
        """The error that ends the run; `addition` is what was tried in vain."""
        policy, run = self.settings.on_nonfinite, str(self.resume_path or self.directory)
        remedy = advice(problem, self.meta["config"], policy, run)
        return NonFiniteError(f"{problem.description}{addition}: {remedy}")

    def steps(self, counters: Counters) -> int:
        """Steps of each seed, in `Training.unit`."""
        return counters.updates * self.training.steps_per_update

    def fraction(self, counters: Counters) -> float:
        """How much of the run is done, 0 to 1; 1 also if no seed has anything more to learn."""
        if counters.settled or self._is_out_of_patience:
            return 1.0
        per_update = self.training.steps_per_update
        return self.settings.fraction_done(counters.updates, counters.episodes, per_update)

    @property
    def most_steps(self) -> int:
        """Steps of each seed at most: the budget, or those after which nothing more is learned."""
        return min(self.settings.total_steps, self.training.ends_after or self.settings.total_steps)

    def progress(self, counters: Counters) -> float:
        """`fraction` of the steps that there will be, as it is shown."""
        return min(1.0, self.fraction(counters) * self.settings.total_steps / self.most_steps)


def with_scores(rows: list[dict[str, Any]], scores: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all members with the scores of the games that each played after the chunk."""
    return [row | {"evaluated": score} for row, score in zip(rows, scores, strict=True)]
