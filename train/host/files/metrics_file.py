"""`metrics.jsonl`, the record of a training: a row per seed and chunk of updates.

    row                              its number, from 1
    seed, updates, steps, episodes   the seed, and counts since its start; `training.Training.unit`
                                     says what a step is, such as an environment or gradient step
    seconds                          training time so far, without compilation and saving
    steps_per_second                 steps of all seeds per second in this chunk, in three digits
                                     or more
    finished                         means over the episodes that ended in this chunk: return,
                                     length and the environment's outcome; null if none ended, and
                                     empty where no episodes are played
    agent                            means over this chunk's updates of the agent's measures, which
                                     are numbers or lists of numbers; of those whose names end in
                                     _min or _max the smallest or the largest
    evaluated                        where policies were scored after this chunk: the number of
                                     games, and mean, low and high of the score, with its interval
    skipped, restores                updates undone and returns to a checkpoint, so far
    crc32                            checksum of the row up to here

A row that was damaged or deleted is reported by its number; all other rows are still used.
"""

import contextlib
import json
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import jax

from train.host.errors import UsageError, os_errors_with_path
from train.host.files.locks import lock
from train.host.files.run_directory import METRICS, RunDirectory
from train.host.files.whole_files import finite_or_null, replacement_file

_SEALED = re.compile(rb'(?P<row>\{.*), "crc32": "(?P<crc32>[0-9a-f]{8})"\}\n', re.DOTALL)
_log = logging.getLogger(__name__)


class Line(NamedTuple):
    """A line of the file that holds a whole row."""

    number: int
    row: dict[str, Any]
    end: int  # of the line, in bytes from the start of the file


class MetricsFile:
    """`metrics.jsonl`, open for appending by this process alone."""

    def __init__(self, directory: Path):
        self.path = RunDirectory(directory).metrics
        self._file = self._open()
        self._next = 1

    def _open(self) -> IO[bytes]:
        file = self.path.open("a+b", buffering=0)  # or a full disk would be told at the end
        lock(file, self.path.parent)
        return file

    def __enter__(self) -> "MetricsFile":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Writes rows at once, so that other processes can read them."""
        numbered = ({"row": self._next + i, **row} for i, row in enumerate(rows))
        content = b"".join(map(line_with_checksum, numbered))
        with os_errors_with_path(self.path):
            while content:
                content = content[self._file.write(content) :]
        self._next += len(rows)

    def rows(self) -> list[dict[str, Any]]:
        """The rows that are there and whole."""
        with self.path.open("rb") as file:
            return [line.row for line in whole_lines(file)]

    def replace(self, count: int, rows: list[dict[str, Any]]) -> None:
        """Puts `rows` in the place of all after the first `count`, in one step or not at all."""
        with self.path.open("rb") as file:
            kept_lines = [line for line in whole_lines(file) if line.number <= count]
        first = ({"row": line.number, **line.row} for line in kept_lines)
        last = ({"row": count + 1 + i, **row} for i, row in enumerate(rows))
        with replacement_file(self.path) as new_file:
            new_file.writelines(map(line_with_checksum, (*first, *last)))
        self._file.close()
        self._file = self._open()
        self._next = count + len(rows) + 1

    def sync(self) -> None:
        """Returns when all rows would survive a power cut."""
        with os_errors_with_path(self.path):
            os.fsync(self._file.fileno())

    def cut(self, count: int) -> int:
        """Drops all rows after the first `count`, and returns how many; reports lost ones."""
        self._file.seek(0)
        lines = list(whole_lines(self._file))
        kept_lines = [line for line in lines if line.number <= count]
        report_lost(self.path, (line.number for line in kept_lines), count)
        end = max((line.end for line in kept_lines), default=0)
        with os_errors_with_path(self.path):
            self._file.truncate(end)
        self._file.seek(end)
        self._next = count + 1
        return len(lines) - len(kept_lines)


class NoFile(contextlib.AbstractContextManager):
    """In place of the file, for processes that write nothing."""

    def __exit__(self, *_) -> None:
        pass

    def append(self, rows: list[dict[str, Any]]) -> None:
        pass

    def replace(self, count: int, rows: list[dict[str, Any]]) -> None:
        pass

    def sync(self) -> None:
        pass

    def cut(self, count: int) -> int:
        del count
        return 0

    def rows(self) -> list[dict[str, Any]]:
        return []


def open_for_process(directory: Path) -> MetricsFile | NoFile:
    """The file for this process: the first one writes."""
    return MetricsFile(directory) if jax.process_index() == 0 else NoFile()


def read_metrics(directory: str | Path, count: int = 0) -> list[dict[str, Any]]:
    """The rows of `metrics.jsonl`, also while the run is being written.

    Reports the numbers of rows that are lost among all, or among the first `count` if those are
    more. Raises UsageError if there is no such file.
    """
    path = RunDirectory(Path(directory)).metrics
    if not path.is_file():
        is_run = RunDirectory(Path(directory)).has_config
        advice = "put it back, or an empty file" if is_run else "give the directory of a run"
        raise UsageError(f"{directory} holds no {METRICS}: {advice}")
    with path.open("rb") as file:
        lines = list(whole_lines(file))
    report_lost(path, (line.number for line in lines), count)
    return [line.row for line in lines]


def count_rows(directory: str | Path) -> int:
    """The number of whole rows; 0 without a file."""
    path = RunDirectory(Path(directory)).metrics
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(1 for _ in whole_lines(file))


def line_with_checksum(row: dict[str, Any]) -> bytes:
    """A line of the file: the row as JSON, with its checksum."""
    text = json.dumps(finite_or_null(row))[:-1].encode()
    return text + f', "crc32": "{zlib.crc32(text):08x}"}}\n'.encode()


def whole_lines(file: Iterable[bytes]) -> Iterator[Line]:
    """The lines whose checksum is right; a crash may have left the last one incomplete."""
    end = 0
    for line in file:
        end += len(line)
        match = _SEALED.fullmatch(line)
        if match is None or int(match["crc32"], 16) != zlib.crc32(match["row"]):
            continue
        row = json.loads(match["row"] + b"}")
        yield Line(row.pop("row"), row, end)


def report_lost(path: Path, row_numbers: Iterable[int], count: int) -> None:
    """Warns of rows up to the last, or up to `count`, that are not among `row_numbers`."""
    present = set(row_numbers)
    lost = sorted(set(range(1, max({*present, count}, default=0) + 1)) - present)
    if lost:
        _log.warning(
            "%s: %s damaged or missing; the other rows are used", path, ", ".join(spans(lost))
        )


def spans(numbers: list[int]) -> list[str]:
    """Ascending numbers as text: `row 2`, `rows 5 to 7`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return [f"rows {x[0]} to {x[1]}" if len(x) > 1 else f"row {x[0]}" for x in ranges]
