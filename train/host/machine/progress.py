"""Progress of a run: a bar on a terminal, lines in a log."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from train.host.numbers import digits_text, quantity

SILENCE = 10.0
"""Seconds between two lines where output does not go to a terminal."""


def plain_console(stderr: bool = False) -> Console:
    """A console that adds no colour, and that breaks lines, between words, on a terminal alone.

    In a file a sentence stays a line, so that tools that search lines find it.
    """
    console = Console(stderr=stderr, highlight=False)
    console.soft_wrap = not console.is_terminal
    return console


def print_line(text: str, stderr: bool = False) -> None:
    """Prints a sentence with `plain_console`."""
    plain_console(stderr).print(text, markup=False)


@cache
def print_once(text: str) -> None:
    """Prints a sentence to stderr, if this process has not done so: a file may be read again."""
    print_line(text, stderr=True)


class Display:
    """A progress bar on a terminal; elsewhere (a log file, a notebook) a plain line at times."""

    def __init__(self, name: str, console: Console | None = None):
        self.name = name
        self.console = console or plain_console()
        self._bar: Progress | None = None
        self._began = self._spoke = time.monotonic()
        self._score: float | None = None

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def end(self) -> None:
        """Leaves the bar as it stands."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def say(self, text: str) -> None:
        """One line of its own, above the bar."""
        self.console.print(text, markup=False)
        self.console.file.flush()  # a log file is read while the run goes on

    def begin(self, fraction: float, unit: str) -> None:
        """The first chunk starts now, with `fraction` of the run done; `unit` is what is counted.

        The unit is in the plural: "gradient steps".
        """
        self._unit = unit
        self._began = self._spoke = time.monotonic()
        self._fraction_before = fraction
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TaskProgressColumn(),
                TextColumn("{task.fields[status]}", markup=False),
            )
            self._bar = Progress(*columns, console=self.console, refresh_per_second=2)
            self._task = self._bar.add_task(self.name, total=1.0, status="")
            self._bar.update(self._task, completed=fraction)
            self._bar.start()

    def update(
        self, fraction: float, count: int, rate: float, score: tuple[str, float | None]
    ) -> None:
        """After a chunk: `count` units and `fraction` of the run are done, at `rate` units/s."""
        name, value = score
        self._score = self._score if value is None else value
        parts = [quantity(count, self._unit), f"{rate_text(rate)}/s"]
        if self._score is not None:
            parts.append(f"{name} {digits_text(self._score)}")
        parts.append(self._time_left(fraction))
        if self._bar:
            self._bar.update(self._task, completed=fraction, status="  ".join(parts))
        elif time.monotonic() - self._spoke >= SILENCE:
            self._spoke = time.monotonic()
            self.say("  ".join([f"{self.name}  {fraction:4.0%}", *parts]))

    def _time_left(self, fraction: float) -> str:
        """Estimated from the speed of this process; a resumed run may have had another before."""
        done = fraction - self._fraction_before
        if done <= 0:
            return ""
        return f"{clock((time.monotonic() - self._began) * max(0.0, 1 - fraction) / done)} left"


@contextmanager
def show_activity(activity: str, console: Console | None = None) -> Iterator[Callable[[str], None]]:
    """Shows on stderr what a long call is doing, and for how long already.

    A clock on a terminal; elsewhere a plain line at times. What is yielded tells what it is doing
    from then on.
    """
    console = console or plain_console(stderr=True)
    if console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(activity, total=None)
            yield lambda text: bar.update(task, description=text)
        return
    stop_event, start_time, latest = threading.Event(), time.monotonic(), [activity]

    def speak() -> None:
        while not stop_event.wait(SILENCE):
            console.print(f"{latest[0]}, {clock(time.monotonic() - start_time)}", markup=False)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield lambda text: latest.__setitem__(0, text)
    finally:
        stop_event.set()
        speaker.join()


def rate_text(rate: float) -> str:
    """`351,000`, `12`, `0.21`: whole numbers from 10 on, below that two significant digits."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def clock(seconds: float) -> str:
    """`1h02m`, `3m07s`, `41s`, `0.3s`."""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    minutes, remaining = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{remaining:02}s" if minutes else f"{remaining}s"
