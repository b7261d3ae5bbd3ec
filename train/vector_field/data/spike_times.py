"""Spike times as counts in bins."""

from typing import NamedTuple

import numpy as np

from train.host.files.array_files import MAX_BYTES, to_integers, to_vector, value_errors_with_path
from train.host.machine.progress import print_once

ARRAYS = ("spike_times", "spike_units", "spike_episodes", "duration", "num_units")
"""Arrays of a file of spike times; the last three may be absent."""
SLACK = 1e-9
"""Of a bin, or of a time: what is so close to an edge is on it."""
SILENT = 0.25
"""Share of bins after the last spike above which the width of bins is doubted."""
LATE = 0.1
"""Share of bins before the first spike above which a record is taken to have begun later."""


class Spikes(NamedTuple):
    """S spikes of E episodes."""

    times: np.ndarray  # [S], since the start of the episode
    units: np.ndarray  # int [S], counted from 0
    episodes: np.ndarray  # int [S], counted from 0


def read(arrays: dict[str, np.ndarray], episodes: int) -> Spikes:
    """The spikes of a file. Raises ValueError, in one line, for what cannot be one."""
    times = _times(arrays)
    units = _units(arrays, times)
    if episodes == 1 and "spike_episodes" not in arrays:
        return Spikes(times, units, np.zeros_like(units))
    if "spike_episodes" not in arrays:
        raise ValueError("u has several episodes: give the episode of each spike, spike_episodes")
    episode_indices = _indices("spike_episodes", arrays["spike_episodes"], times)
    if np.any(episode_indices >= episodes):
        raise ValueError(
            f"spike_episodes go up to {episode_indices.max()}; u has {episodes}, from 0 on"
        )
    return Spikes(times, units, episode_indices)


def _times(arrays: dict[str, np.ndarray]) -> np.ndarray:
    times = _floats(to_vector(arrays["spike_times"]))
    if times.ndim != 1 or not np.isfinite(times).all() or np.any(times < 0):
        raise ValueError("spike_times must be [S] finite times from 0 on, one for each spike")
    return times


def _units(arrays: dict[str, np.ndarray], times: np.ndarray) -> np.ndarray:
    if "spike_units" not in arrays:
        raise ValueError("there are spike_times but no spike_units: give the unit of each spike")
    return _indices("spike_units", arrays["spike_units"], times)


def _floats(array: np.ndarray) -> np.ndarray:
    """The array as floats, of the precision that they have: it says how far they are rounded."""
    return array if array.dtype.kind == "f" else array.astype(float)


def _indices(name: str, array: np.ndarray, times: np.ndarray) -> np.ndarray:
    numbers = to_integers(to_vector(array))
    if numbers is None or numbers.shape != times.shape or np.any(numbers < 0):
        raise ValueError(
            f"{name} must be [S] whole numbers from 0 on, one for each spike: leave out spikes of "
            "none"
        )
    if np.any(numbers >= 2**31):
        raise ValueError(f"{name} go up to {numbers.max()}: number them from 0 on")
    return numbers


def num_units(files: dict[str, dict[str, np.ndarray]]) -> int:
    """Units of all files of spike times, by path, together; 0 if there are none.

    They are as many as a file says, or up to the last that fired. Raises ValueError, in one line.
    """
    counts = {}
    for path, arrays in files.items():
        if "spike_times" in arrays:
            with value_errors_with_path(path):
                counts[path] = _num_units(arrays)
    units = max(counts.values(), default=0)
    exact = [path for path in counts if "num_units" in files[path]]
    for path in exact:
        if counts[path] < units:
            raise ValueError(
                f"{path} says that num_units is {counts[path]}, but there are {units}: say the "
                "same in every file"
            )
    if units and not exact:
        print_once(
            f"{next(iter(counts))}: {units} unit{'s' * (units > 1)}, 0 to {units - 1}, up to the "
            "last that fired; an array num_units tells how many were recorded"
        )
    return units


def tell_gaps(
    path: str, spikes: Spikes, rows: np.ndarray, bins: np.ndarray, bin_width: float
) -> None:
    """Says where the times of spikes and the `rows` `[E]` of u cannot be of the same bins `[E]`.

    So they are if seconds are taken for milliseconds: nearly all spikes are in the first bins. And
    if every episode begins without spikes, as the times are those of a longer session.
    """
    first = np.full(len(bins), np.inf)
    np.minimum.at(first, spikes.episodes, spikes.times)
    before = np.minimum(bins_before(np.minimum(first, bins * bin_width), bin_width), bins)
    if (before > LATE * bins).all() and np.isfinite(first).any():
        print_once(
            f"{path}: no spikes in the first {int(before.sum()):,} of {int(bins.sum()):,} bins, "
            f"before {first.min():.6g}, which is learned as silence: if the record began later, "
            "subtract its start from the times of spikes, and of inputs"
        )
    last = np.zeros_like(bins)  # the bins up to the last spike
    np.maximum.at(last, spikes.episodes, bins_before(spikes.times, bin_width).astype(int) + 1)
    silent, total = int(np.maximum(bins - last, 0).sum()), int(bins.sum())
    unused = int(rows.max() - bins.max())
    reason = f"is --env.bin-width {bin_width:g} in the unit of spike_times, and the time of a row?"
    if silent > SILENT * total:
        print_once(f"{path}: no spikes in the last {silent:,} of {total:,} bins; {reason}")
    if unused > 1:  # one may have been recorded while the last, incomplete bin was
        print_once(f"{path}: the last {unused:,} of {rows.max():,} rows of u have no bin; {reason}")


