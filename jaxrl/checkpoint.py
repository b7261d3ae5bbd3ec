"""Saves a whole state and loads it again, bit for bit. The only module that knows orbax.

`DIRECTORY/0000000120/` is the checkpoint of step 120: `state/`, written by orbax, and
`record.json`, which holds the caller's `meta`, the shape and dtype of every leaf, and size and
CRC-32 of every file. orbax itself verifies no checksums: damaged numbers would load silently, and a
truncated file makes it print pages. So each file is compared with the record first.

A checkpoint is written under a hidden name and renamed when all of it is on the disk; older ones
are deleted after that. So the newest complete checkpoint survives a crash at any moment.
"""

import contextlib
import json
import logging
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxrl.types import PyTree

FORMAT = 1
_log = logging.getLogger(__name__)


class CheckpointError(Exception):
    """No usable checkpoint, or one of another state; the message is one line."""


class _Damaged(Exception):
    """The checkpoint differs from what was saved; the message says how."""


def save(directory: str | Path, step: int, state: PyTree, meta: dict, keep: int = 2) -> Path:
    """Writes `state` (arrays, typed keys included) and `meta` (plain JSON) as step `step`.

    Keeps the newest `keep` checkpoints up to this step. Later ones are deleted too: a run that
    saves an earlier step was resumed from before them.
    """
    directory = Path(directory).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    for leftover in directory.glob(".*.partial"):  # of a save that a crash cut short
        shutil.rmtree(leftover)
    target = directory / f"{step:010d}"
    partial = target.with_name(f".{target.name}.partial")
    leaves = _leaves(state)
    _orbax_save(partial / "state", {name: _raw(x) for name, x in leaves.items() if x.size})
    record = {
        "format": FORMAT,
        "step": step,
        "leaves": {name: _describe(x) for name, x in leaves.items()},
        "keys": {name: str(jax.random.key_impl(x)) for name, x in leaves.items() if _is_key(x)},
        "files": _checksums(partial / "state"),
        "meta": meta,
    }
    (partial / "record.json").write_text(_sealed(record))
    _flush_to_disk(partial)
    if target.exists():  # damaged, or from before an older checkpoint was resumed
        target.rename(target.with_name(f".{target.name}.replaced"))
    partial.rename(target)
    _flush_folder(directory)
    kept = [other for other in steps(directory) if other <= step][-keep:]
    for other in steps(directory):
        if other not in kept:
            shutil.rmtree(directory / f"{other:010d}")
    for replaced in directory.glob(".*.replaced"):
        shutil.rmtree(replaced)
    return target


def steps(directory: str | Path) -> list[int]:
    """The steps saved in `directory`, ascending; `restore` finds out whether they can be read."""
    directory = Path(directory)
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def restore(
    directory: str | Path, like: PyTree, step: int | None = None
) -> tuple[PyTree, dict[str, Any], int]:
    """`(state, meta, step)` of the newest complete checkpoint, or of `step`.

    `like` has the expected tree, shapes, dtypes and, where its leaves have one, sharding: a state,
    or the result of `jax.eval_shape`. Damaged checkpoints are skipped with a warning; one that
    holds another state is an error.
    """
    directory = Path(directory).resolve()
    wanted = steps(directory) if step is None else [step]
    if not wanted:
        raise CheckpointError(f"{directory} holds no checkpoint")
    reason = ""
    for candidate in reversed(wanted):
        path = directory / f"{candidate:010d}"
        try:
            record = _verified(path)
            _refuse_other_state(path, record["leaves"], like)
            return _load(path, record["keys"], like), record["meta"], candidate
        except _Damaged as error:
            reason = f"{path.name}: {error}"
            _log.warning("checkpoint %s is skipped: %s", path, error)
    raise CheckpointError(f"no checkpoint in {directory} can be read ({reason})")


def read_meta(directory: str | Path, step: int | None = None) -> dict[str, Any]:
    """The `meta` of the newest complete checkpoint, or of `step`, without its state."""
    directory = Path(directory).resolve()
    for candidate in reversed(steps(directory) if step is None else [step]):
        with contextlib.suppress(_Damaged):
            return _verified(directory / f"{candidate:010d}")["meta"]
    raise CheckpointError(f"{directory} holds no checkpoint that can be read")


def _leaves(tree: PyTree) -> dict[str, Any]:
    """Leaves by path, such as `.agent.params['Dense_0']['kernel']`."""
    leaves = {jax.tree_util.keystr(k): x for k, x in jax.tree_util.tree_leaves_with_path(tree)}
    for name, x in leaves.items():
        if not hasattr(x, "dtype"):
            raise TypeError(f"a checkpoint holds arrays only; {name} is a {type(x).__name__}")
    return leaves


