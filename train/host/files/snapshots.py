"""Arrays of a run that are kept while it learns: snapshots for pictures, and samples.

`snapshots/` of a run directory holds what the run looked like from time to time, a file for each
update named after it. They become rarer as the run gets longer, since most changes early: after the
chunks 1, 2, 3, ... and later after each whose number is a tenth larger. `samples/` holds the newest
samples after every chunk. Which files there are does not depend on where a run was stopped and
resumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl import checkpoint
from jaxrl.types import RunState
from train.host.compilation import ahead_of_time
from train.host.errors import UsageError
from train.host.files import array_files
from train.host.files.run_directory import RunDirectory
from train.host.files.whole_files import write_arrays
from train.host.machine import devices, distributed
from train.host.training import Config, Training

GROWTH = 1.1


class SavedArrays(NamedTuple):
    """The files of a run."""

    updates: np.ndarray  # int [M] after which they were written, rising
    arrays: dict[str, np.ndarray]  # [M, S, ...] of S seeds


@dataclass(frozen=True)
class SnapshotWriter:
    """Writes the snapshots and samples of a run in progress."""

    directory: RunDirectory
    look: dict[Path, Any]  # compiled, by folder: state -> arrays
    several: bool  # seeds, whose axis the state then has
    chunk: int  # updates in one

    def write_if_due(self, state: RunState, updates: int, is_last: bool) -> None:
        """Writes what is due after so many updates."""
        for folder, look in self.look.items():
            if folder == self.directory.samples:
                due = updates > 0
            else:
                due = is_last or is_due(updates, self.chunk)
            if due:
                self._write(
                    folder, jax.device_get(look(devices.move_to_one_device(state))), updates
                )

    def _write(self, folder: Path, device_arrays: dict[str, Any], updates: int) -> None:
        if not distributed.is_first():
            return
        arrays = {k: np.asarray(x if self.several else x[None]) for k, x in device_arrays.items()}
        if folder == self.directory.snapshots:
            arrays = {name: to_half_precision(x) for name, x in arrays.items()}
        folder.mkdir(exist_ok=True)
        write_arrays(folder / f"{updates:09d}.npz", arrays)


def make(
    training: Training, settings: Config, directory: RunDirectory, like: RunState
) -> SnapshotWriter | None:
    """Compiles what is looked at in states of the shapes `like`; None if there is nothing."""
    chunk = settings.chunk_updates(training.steps_per_update)
    functions = {directory.snapshots: training.snapshot, directory.samples: training.samples}
    updates = max(checkpoint.steps(directory.checkpoints), default=0)
    if updates > chunk and not directory.samples.is_dir():
        functions[directory.samples] = None  # of which the first are missing, as in a sweep's best/
    several = settings.num_seeds > 1
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), like)  # on one device
    look = {
        folder: ahead_of_time.trace(
            jax.vmap(body) if several else body, shapes, name=folder.name
        ).compile()
        for folder, body in functions.items()
        if body is not None
    }
    return SnapshotWriter(directory, look, several, chunk) if look else None


def to_half_precision(x: np.ndarray) -> np.ndarray:
    """Numbers with a fraction in 16 bits: enough for a picture."""
    return x.astype(np.float16) if x.dtype == np.float32 else x


def is_due(updates: int, chunk: int) -> bool:
    """Whether the number of whole chunks is 0, or one of the series that grows by `GROWTH`."""
    number, remainder = divmod(updates, chunk)
    return remainder == 0 and (number == 0 or number in _series(number))


def _series(most: int) -> Iterator[int]:
    """1, 2, 3, ... up to `most`, with steps of a tenth from 10 on."""
    number = 1
    while number <= most:
        yield number
        number = max(number + 1, round(number * GROWTH))


def snapshots(directory: Path, updates: int, chunk: int) -> SavedArrays | None:
    """The snapshots of a run after so many updates; None if it has none.

    `chunk` is the number of updates in one. Raises UsageError for a file that cannot be read.
    """
    is_selected = lambda k: k == updates or (k < updates and is_due(k, chunk))
    return _read(RunDirectory(directory).snapshots, is_selected)


def samples(directory: Path, updates: int, rows: int, axis: int) -> dict[str, np.ndarray] | None:
    """All samples of a run up to an update, joined along `axis`; None if it has none.

    A file holds the newest samples, of which those of the updates since the file before are new,
    `rows` of each update. Raises UsageError as `snapshots` does, and for files that are missing.
    """
    folder = RunDirectory(directory).samples
    saved = _read(folder, lambda k: k <= updates)
    if saved is None:
        return None
    new_counts = np.diff(saved.updates, prepend=0) * rows
    samples_per_file = next(iter(saved.arrays.values())).shape[axis + 1]  # behind that of the files
    if saved.updates[-1] != updates or new_counts.max() > samples_per_file:
        raise UsageError(f"{folder} lacks files: some of the samples are lost")
    newest = lambda x, count: np.take(x, range(samples_per_file - count, samples_per_file), axis)
    return {
        name: np.concatenate([newest(x, n) for x, n in zip(files, new_counts, strict=True)], axis)
        for name, files in saved.arrays.items()
    }


def _read(folder: Path, is_selected: Any) -> SavedArrays | None:
    # others, such as `000000004 (1).npz`, are copies that a person or a program has made
    files = {int(path.stem): path for path in folder.glob("*.npz") if path.stem.isdecimal()}
    updates = sorted(k for k in files if is_selected(k))
    if not updates:
        return None
    try:
        rows = [array_files.read_npz(files[k]) for k in updates]
        arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    except (ValueError, KeyError) as error:
        raise UsageError(f"{folder} cannot be read: {error}") from error
    return SavedArrays(np.array(updates), arrays)