def _num_units(arrays: dict[str, np.ndarray]) -> int:
    least = int(_units(arrays, _times(arrays)).max(initial=-1)) + 1
    if "num_units" not in arrays:
        return least
    number = to_integers(arrays["num_units"].reshape(-1))
    if number is None or number.size != 1 or not max(least, 1) <= number[0] < 2**31:
        raise ValueError(
            f"num_units must be one whole number of at least {max(least, 1)}, as units are "
            f"numbered from 0 to {max(least, 1) - 1}"
        )
    return int(number[0])


def bins_before(times: np.ndarray, bin_width: float) -> np.ndarray:
    """How many whole bins are before each time: the bin, from 0, that a spike then is in.

    A time that is a multiple of the width but for its rounding is on the edge.
    """
    return np.floor(times / bin_width + _slack(times, bin_width))


def _slack(times: np.ndarray, bin_width: float) -> np.ndarray:
    """How far the rounding of times, of their width and of the quotient may reach, in bins."""
    computed = 2 * np.finfo(float).eps * times
    return np.maximum(SLACK, (_rounding(times) + computed) / bin_width)


def _rounding(times: np.ndarray) -> np.ndarray:
    """How far from the true time a number of this precision may be."""
    return np.spacing(times).astype(float) / 2


def lengths(
    arrays: dict[str, np.ndarray], steps: np.ndarray, bin_width: float
) -> tuple[np.ndarray, np.ndarray]:
    """`(bins [E], end [E])` of each episode: whole bins in its `duration`, and when it ends.

    Without a duration there is a bin for each of the `steps` `[E]` of u. Raises ValueError unless
    there is an input for every bin.
    """
    if "duration" not in arrays:
        return steps, steps * bin_width
    end = _floats(arrays["duration"]).reshape(-1)
    if end.size == 1:
        end = np.repeat(end, len(steps))
    if end.shape != steps.shape or not np.isfinite(end).all() or np.any(end <= 0):
        raise ValueError(f"duration must be a time above 0, or [{len(steps)}] of them")
    bins = bins_before(end, bin_width)
    unfit = np.flatnonzero((bins < 1) | (bins > steps))
    if len(unfit):
        e = unfit[0]
        raise ValueError(
            f"a duration of {end[e]:g} has {bins[e]:.0f} bins of {bin_width:g}, and u "
            f"{steps[e]} steps: give an input for each bin, or another --env.bin-width"
        )
    return bins.astype(int), end


def counts(
    spikes: Spikes, bins: np.ndarray, end: np.ndarray, bin_width: float, units: int
) -> list[np.ndarray]:
    """The counts `[T, n]` of each episode; bin i holds the times from i to i + 1 bin widths.

    A time between two bins belongs to the later one; the very end, to the last. Spikes after the
    last whole bin are left out. Raises ValueError for spikes after the end.
    """
    last = (end + _rounding(end)) * (1 + SLACK)
    late = spikes.times - _rounding(spikes.times) > last[spikes.episodes]
    if late.any():
        time, episode = spikes.times[late][0], spikes.episodes[late][0]
        raise ValueError(
            f"{late.sum()} spikes are later than the end of their episode, such as one at {time:g} "
            f"in episode {episode}, which ends at {end[episode]:g}: give its duration and an input "
            "for each bin, or another --env.bin-width"
        )
    if int(bins.sum()) * units * 8 > MAX_BYTES:
        raise ValueError(
            f"{units} units in {int(bins.sum())} bins are too many: number the units from 0 on, or "
            "choose a larger --env.bin-width"
        )
    ends_on_edge = end / bin_width - bins <= _slack(end, bin_width)
    spike_bins, episode_counts = bins_before(spikes.times, bin_width).astype(int), []
    for episode, length in enumerate(bins):
        in_episode = spikes.episodes == episode
        last_bin = length - 1 if ends_on_edge[episode] else length
        bin_indices, owners = np.minimum(spike_bins[in_episode], last_bin), spikes.units[in_episode]
        inside = bin_indices < length
        flat = bin_indices[inside] * units + owners[inside]
        episode_counts.append(np.bincount(flat, minlength=length * units).reshape(length, units))
    return episode_counts
