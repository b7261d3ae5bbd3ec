"""Saves a whole state and loads it again, bit for bit.

`DIRECTORY/0000000120/` is the checkpoint of step 120: `state.npz` with the arrays, and
`record.json`, which holds the caller's `meta`, the shape and dtype of every leaf, and size and
CRC-32 of `state.npz`. The arrays are numbered in the order of the sorted names of the leaves. Where
they are spread over processes, each writes its parts (see `jaxrl.shards`), those after the first
into `state-1.npz` and so on.

A checkpoint is written under a hidden name and renamed when all of it is on the disk; older ones
are deleted after that. So the newest complete checkpoint survives a crash at any moment.
"""

import contextlib
import errno
import json
import logging
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import shards
from jaxrl.shards import wait_for_all
from jaxrl.types import PyTree

FORMAT = 2
ARRAYS, RECORD = "state.npz", "record.json"
_log = logging.getLogger(__name__)


class CheckpointError(Exception):
    """No usable checkpoint, or one of another state; the message is one line."""


class _Damaged(Exception):
    """The checkpoint differs from what was saved; the message says how."""


def save(directory: str | Path, step: int, state: PyTree, meta: dict, keep: int = 2) -> Path:
    """Writes `state` (arrays, typed keys included) and `meta` (plain JSON) as step `step`.

    Keeps the newest `keep` checkpoints up to this step. Later ones are deleted too: a run that
    saves an earlier step was resumed from before them. Of several processes, which share the file
    system, all must save: each writes its parts of the arrays. Raises OSError, with a file name,
    for what the file system refuses, TypeError for a leaf of the state that is no array and
    ValueError unless `keep` is 1 or more; older checkpoints are still there then.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}, expected 1 or more: how many checkpoints stay")
    _leaves(state)  # before anything is written
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
    for i, (_, x) in enumerate(sorted(_leaves(state).items())):
        array = jax.random.key_data(x) if _is_key(x) else x
        parts |= {
            key: _as_numpy_dtype(part) for key, part in shards.local_parts(str(i), array).items()
        }
    index = jax.process_index()
    path = partial / (f"state-{index}.npz" if index else ARRAYS)
    np.savez(path, allow_pickle=False, **parts)  # pyright: ignore[reportArgumentType]
    _flush(path)


def _write_record(partial: Path, step: int, state: PyTree, meta: dict) -> None:
    """Writes `record.json` and waits until all is on the disk."""
    leaves = dict(sorted(_leaves(state).items()))
    others = sorted(path.name for path in partial.glob("state-*.npz"))
    record = {
        "format": FORMAT,
        "step": step,
        "leaves": {name: _describe(x) for name, x in leaves.items()},
        "keys": {name: str(jax.random.key_impl(x)) for name, x in leaves.items() if _is_key(x)},
        "arrays": _size_and_checksum(partial / ARRAYS),
        "meta": meta,
    }
    if others:
        record["others"] = {name: _size_and_checksum(partial / name) for name in others}
    path = partial / RECORD
    path.write_bytes(_add_checksum(record).encode())
    _flush(path)
    _flush_folder(partial)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:  # Windows flushes no file that is open for reading alone
        os.fsync(file.fileno())


def delete_after(directory: str | Path, step: int) -> None:
    """Deletes the checkpoints of later steps; of several processes all must ask."""
    if jax.process_index() == 0:
        for other in steps(directory):
            if other > step:
                shutil.rmtree(Path(directory) / f"{other:010d}")
    wait_for_all(f"{directory} holds nothing after {step}")


def steps(directory: str | Path) -> list[int]:
    """The steps saved in `directory`, ascending; `restore` finds out whether they can be read."""
    directory = Path(directory)
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def restore(
    directory: str | Path, template: PyTree, step: int | None = None
) -> tuple[PyTree, dict[str, Any], int]:
    """`(state, meta, step)` of the newest complete checkpoint, or of `step`.

    `template` has the expected tree, shapes, dtypes and, where its leaves have one, sharding: a
    state, or the result of `jax.eval_shape`. Damaged checkpoints are skipped with a warning.

    Raises CheckpointError if none is left, and for one of another format or that holds another
    state.
    """
    directory = Path(directory).resolve()
    reason = ""
    for candidate in _newest_first(directory, step):
        path = directory / f"{candidate:010d}"
        try:
            record = _read_record(path)
            _refuse_other_state(path, record["leaves"], template)
            return _load(path, record["keys"], template), record["meta"], candidate
        except (_Damaged, FileNotFoundError) as error:
            reason = f"{path.name}: {error}"
            if path.exists() or step is not None:  # others a running run has replaced
                _log.warning("checkpoint %s is skipped: %s", path, error)
    if not reason:
        raise CheckpointError(f"{directory} holds no checkpoint")
    raise CheckpointError(f"no checkpoint in {directory} can be read ({reason})")


def read_meta(directory: str | Path, step: int | None = None) -> dict[str, Any]:
    """The `meta` of the newest complete checkpoint, or of `step`, without its state.

    Raises CheckpointError if there is none that can be read.
    """
    directory = Path(directory).resolve()
    for candidate in _newest_first(directory, step):
        with contextlib.suppress(_Damaged):
            return _read_record(directory / f"{candidate:010d}")["meta"]
    raise CheckpointError(f"{directory} holds no checkpoint that can be read")


def _newest_first(directory: Path, step: int | None) -> Iterator[int]:
    """The saved steps from the newest on, or `step` alone.

    Of a run that goes on, those that it deletes while they are read are followed by those that it
    has saved since.
    """
    tried: set[int] = set()
    while left := [x for x in (steps(directory) if step is None else [step]) if x not in tried]:
        tried.add(left[-1])
        yield left[-1]


def _leaves(tree: PyTree) -> dict[str, Any]:
    """Leaves by path, such as `.agent.params['Dense_0']['kernel']`."""
    leaves = {jax.tree_util.keystr(k): x for k, x in jax.tree_util.tree_leaves_with_path(tree)}
    for name, x in leaves.items():
        if not hasattr(x, "dtype"):
            raise TypeError(f"a checkpoint holds arrays only; {name} is a {type(x).__name__}")
    return leaves


def _is_key(x) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _as_numpy_dtype(numbers: np.ndarray) -> np.ndarray:
    """The numbers in a dtype that NumPy itself has."""
    return numbers if numbers.dtype.isbuiltin == 1 else numbers.view(f"u{numbers.itemsize}")


def _describe(x) -> str:
    """Dtype and shape, such as `float32[3,4]`."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def _refuse_other_state(path: Path, saved: dict[str, str], template: PyTree) -> None:
    """Raises, naming what differs, unless the checkpoint has the leaves of `template`."""
    expected = {name: _describe(x) for name, x in _leaves(template).items()}
    if differences := mismatch(saved, expected):
        kinds = lambda leaves: {x.partition("[")[0] for x in leaves.values() if x[:4] == "key<"}
        advice = ": set JAX_DEFAULT_PRNG_IMPL as it was then" * (kinds(saved) != kinds(expected))
        raise CheckpointError(f"{path} holds another state: {differences}{advice}")


