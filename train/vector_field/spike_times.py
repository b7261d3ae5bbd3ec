"""Spike times as counts in bins."""

from typing import NamedTuple

import numpy as np

from train.host.array_files import MAX_BYTES

ARRAYS = ("spike_times", "spike_units", "spike_episodes", "duration")
"""Arrays of a file of spike times; the last two may be absent."""


class Spikes(NamedTuple):
    """S spikes of E episodes."""

    times: np.ndarray  # [S], since the start of the episode
    units: np.ndarray  # int [S], counted from 0
    episodes: np.ndarray  # int [S], counted from 0


def read(arrays: dict[str, np.ndarray], episodes: int) -> Spikes:
    """The spikes of a file. Raises ValueError, in one line, for what cannot be one."""
    times = arrays["spike_times"].astype(float)
    if times.ndim != 1 or not np.isfinite(times).all() or np.any(times < 0):
        raise ValueError("spike_times must be [S] finite times from 0 on, one for each spike")
    if "spike_units" not in arrays:
        raise ValueError("there are spike_times but no spike_units: give the unit of each spike")
    units = _indices("spike_units", arrays["spike_units"], times)
    if episodes == 1 and "spike_episodes" not in arrays:
        return Spikes(times, units, np.zeros_like(units))
    if "spike_episodes" not in arrays:
        raise ValueError("u has several episodes: give the episode of each spike, spike_episodes")
    found = _indices("spike_episodes", arrays["spike_episodes"], times)
    if np.any(found >= episodes):
        raise ValueError(f"spike_episodes go up to {found.max()}; u has {episodes}, from 0 on")
    return Spikes(times, units, found)


def _indices(name: str, array: np.ndarray, times: np.ndarray) -> np.ndarray:
    if array.shape != times.shape or np.any(array != np.round(array)) or np.any(array < 0):
        raise ValueError(f"{name} must be [S] whole numbers from 0 on, one for each spike")
    if np.any(array >= 2**31):
        raise ValueError(f"{name} go up to {array.max():g}: number them from 0 on")
    return array.astype(np.int64)


def lengths(
    arrays: dict[str, np.ndarray], steps: np.ndarray, bin_width: float
) -> tuple[np.ndarray, np.ndarray]:
    """`(bins [E], end [E])` of each episode: whole bins in its `duration`, and when it ends.

    Without a duration there is a bin for each of the `steps` `[E]` of u. Raises ValueError unless
    there is an input for every bin.
    """
    if "duration" not in arrays:
        return steps, steps * bin_width
    end = arrays["duration"].astype(float).reshape(-1)
    if end.size == 1:
        end = np.repeat(end, len(steps))
    if end.shape != steps.shape or not np.isfinite(end).all() or np.any(end <= 0):
        raise ValueError(f"duration must be a time above 0, or [{len(steps)}] of them")
    bins = np.floor(end / bin_width * (1 + 1e-9))
    if np.any(bins < 1) or np.any(bins > steps):
        raise ValueError(
            f"a duration of {end.max():g} has {bins.max():.0f} bins of {bin_width:g}, and u "
            f"{steps.max()} steps: give an input for each bin, or another --env.bin-width"
        )
    return bins.astype(int), end


def counts(
    spikes: Spikes, bins: np.ndarray, end: np.ndarray, bin_width: float, units: int
) -> list[np.ndarray]:
    """The counts `[T, n]` of each episode; bin i holds the times from i to i + 1 bin widths.

    A time between two bins belongs to the later one, as in `numpy.histogram`; the very end, to the
    last. Spikes after the last whole bin are left out. Raises ValueError for spikes after the end.
    """
    late = int(np.sum(spikes.times > end[spikes.episodes] * (1 + 1e-9)))
    if late:
        raise ValueError(
            f"{late} spikes are later than the end of their episode, at {end.max():g}: give its "
            "duration and an input for each bin, or another --env.bin-width"
        )
    if int(bins.sum()) * units * 8 > MAX_BYTES:
        raise ValueError(
            f"{units} units in {int(bins.sum())} bins are too many: number the units from 0 on, or "
            "choose a larger --env.bin-width"
        )
    found = []
    for episode, length in enumerate(bins):
        here = spikes.episodes == episode
        edges = bin_width * np.arange(length + 1)
        times, owners = spikes.times[here], spikes.units[here]
        place = np.searchsorted(edges, times, side="right") - 1
        place = np.where(times == edges[-1], length - 1, place)
        inside = place < length
        flat = place[inside] * units + owners[inside]
        found.append(np.bincount(flat, minlength=length * units).reshape(length, units))
    return found
