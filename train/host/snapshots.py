"""What a run looks like while it learns: a few arrays from time to time, for pictures and reports.

`snapshots/` of a run directory holds a file for each, named by its update. They become rarer as the
run gets longer, since most changes early: after the chunks 1, 2, 3, ... and later after each whose
number is a tenth larger. Which there are does not depend on the budget, nor on where the run was
stopped and resumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl.types import RunState
from train.host import array_files, devices, distributed
from train.host.errors import UsageError
from train.host.records import write_arrays
from train.host.settings import Config, Training

SNAPSHOTS = "snapshots"
GROWTH = 1.1


class Snapshots(NamedTuple):
    """The snapshots of a run."""

    updates: np.ndarray  # int [M] after which they were taken, rising; the first is 0
    arrays: dict[str, np.ndarray]  # [M, S, ...] of S seeds


@dataclass(frozen=True)
class Keeper:
    """Takes the snapshots of a run in progress."""

    directory: Path
    look: Any  # compiled: state -> arrays
    several: bool  # seeds, whose axis the state then has
    chunk: int  # updates in one

    def keep(self, state: RunState, updates: int, is_last: bool) -> None:
        """Writes a snapshot if one is due after so many updates."""
        if not (is_last or is_due(updates, self.chunk)):
            return
        found = jax.device_get(self.look(devices.on_one(state)))
        arrays = {k: np.asarray(x if self.several else x[None]) for k, x in found.items()}
        if distributed.is_first():
            self.directory.mkdir(exist_ok=True)
            path = self.directory / f"{updates:09d}.npz"
            write_arrays(path, {name: small(x) for name, x in arrays.items()})


def make(training: Training, settings: Config, directory: Path, like: RunState) -> Keeper | None:
    """Compiles what is looked at in states of the shapes `like`; None if there is nothing."""
    if training.snapshot is None:
        return None
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), like)  # on one device
    several = settings.num_seeds > 1
    look = jax.vmap(training.snapshot) if several else training.snapshot
    chunk = settings.chunk_updates(training.steps_per_update)
    return Keeper(directory / SNAPSHOTS, jax.jit(look).lower(shapes).compile(), several, chunk)


def small(x: np.ndarray) -> np.ndarray:
    """Numbers with a fraction in 16 bits: enough for a picture."""
    return x.astype(np.float16) if x.dtype == np.float32 else x


def is_due(updates: int, chunk: int) -> bool:
    """Whether the number of whole chunks is 0, or one of the series that grows by `GROWTH`."""
    number, rest = divmod(updates, chunk)
    return rest == 0 and (number == 0 or number in _series(number))


def _series(most: int) -> Iterator[int]:
    """1, 2, 3, ... up to `most`, with steps of a tenth from 10 on."""
    number = 1
    while number <= most:
        yield number
        number = max(number + 1, round(number * GROWTH))


def read(directory: Path, updates: int, chunk: int) -> Snapshots | None:
    """The snapshots of a run after so many updates; None if it has none.

    `chunk` is the number of updates in one.

    Raises UsageError for a file that cannot be read.
    """
    files = {int(path.stem): path for path in (directory / SNAPSHOTS).glob("[0-9]*.npz")}
    wanted = sorted(k for k in files if k == updates or (k < updates and is_due(k, chunk)))
    if not wanted:
        return None
    try:
        rows = [array_files.read_npz(files[k]) for k in wanted]
    except ValueError as error:
        raise UsageError(f"{directory / SNAPSHOTS} cannot be read: {error}") from error
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return Snapshots(np.array(wanted), arrays)
