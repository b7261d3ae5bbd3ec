"""Files of recorded data, read together: their episodes joined, what does not fit refused."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from train.host.files import array_files
from train.host.machine.progress import print_once
from train.host.numbers import quantity
from train.vector_field.data import data_checks, spike_times
from train.vector_field.data.files import npz, recording_file
from train.vector_field.data.files.content import Content
from train.vector_field.data.files.file_episodes import episodes_of
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.same_names import match_names
from train.vector_field.data.recordings import Data, join_episodes


def load(
    paths: str | Sequence[str],
    bin_width: float = 1.0,
    names: Names = Names(),
    inputs: Sequence[str] = (),
) -> Data:
    """Reads and checks files, and joins their episodes; spike times are counted in bins.

    `names` say what files call things, and `inputs` are CSV files with the inputs of each of them,
    for CSV files of spikes. Files that have not changed since they were read last are not read
    again.

    Raises ValueError, in one line, which says what is wrong with them.
    """
    paths = (paths,) if isinstance(paths, str) else tuple(paths)
    versions = tuple(map(_version, (*paths, *inputs)))
    return _load(paths, bin_width, names, tuple(inputs), versions)


def _version(path: str) -> tuple[int, ...]:
    """What changes whenever a file is written; nothing of one that is not there."""
    try:
        status = Path(path).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=1)
def _load(
    paths: tuple[str, ...],
    bin_width: float,
    names: Names,
    inputs: tuple[str, ...],
    versions: tuple[tuple[int, ...], ...],
) -> Data:
    del versions  # the cache alone needs them
    if not 0 < bin_width < np.inf:
        raise ValueError(f"bin_width is {bin_width}; expected a finite time above 0")
    contents = [
        _content(path, bin_width, names, own_inputs)
        for path, own_inputs in inputs_by_file(paths, inputs)
    ]
    arrays = match_names(paths, contents)
    units = spike_times.num_units(dict(zip(paths, arrays, strict=True)))
    episodes_by_file = [
        episodes_of(path, x, bin_width, units) for path, x in zip(paths, arrays, strict=True)
    ]
    sizes = [
        (file_episodes[0][0].shape[1], file_episodes[0][1].shape[1])
        for file_episodes in episodes_by_file
    ]
    for path, size in zip(paths, sizes, strict=True):
        if size != sizes[0]:
            raise ValueError(
                f"{path} has {quantity(size[0], 'channels')} and {quantity(size[1], 'inputs')}, "
                f"and {paths[0]} {sizes[0][0]} "
                f"and {sizes[0][1]}: files must have the same, or be sessions with channels of "
                "their own, --sessions"
            )
    episodes = [episode for file_episodes in episodes_by_file for episode in file_episodes]
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    longest = max(len(y) for y, _ in episodes)
    if len(episodes) * longest * sum(sizes[0]) * 4 > array_files.MAX_BYTES:
        raise ValueError(
            f"{len(episodes)} episodes of up to {longest} steps in {name} are too much when all "
            "are padded to the longest: cut the longest into pieces"
        )
    data_checks.refuse_scale(name, episodes)
    data = join_episodes(episodes)
    for array in data[:4]:
        array.flags.writeable = False  # whoever loads the files next shares it
    return data


def inputs_by_file(paths: Sequence[str], inputs: Sequence[str]) -> list[tuple[str, str]]:
    """Each file of data with its file of inputs, "" where none has one.

    Raises ValueError for fewer or more files of inputs than of data.
    """
    if inputs and len(inputs) != len(paths):
        raise ValueError(
            f"there are {len(paths)} files of data and {len(inputs)} of inputs: give one of inputs "
            'for each file of data, in the same order, and "" for one that holds its own'
        )
    return list(zip(paths, inputs or [""] * len(paths), strict=True))


def _content(path: str, bin_width: float, names: Names, inputs: str) -> Content:
    if not recording_file.is_npz(path):
        content = recording_file.read(path, names, bin_width, inputs)
        print_once(f"{path}: {content.about}")
        return content
    if inputs:
        raise ValueError(f'{path} holds its inputs: leave out --inputs, or give "" for this file')
    arrays, notes = npz.read(path, names)
    if notes:
        print_once(f"{path}: {'; '.join(notes)}")
    return Content(arrays, None, "", "; ".join(notes))
