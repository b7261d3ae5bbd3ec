"""Arrays that are spread over processes, as parts that each process writes by itself.

A part is named by the array it is of and by where it lies there, such as `3@0:8,16:32`; the whole
of an array, by the array alone.
"""

from collections.abc import Iterable, Mapping

import jax
import numpy as np
from jax.experimental import multihost_utils


def wait_for_all(label: str) -> None:
    """Returns once all processes are here; `label` names the place."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(label)


def local_parts(name: str, x: jax.Array | np.ndarray) -> dict[str, np.ndarray]:
    """The parts of an array that this process has to write, by name; the first one writes copies.

    Together the processes have every part once.
    """
    if not isinstance(x, jax.Array) or x.is_fully_addressable:
        return {name: np.asarray(x)} if jax.process_index() == 0 else {}
    return {
        f"{name}@{_format_index(shard.index, x.shape)}": np.asarray(shard.data)
        for shard in x.addressable_shards
        if shard.replica_id == 0
    }


def join_parts(name: str, files: Iterable[Mapping[str, np.ndarray]]) -> np.ndarray:
    """The whole array of a name, from the files of all processes. Raises KeyError without it."""
    parts: list[tuple[list[slice], np.ndarray]] = []
    for file in files:
        for key in file:
            array_name, _, where = key.partition("@")
            if key == name:
                return file[key]
            if array_name == name:
                parts.append((_parse_index(where), file[key]))
    if not parts:
        raise KeyError(name)
    ends = np.array([[part.stop for part in place] for place, _ in parts], int)
    array = np.empty(tuple(ends.max(axis=0)) if ends.size else (), parts[0][1].dtype)
    for place, part in parts:
        array[tuple(place)] = part
    return array


def _format_index(index: tuple[slice, ...], shape: tuple[int, ...]) -> str:
    bounds = (place.indices(size)[:2] for place, size in zip(index, shape, strict=True))
    return ",".join(f"{start}:{stop}" for start, stop in bounds)


def _parse_index(where: str) -> list[slice]:
    return [slice(*map(int, bounds.split(":"))) for bounds in where.split(",") if bounds]
