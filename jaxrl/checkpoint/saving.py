"""Saves a whole state.

A checkpoint is written under a hidden name and renamed when all of it is on the disk; older ones
are deleted after that. So the newest complete checkpoint survives a crash at any moment.
"""

import errno
import json
import operator
import os
import shutil
from pathlib import Path
from typing import Any, SupportsIndex

import jax
import numpy as np

from jaxrl import shards
from jaxrl.checkpoint.leaves import describe, is_key, leaves_of
from jaxrl.checkpoint.record import (
    ARRAYS,
    FORMAT,
    RECORD,
    add_checksum,
    size_and_checksum,
    steps,
)
from jaxrl.shards import wait_for_all
from jaxrl.types import PyTree


def save(
    directory: str | Path, step: SupportsIndex, state: PyTree, meta: dict, keep: int = 2
) -> Path:
    """Writes `state` (arrays, typed keys included) and `meta` (plain JSON) as step `step`.

    Keeps the newest `keep` checkpoints up to this step. Later ones are deleted too: a run that
    saves an earlier step was resumed from before them. Of several processes, which share the file
    system, all must save: each writes its parts of the arrays. Raises OSError, with a file name,
    for what the file system refuses, TypeError for a leaf of the state that is no array and for
    `meta` that is no JSON, and ValueError unless `step` is an integer from 0 on and `keep` is 1 or
    more; older checkpoints are still there then.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}, expected 1 or more: how many checkpoints stay")
    step = _plain_step(step)
    leaves_of(state)  # before anything is written
    _check_meta(meta)
    directory = Path(directory).resolve()
    target = directory / f"{step:010d}"
    partial = target.with_name(f".{target.name}.partial")
    is_first = jax.process_index() == 0
    try:
        if is_first:
            _begin(partial)
        wait_for_all(f"{partial} is there")
        _write_arrays(partial, state)
        wait_for_all(f"{partial} holds all arrays")
        if is_first:
            _write_record(partial, step, state, meta)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)  # what is left of it fills the disk
        error.filename = str(target)
        raise
    if is_first:
        _replace(target, partial, step, keep)
    wait_for_all(f"{target} is saved")
    return target


def _plain_step(step: Any) -> int:
    """The integer of Python that a step is, also one of NumPy or of a state; or ValueError."""
    try:
        number = operator.index(step)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(f"step is {step!r}, expected an integer from 0 on")
    return number


def _check_meta(meta: dict) -> None:
    try:
        json.dumps(meta, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise TypeError(f"meta is no plain JSON: {error}; give numbers, texts and lists") from None


def _begin(partial: Path) -> None:
    """Makes the folder to write into."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    for leftover in partial.parent.glob(".*.partial"):  # of a save that a crash cut short
        shutil.rmtree(leftover)
    partial.mkdir()


def _replace(target: Path, partial: Path, step: int, keep: int) -> None:
    """Gives a checkpoint that is on the disk its name, and deletes those that it replaces."""
    directory = target.parent
    if target.exists():  # damaged, or from before an older checkpoint was resumed
        target.rename(target.with_name(f".{target.name}.replaced"))
    partial.rename(target)
    _flush_folder(directory)
    steps_to_keep = [other for other in steps(directory) if other <= step][-keep:]
    for other in steps(directory):
        if other not in steps_to_keep:
            shutil.rmtree(directory / f"{other:010d}")
    for replaced in directory.glob(".*.replaced"):
        shutil.rmtree(replaced)


def _write_arrays(partial: Path, state: PyTree) -> None:
    """Writes the parts of this process and waits until they are on the disk."""
    parts: dict[str, np.ndarray] = {}
    for i, (_, x) in enumerate(sorted(leaves_of(state).items())):
        array = jax.random.key_data(x) if is_key(x) else x
        parts |= {
            key: _as_numpy_dtype(part) for key, part in shards.local_parts(str(i), array).items()
        }
    index = jax.process_index()
    path = partial / (f"state-{index}.npz" if index else ARRAYS)
    np.savez(path, allow_pickle=False, **parts)  # pyright: ignore[reportArgumentType]
    _flush(path)


def _as_numpy_dtype(numbers: np.ndarray) -> np.ndarray:
    """The numbers in a dtype that NumPy itself has."""
    return numbers if numbers.dtype.isbuiltin == 1 else numbers.view(f"u{numbers.itemsize}")


def _write_record(partial: Path, step: int, state: PyTree, meta: dict) -> None:
    """Writes `record.json` and waits until all is on the disk."""
    leaves = dict(sorted(leaves_of(state).items()))
    others = sorted(path.name for path in partial.glob("state-*.npz"))
    record = {
        "format": FORMAT,
        "step": step,
        "leaves": {name: describe(x) for name, x in leaves.items()},
        "keys": {name: str(jax.random.key_impl(x)) for name, x in leaves.items() if is_key(x)},
        "arrays": size_and_checksum(partial / ARRAYS),
        "meta": meta,
    }
    if others:
        record["others"] = {name: size_and_checksum(partial / name) for name in others}
    path = partial / RECORD
    path.write_bytes(add_checksum(record).encode())
    _flush(path)
    _flush_folder(partial)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:  # Windows flushes no file that is open for reading alone
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as network file systems say
            raise
    finally:
        os.close(descriptor)


def delete_after(directory: str | Path, step: int) -> None:
    """Deletes the checkpoints of later steps; of several processes all must ask."""
    if jax.process_index() == 0:
        for other in steps(directory):
            if other > step:
                shutil.rmtree(Path(directory) / f"{other:010d}")
    wait_for_all(f"{directory} holds nothing after {step}")