def mismatch(actual: dict[str, Any], expected: dict[str, Any]) -> str:
    """In one line, the first three names whose values differ and how many more; empty: none do."""
    differences = [
        f"{name or 'state'} is {actual.get(name, 'missing')}, expected {expected.get(name, 'none')}"
        for name in sorted(actual.keys() | expected.keys())
        if actual.get(name) != expected.get(name)
    ]
    more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
    return "; ".join(differences[:3]) + more


def _load(path: Path, key_impls: dict[str, str], template: PyTree) -> PyTree:
    """The state of a checkpoint that has the leaves of `template`."""
    leaves, loaded = _leaves(template), {}
    paths = [path / ARRAYS, *sorted(path.glob("state-*.npz"))]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(np.load(x, allow_pickle=False)) for x in paths]
        for i, name in enumerate(sorted(leaves)):
            numbers = shards.join_parts(str(i), files)
            loaded[name] = _place_array(numbers, leaves[name], key_impls.get(name))
    return jax.tree.unflatten(jax.tree.structure(template), [loaded[name] for name in leaves])


def _place_array(numbers: np.ndarray, template: Any, key_impl: str | None) -> jax.Array:
    """An array or a typed key on the devices of `template`; on the default one if it has none."""
    device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    if key_impl is None:
        numbers = numbers.view(template.dtype)
    sharding = getattr(template, "sharding", None) or device
    if sharding.is_fully_addressable:
        array = jax.device_put(numbers, sharding, may_alias=False)
    else:  # each process has read all of it, and keeps its part
        array = jax.make_array_from_callback(numbers.shape, sharding, lambda index: numbers[index])
    return array if key_impl is None else jax.random.wrap_key_data(array, impl=key_impl)


def _add_checksum(record: dict) -> str:
    """`record` as JSON beside its own checksum."""
    text = json.dumps(record, sort_keys=True)
    return json.dumps({"crc32": zlib.crc32(text.encode()), "record": record}, indent=1)


def _read_record(path: Path) -> dict[str, Any]:
    """The record of a checkpoint, after verifying that all its files are as they were saved."""
    try:
        document = json.loads((path / RECORD).read_bytes())
        record = document["record"]
        text = json.dumps(record, sort_keys=True)
        if document["crc32"] != zlib.crc32(text.encode()):
            raise _Damaged("record.json was altered")
    except FileNotFoundError:
        raise _Damaged("record.json is missing: the save was not completed") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _Damaged(f"record.json cannot be read ({error})") from None
    if record["format"] != FORMAT:
        raise CheckpointError(f"{path} has format {record['format']}; this program reads {FORMAT}")
    for name, saved in {ARRAYS: record["arrays"], **record.get("others", {})}.items():
        _verify(path / name, saved)
    return record


def _verify(path: Path, expected: list[int]) -> None:
    """Raises unless a file has the size and the checksum that were saved."""
    try:
        actual = _size_and_checksum(path)
    except FileNotFoundError:
        raise _Damaged(f"{path.name} is missing") from None
    except OSError as error:
        raise _Damaged(str(error)) from None
    if actual != expected:
        raise _Damaged(f"{path.name} has {actual[0]} bytes of {expected[0]}, or other content")


def _size_and_checksum(path: Path) -> list[int]:
    """`[bytes, crc32]` of a file."""
    checksum, size = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum, size = zlib.crc32(block, checksum), size + len(block)
    return [size, checksum]


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
