"""Loads a state again, bit for bit, from the newest checkpoint that is whole."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl import shards
from jaxrl.checkpoint.leaves import describe, leaves_of, mismatch
from jaxrl.checkpoint.record import ARRAYS, CheckpointError, Damaged, read_record, steps
from jaxrl.types import PyTree

_log = logging.getLogger(__package__)


def restore(
    directory: str | Path, template: PyTree, step: int | None = None
) -> tuple[PyTree, dict[str, Any], int]:
    """`(state, meta, step)` of the newest complete checkpoint, or of `step`.

    `template` has the expected tree, shapes, dtypes and, where its leaves have one, sharding: a
    state, or the result of `jax.eval_shape`. Damaged checkpoints are skipped with a warning.

    Raises CheckpointError if none is left or there is none of `step`, and for one of another format
    or that holds another state.
    """
    directory = Path(directory).resolve()
    reason = ""
    for candidate in _newest_first(directory, step):
        path = directory / f"{candidate:010d}"
        try:
            record = read_record(path)
            _refuse_other_state(path, record["leaves"], template)
            return _load(path, record["keys"], template), record["meta"], candidate
        except (Damaged, FileNotFoundError) as error:
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
        with contextlib.suppress(Damaged):
            return read_record(directory / f"{candidate:010d}")["meta"]
    raise CheckpointError(f"{directory} holds no checkpoint that can be read")


def _newest_first(directory: Path, step: int | None) -> Iterator[int]:
    """The saved steps from the newest on, or `step` alone.

    Of a run that goes on, those that it deletes while they are read are followed by those that it
    has saved since. Raises CheckpointError for a `step` that was not saved.
    """
    if step is not None:
        if step not in (saved := steps(directory)):
            others = f" of step {step}, only of {', '.join(map(str, saved))}" if saved else ""
            raise CheckpointError(f"{directory} holds no checkpoint{others}")
        yield step
        return
    tried: set[int] = set()
    while left := [x for x in steps(directory) if x not in tried]:
        tried.add(left[-1])
        yield left[-1]


def _refuse_other_state(path: Path, saved: dict[str, str], template: PyTree) -> None:
    """Raises, naming what differs, unless the checkpoint has the leaves of `template`."""
    expected = {name: describe(x) for name, x in leaves_of(template).items()}
    if differences := mismatch(saved, expected):
        kinds = lambda leaves: {x.partition("[")[0] for x in leaves.values() if x[:4] == "key<"}
        advice = ": set JAX_DEFAULT_PRNG_IMPL as it was then" * (kinds(saved) != kinds(expected))
        raise CheckpointError(f"{path} holds another state: {differences}{advice}")


def _load(path: Path, key_impls: dict[str, str], template: PyTree) -> PyTree:
    """The state of a checkpoint that has the leaves of `template`."""
    leaves, loaded = leaves_of(template), {}
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