def _is_key(x) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _raw(x: jax.Array) -> jax.Array:
    """The numbers of a typed key; any other array as it is."""
    return jax.random.key_data(x) if _is_key(x) else x


def _describe(x) -> str:
    """Dtype and shape, such as `float32[3,4]`."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def _refuse_other_state(path: Path, saved: dict[str, str], like: PyTree) -> None:
    """Raises, naming what differs, unless the checkpoint has the leaves of `like`."""
    expected = {name: _describe(x) for name, x in _leaves(like).items()}
    if differences := mismatch(saved, expected):
        raise CheckpointError(f"{path} holds another state: {differences}")


def mismatch(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """In one line, the first three names whose values differ and how many more; empty: none do."""
    differences = [
        f"{name or 'state'} is {found.get(name, 'missing')}, expected {expected.get(name, 'none')}"
        for name in sorted(found.keys() | expected.keys())
        if found.get(name) != expected.get(name)
    ]
    more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
    return "; ".join(differences[:3]) + more


def _load(path: Path, key_impls: dict[str, str], like: PyTree) -> PyTree:
    """The state of a checkpoint that has the leaves of `like`."""
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    leaves = _leaves(like)
    targets = {}
    for name, x in leaves.items():
        raw = jax.eval_shape(_raw, jax.ShapeDtypeStruct(x.shape, x.dtype))
        if x.size:  # orbax refuses arrays without elements, which hold nothing anyway
            sharding = getattr(x, "sharding", None) or here
            targets[name] = jax.ShapeDtypeStruct(raw.shape, raw.dtype, sharding=sharding)
    arrays = _orbax_restore(path / "state", targets)
    for name, x in leaves.items():
        if not x.size:
            arrays[name] = jnp.zeros(x.shape, x.dtype)
        elif _is_key(x):
            arrays[name] = jax.random.wrap_key_data(arrays[name], impl=key_impls[name])
    return jax.tree.unflatten(jax.tree.structure(like), [arrays[name] for name in leaves])


def _orbax_save(path: Path, arrays: dict[str, jax.Array]) -> None:
    import orbax.checkpoint as ocp  # imported here, since it takes 0.25 s

    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        checkpointer.save(path, args=ocp.args.StandardSave(arrays))


def _orbax_restore(path: Path, targets: dict[str, jax.ShapeDtypeStruct]) -> dict[str, Any]:
    import orbax.checkpoint as ocp

    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        return checkpointer.restore(path, args=ocp.args.StandardRestore(targets))


def _sealed(record: dict) -> str:
    """`record` as JSON beside its own checksum."""
    text = json.dumps(record, sort_keys=True)
    return json.dumps({"crc32": zlib.crc32(text.encode()), "record": record}, indent=1)


def _verified(path: Path) -> dict[str, Any]:
    """The record of a checkpoint, after verifying that all its files are as they were saved."""
    try:
        sealed = json.loads((path / "record.json").read_bytes())
        record = sealed["record"]
        text = json.dumps(record, sort_keys=True)
        if sealed["crc32"] != zlib.crc32(text.encode()):
            raise _Damaged("record.json was altered")
    except FileNotFoundError:
        raise _Damaged("record.json is missing: the save was not completed") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _Damaged(f"record.json cannot be read ({error})") from None
    if record["format"] != FORMAT:
        raise CheckpointError(f"{path} has format {record['format']}; this program reads {FORMAT}")
    try:
        found = _checksums(path / "state")
    except OSError as error:
        raise _Damaged(str(error)) from None
    for name, (size, checksum) in record["files"].items():
        if name not in found:
            raise _Damaged(f"state/{name} is missing")
        if found[name] != [size, checksum]:
            raise _Damaged(f"state/{name} has {found[name][0]} bytes of {size}, or other content")
    return record


def _checksums(folder: Path) -> dict[str, list[int]]:
    """`{relative path: [bytes, crc32]}` of every file below `folder`."""
    sums = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        checksum, size = 0, 0
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                checksum, size = zlib.crc32(block, checksum), size + len(block)
        sums[path.relative_to(folder).as_posix()] = [size, checksum]
    return sums


def _flush_to_disk(folder: Path) -> None:
    """Waits until every file and folder below `folder` is on the disk, safe from a power cut."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    for path in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
        _flush_folder(path)


def _flush_folder(path: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
