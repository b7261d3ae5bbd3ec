"""Every sample on disk before its input goes out: what a restart, and the learner, begin with.

A row for each sample number from 0 on: n float32 of the observation, NaN where missing, and m
float64 of the input that went out. A row that a crash cut short is dropped.

Letters: n channels, m inputs, T rows.
"""

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from train.host.errors import UsageError, os_errors_with_path
from train.host.files.locks import lock
from train.vector_field.data.data_checks import HUGE

FILE = "samples.bin"
BLOCK = 4_096
"""Rows that are checked at once."""


class Rows(NamedTuple):
    """Samples in a row."""

    y: np.ndarray  # float32 [T, n], NaN where missing
    u: np.ndarray  # float64 [T, m]


def what_is_huge(y: np.ndarray) -> str:
    """What is wrong with y `[..., n]` for numbers that are beyond `HUGE`; empty without such."""
    largest = np.fmax.reduce(np.abs(y), axis=None, initial=0)
    if largest <= HUGE:
        return ""
    return (
        f"y holds values up to {largest:.2g}, expected at most {HUGE:g}: send NaN or null where "
        "missing, or divide y by its standard deviation"
    )


class Journal:
    """The samples of a stream, and how many there are."""

    def __init__(self, directory: Path, channels: int, inputs: int):
        """Names the file of a directory, which need not be there yet."""
        self.path = directory / FILE
        self._row = np.dtype([("y", "<f4", (channels,)), ("u", "<f8", (inputs,))])
        self._file: BinaryIO | None = None
        self._count = 0

    def begin_writing(self) -> None:
        """Opens it for `append`. Raises UsageError if another process writes it."""
        with os_errors_with_path(self.path):
            self._file = self.path.open("ab", buffering=0)
            lock(self._file, self.path.parent)
            self._count = self._whole_rows()
            self._file.truncate(self._count * self._row.itemsize)

    @property
    def count(self) -> int:
        """T, the samples so far."""
        return self._whole_rows() if self._file is None else self._count

    def append(self, y: np.ndarray, u: np.ndarray) -> None:
        """Adds rows `[T, n]` and `[T, m]`; they are with the operating system after this call.

        Where that is refused, as on a full disk, there is no part of them.
        """
        assert self._file is not None
        rows = np.empty(len(y), self._row)
        rows["y"], rows["u"] = y, u
        with os_errors_with_path(self.path):
            content = rows.tobytes()
            try:
                while content:  # an unbuffered file may take a part
                    content = content[self._file.write(content) :]
            except OSError:
                self._file.truncate(self._count * self._row.itemsize)
                raise
        self._count += len(y)

    def rows(self, start: int, end: int) -> Rows:
        """Reads rows from `start` to before `end`; fewer if there are not so many."""
        size = self._row.itemsize
        with os_errors_with_path(self.path), self.path.open("rb") as file:
            file.seek(start * size)
            content = file.read(max(0, end - start) * size)
        rows = np.frombuffer(content[: len(content) // size * size], self._row)
        return Rows(rows["y"], rows["u"])

    def refuse_huge(self) -> None:
        """Raises UsageError for a sample that was taken before such samples were refused."""
        for start in range(0, self.count, BLOCK):
            y = self.rows(start, start + BLOCK).y
            if what_is_huge(y):
                row = int(np.argmax((np.abs(y) > HUGE).any(axis=1)))
                message = what_is_huge(y[row])
                raise UsageError(f"{self.path}, sample {start + row}: {message}, in a new stream")

    def flush(self) -> None:
        """Waits until all is on the disk."""
        with os_errors_with_path(self.path), self.path.open("rb+") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        """Ends writing."""
        if self._file is not None:
            self._file.close()

    def _whole_rows(self) -> int:
        size = self.path.stat().st_size if self.path.exists() else 0
        return size // self._row.itemsize
