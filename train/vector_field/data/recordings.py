"""Files of recorded data: what they must hold, and what is refused.

Axes: E episodes, T steps of the longest, n channels, m inputs.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from train.host.files import array_files
from train.host.files.whole_files import write_arrays
from train.host.machine.progress import print_once
from train.host.numbers import quantity
from train.vector_field.data import data_checks, spike_times
from train.vector_field.data.files import npz, recording_file
from train.vector_field.data.files.content import Content
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.same_names import match_names

EXPECTED_FILE = recording_file.EXPECTED


class Sessions(NamedTuple):
    """Sessions that have channels of their own."""

    names: tuple[str, ...]
    of_episode: np.ndarray  # int [E], ascending
    of_channel: np.ndarray  # int [n], ascending

    def channels(self, session: int) -> np.ndarray:
        """The places of a session's channels among all."""
        return np.flatnonzero(self.of_channel == session)


class Data(NamedTuple):
    """Episodes, each padded at its end to the longest; float32."""

    y: np.ndarray  # [E, T, n]; 0 where missing
    u: np.ndarray  # [E, T, m]; 0 in padding
    observed: np.ndarray  # bool [E, T, n]; false where missing, and in padding
    lengths: np.ndarray  # int [E]
    holds_counts: bool = False  # whether all observed are whole numbers from 0 on, unrounded
    sessions: Sessions | None = None  # None: all episodes have the same channels

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing but padding."""
        valid = np.arange(self.y.shape[1]) < self.lengths[:, None]
        return bool(self.observed[valid].all())

    def episodes(self, which: slice) -> "Data":
        """Some of the episodes, without the padding that they do not need."""
        longest = int(self.lengths[which].max(initial=0))
        return self.cut(which, slice(longest), self.lengths[which])

    def cut(self, which: slice, steps: slice, lengths: np.ndarray) -> "Data":
        """Some steps of some of the episodes, which then have these lengths."""
        y, u, observed = (x[which, steps] for x in self[:3])
        sessions = self.sessions
        if sessions is not None:
            sessions = sessions._replace(of_episode=sessions.of_episode[which])
        return Data(y, u, observed, lengths, self.holds_counts, sessions)

    def episode(self, which: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`y [T, n]`, `u [T, m]` and `observed [T, n]` of one episode, without padding."""
        y, u, observed = (x[which, : self.lengths[which]] for x in self[:3])
        return y, u, observed


def join_episodes(episodes: Sequence[tuple[np.ndarray, np.ndarray]]) -> Data:
    """Pads pairs of y `[T, n]`, NaN where missing, and u `[T, m]`."""
    lengths = np.array([len(y) for y, _ in episodes])
    y, u = (_pad_episodes(arrays, int(lengths.max())) for arrays in zip(*episodes, strict=True))
    observed = ~np.isnan(y)
    y[~observed] = 0
    inside = np.arange(lengths.max()) < lengths[:, None]
    u[~inside] = 0
    holds_counts = all(_are_counts(y) for y, _ in episodes)  # float32 would make others whole
    return Data(y, u, observed, lengths, holds_counts)


def _pad_episodes(episodes: Sequence[np.ndarray], steps: int) -> np.ndarray:
    """`[E, steps, n]` of episodes `[T, n]`, NaN behind their ends."""
    padded = np.full((len(episodes), steps, episodes[0].shape[1]), np.nan, np.float32)
    for row, episode in zip(padded, episodes, strict=True):
        row[: len(episode)] = episode
    return padded


def _are_counts(y: np.ndarray) -> bool:
    return bool(np.all(np.isnan(y) | (y >= 0) & (y == np.round(y))))


def write_experiments(
    directory: Path,
    samples: dict[str, np.ndarray],
    seeds: list[int],
    policies: tuple[str, ...],
    fields: tuple[str, ...],
    lengths: np.ndarray | None = None,
) -> list[Path]:
    """Writes `recordings/POLICY-FIELD-seedN.npz` for each experiment.

    `samples` are `[S, P, F, T, ...]`, of which `lengths` `[S, P, F]` count; None: all. Each file
    holds what `load` reads, `y` `[T, n]` and `u` `[T, m]`, and beside it the true state `z`
    `[T, d]` and the learner's `belief` `[T, learned dimensions]`.
    """
    folder, paths = directory / "recordings", []
    folder.mkdir(exist_ok=True)
    for s, seed in enumerate(seeds):
        for p, policy in enumerate(policies):
            for f, field in enumerate(fields):
                paths.append(folder / f"{policy}-{field}-seed{seed}.npz")
                count = None if lengths is None else int(lengths[s, p, f])
                write_arrays(paths[-1], {name: x[s, p, f, :count] for name, x in samples.items()})
    return paths


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
        _episodes(path, x, bin_width, units) for path, x in zip(paths, arrays, strict=True)
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


