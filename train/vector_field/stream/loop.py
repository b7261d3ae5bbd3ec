"""Observations in, inputs out: filters, learns and plans while samples arrive.

    with loop.open_loop(Options(channels=12, inputs=1, bound=(0.5,))) as rig:
        while running:
            u = rig.observe(y)  # [m] floats: give them now
            rig.settle()        # learn and plan, while there is time until the next sample

Three things are kept apart. What goes out has passed the guard and is on the disk before
(`guard`, `journal`). The learner fits in its own time, elsewhere (`learner_process`). In between,
the loop goes on with the last fit, absorbs samples as they come and, once a newer fit is there, has
that absorb what came since, a few samples at a time.

Letters: n channels, m inputs.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from train.host.errors import in_one_line
from train.host.machine.progress import show_activity
from train.vector_field.stream import settings
from train.vector_field.stream.forecast_scores import ForecastScores
from train.vector_field.stream.guard import Account, Input
from train.vector_field.stream.journal import Journal, Rows, what_is_huge
from train.vector_field.stream.learning.learner import (
    Learner,
    PromptLearner,
    Snapshot,
    first_state,
    in_units,
)
from train.vector_field.stream.learning.learner_process import LearnerProcess
from train.vector_field.stream.learning.live import BLOCK, Live
from train.vector_field.stream.settings import Options

LONGEST_GAP = 1_000
"""Samples that may be missing in a row."""


class BadSample(ValueError):
    """A sample that is not taken; the message, in one line, says why."""


class ClosedLoop:
    """The loop of one rig; see `open_loop`."""

    def __init__(self, options: Options, directory: Path, learner: Learner):
        """Compiles everything, and takes up the samples that the directory holds already."""
        self.options, self.directory = options, directory
        self.problem, self.limits = settings.problem(options), settings.rig_limits(options)
        self._journal = Journal(directory, options.channels, options.inputs)
        self._journal.begin_writing()
        count = self._journal.count
        past = self._journal.rows(max(0, count - self.limits.window), count)
        self._account = Account(self.limits, [tuple(x) for x in past.u.tolist()])
        if count:  # whoever heard nothing more has gone the quiet path since
            self._pass_unseen(self._account.samples_to_quiet())
        # The learner compiles and learns while this process compiles.
        self._learner, self._incoming = learner, None
        learner.start()
        self._live = Live(options, first_state(self.problem, options).params)
        self._live.rehearse()
        snapshot = learner.begin()
        if snapshot.count:
            self._live.replace(self._live.copy(snapshot.knowledge))
        self._live.plan_ahead(count)
        self._newest: int | None = None
        self._waiting = 0  # samples in the journal that are not absorbed yet
        self.scores, self._to_score = ForecastScores(options.channels), None

    @property
    def next_number(self) -> int:
        """The number of the sample that is expected next."""
        return self._journal.count

    @property
    def newest_number(self) -> int | None:
        """The number of the newest sample if it was observed, None if it passed unseen."""
        return self._newest

    @property
    def last_input(self) -> Input:
        """The input that counts as given now."""
        return self._account.last

    @property
    def knowledge(self):
        """What is known so far; `Knowledge` of the learner, whose inputs are in its units."""
        return self._live.knowledge

    def observe(self, y: Sequence[float] | np.ndarray, number: int | None = None) -> Input:
        """The input `[m]` for an observation `[n]`, NaN where missing; within all limits.

        `number` counts samples from 0: where some were left out they are filtered as missing, with
        the inputs of the quiet path. None: the next one. Raises `BadSample` for what is no
        observation, and for a number that is late or far ahead.
        """
        values = self._check(y)
        number = self.next_number if number is None else number
        if number < self.next_number:
            raise BadSample(f"sample {number} is late: expected {self.next_number} or a later one")
        if number - self.next_number > LONGEST_GAP:
            raise BadSample(
                f"sample {number} is {number - self.next_number:,} ahead of {self.next_number}, "
                f"which was expected: at most {LONGEST_GAP:,} may be missing"
            )
        self.settle()
        if number > self.next_number:
            self.fall_silent(number - self.next_number)
        response = self._live.respond(values, number)
        request = np.asarray(response.action, float) * self.problem.unit
        u = self._account.project(request.tolist())
        self._journal.append(values[None], np.array([u]))
        self._newest, self._waiting = number, 1
        self._to_score = (values, response.expected) if self._live.has_fit else None
        return u

    def settle(self) -> None:
        """Learns from the newest sample, and plans; does nothing if that is done."""
        is_new = self._waiting > 0
        if is_new:
            self._absorb_newest()
        self._take_over()
        if is_new:
            self._live.plan_ahead(self.next_number)

    def fall_silent(self, samples: int | None = None) -> None:
        """So many samples pass unseen, on the quiet path; None: as many as it takes to its end."""
        self.settle()
        count = self._account.samples_to_quiet() if samples is None else samples
        self._pass_unseen(count)
        self._waiting = count
        self.settle()

    def finish(self) -> None:
        """Waits until all samples are learned from as the batch program would, and saves."""
        self.settle()
        snapshot = self._learner.finish()
        self._incoming = snapshot._replace(knowledge=self._live.copy(snapshot.knowledge))
        while self._incoming is not None:
            self._catch_up()

    def close(self) -> None:
        """Ends without waiting for fits; the directory can be opened again."""
        self._journal.close()
        self._learner.close()

    def _check(self, y: Sequence[float] | np.ndarray) -> np.ndarray:
        """The observation as float32 `[n]`."""
        count = self.options.channels
        try:
            values = np.asarray(y, np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadSample(f"y holds no numbers ({in_one_line(error)})") from error
        if values.shape != (count,):
            raise BadSample(f"y has shape {list(values.shape)}, expected [{count}] numbers")
        if np.isinf(values).any():
            raise BadSample("y holds infinity: expected numbers, and NaN or null where missing")
        if message := what_is_huge(values):
            raise BadSample(message)
        if self.options.noise == "poisson":
            numbers = values[np.isfinite(values)]
            if (numbers < 0).any() or (numbers != np.round(numbers)).any():
                raise BadSample("y holds numbers that are no counts, as --noise poisson says")
        return values

    def _pass_unseen(self, count: int) -> None:
        if count:
            self._newest = None
            inputs = np.array(self._account.fall_silent(count))
            y = np.full((count, self.options.channels), np.nan, np.float32)
            self._journal.append(y, inputs)

    def _rows(self, start: int, end: int) -> Rows:
        """Samples from the journal, their inputs in units of the learner."""
        rows = self._journal.rows(start, end)
        return Rows(rows.y, in_units(self.problem, rows.u))

    def _absorb_newest(self) -> None:
        if self._to_score is not None:
            y, expected = self._to_score
            self.scores.add(y, np.asarray(expected))
            self._to_score = None
        rows = self._rows(self._journal.count - self._waiting, self._journal.count)
        self._live.absorb(rows)
        self._learner.send(self._journal.count)
        self._waiting = 0

    def _take_over(self) -> None:
        """Looks for a newer fit, or goes on with the one that is there."""
        newer = self._learner.poll()
        if newer is not None:
            self._incoming = newer._replace(knowledge=self._live.copy(newer.knowledge))
        if self._incoming is not None:
            self._catch_up()

    def _catch_up(self) -> None:
        """Lets a newer fit absorb some samples; takes it over once it has absorbed all."""
        assert self._incoming is not None
        knowledge, count = self._incoming
        rows = self._rows(count, count + BLOCK)
        self._incoming = Snapshot(self._live.after(knowledge, rows), count + len(rows.y))
        if self._incoming.count == self._journal.count:
            self._live.replace(self._incoming.knowledge)
            self._incoming = None


@contextmanager
def open_loop(options: Options, waits_for_fits: bool = False) -> Iterator[ClosedLoop]:
    """A closed loop in a directory of its own, or in that of `options.resume`.

    Fits are made by another process of low priority. `waits_for_fits`: by this one, each as soon as
    it is due; for records that are played again, and where time does not press. At its end all
    samples are saved; what was learned from them is for sure by `ClosedLoop.finish` alone, and
    what was not is learned again with `options.resume`. Raises UsageError, in one line, for
    impossible options.
    """
    options, directory = settings.begin(options)
    learner = (PromptLearner if waits_for_fits else LearnerProcess)(options, directory)
    with show_activity("compiling, before the first sample"):
        loop = ClosedLoop(options, directory, learner)
    gc.collect()
    gc.freeze()  # what was imported and compiled is never looked through again
    try:
        yield loop
    finally:
        loop.close()