def _episodes(
    path: str, arrays: dict[str, np.ndarray], bin_width: float, units: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The episodes of one file: y `[T, n]`, NaN where missing, and u `[T, m]` of each."""
    y, u = _with_all_axes(path, arrays.get("y"), arrays["u"])
    with array_files.value_errors_with_path(path):
        lengths = _lengths(arrays.get("lengths"), y, u)
        if y is None:
            spikes = spike_times.read(arrays, len(u))
            if not units:
                raise ValueError("there are no spikes")
            data_checks.refuse_turned(u, spikes.times, bin_width)
            rows = lengths
            lengths, end = spike_times.lengths(arrays, rows, bin_width)
            y = spike_times.counts(spikes, lengths, end, bin_width, units)
            spike_times.tell_gaps(path, spikes, rows, lengths, bin_width)
    if len(lengths) > len(u):  # episodes in a row
        y, u = (np.split(x[0], np.cumsum(lengths)[:-1]) for x in (y, u))
    y, u = ([x[:n] for x, n in zip(sequences, lengths, strict=True)] for sequences in (y, u))
    data_checks.refuse_infinite(path, y, u)
    return list(zip(y, u, strict=True))


def _with_all_axes(
    path: str, y: np.ndarray | None, u: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray]:
    """y `[E, T, n]`, None for spike times, and u `[E, T, m]`; one channel needs no axis.

    Raises ValueError for shapes that do not fit together.
    """
    arrays = {"u": u} if y is None else {"y": y, "u": u}
    axes = max(2, max(x.ndim for x in arrays.values()))
    full = {name: x[..., None] if x.ndim == axes - 1 else x for name, x in arrays.items()}
    for name, x in full.items():
        if x.ndim not in (2, 3) or not x.size or x.ndim != axes:
            raise ValueError(f"{name} in {path} has shape {arrays[name].shape}; {EXPECTED_FILE}")
    if len({x.shape[:-1] for x in full.values()}) > 1:
        shapes = " and ".join(str(x.shape) for x in arrays.values())
        raise ValueError(
            f"y and u in {path} have shapes {shapes}; expected as many steps of both, T in [T, n] "
            "and [T, m]: transpose what has time along its last axis"
        )
    if all(x.ndim == 2 and len(x) == 1 < x.shape[1] for x in full.values()):
        shapes = " and ".join(f"{name} {x.shape}" for name, x in full.items())
        raise ValueError(
            f"{path} has one step of many channels, {shapes}; expected a row for each step: "
            "transpose them"
        )
    # float64 only where float32 would round: the largest files are of small whole numbers.
    full = {
        name: x.astype(np.result_type(x, np.float32), copy=False).reshape(-1, *x.shape[-2:])
        for name, x in full.items()
    }
    return full.get("y"), full["u"]


def _lengths(numbers: np.ndarray | None, y: np.ndarray | None, u: np.ndarray) -> np.ndarray:
    """Steps `[E]` of each episode: as the file says, or up to where y and u are NaN to the end.

    One row of y may hold several episodes that follow each other.
    """
    count, steps = u.shape[:2]
    if numbers is None:
        is_missing = np.all(np.isnan(u if y is None else np.concatenate([y, u], -1)), axis=2)
        last = steps - np.argmin(is_missing[:, ::-1], axis=1)
        return np.where(is_missing.all(axis=1), steps, last)
    lengths, is_row = array_files.to_integers(numbers.reshape(-1)), count == 1 and y is not None
    if lengths is None or np.any(lengths < 1) or np.any(lengths > steps):
        lengths = np.zeros(0, int)  # which fit nothing
    if len(lengths) != count and not (is_row and lengths.sum() == steps):
        together = f", or add up to {steps}, one episode after the other" if is_row else ""
        raise ValueError(
            f"lengths must be [{count}] whole numbers from 1 to {steps}, steps of each{together}"
        )
    return lengths
