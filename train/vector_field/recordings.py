"""Files of recorded data: what they must hold, what is refused, what is unusual about them.

Axes: E episodes, T steps of the longest, n channels, m inputs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from train.host import array_files
from train.host.records import write_arrays
from train.vector_field import spike_times

HUGE, TINY = 1e15, 1e-15
"""Numbers beyond these have squares and sums of squares that float32 cannot hold."""
ROUNDED = 1e-3
"""Share of the spread of a channel by which float32 may move its numbers."""
USUAL = (1e-3, 1e3)
"""Standard deviations of data that learn well; others are named."""
LARGEST_WHOLE = 2**24
"""Whole numbers from here on are rounded by float32."""
SHOWN_CHANNELS = 8
WANTED = (
    "expected an npz file with y [T, n] or [E, T, n], or spike_times and spike_units, and with "
    "u [T, m] or [E, T, m]"
)


class Data(NamedTuple):
    """Episodes, each padded at its end to the longest; float32."""

    y: np.ndarray  # [E, T, n]; 0 where missing
    u: np.ndarray  # [E, T, m]; 0 in padding
    observed: np.ndarray  # bool [E, T, n]; false where missing, and in padding
    lengths: np.ndarray  # int [E]
    holds_counts: bool = False  # whether all observed are whole numbers from 0 on, unrounded

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
        return Data(y, u, observed, lengths, self.holds_counts)

    def episode(self, which: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`y [T, n]`, `u [T, m]` and `observed [T, n]` of one episode, without padding."""
        y, u, observed = (x[which, : self.lengths[which]] for x in self[:3])
        return y, u, observed


def joined(episodes: Sequence[tuple[np.ndarray, np.ndarray]]) -> Data:
    """Pads pairs of y `[T, n]`, NaN where missing, and u `[T, m]`."""
    lengths = np.array([len(y) for y, _ in episodes])
    pad = lambda x, fill: np.pad(x, ((0, lengths.max() - len(x)), (0, 0)), constant_values=fill)
    y = np.stack([pad(y.astype(np.float32), np.nan) for y, _ in episodes])
    u = np.stack([pad(u.astype(np.float32), 0) for _, u in episodes])
    observed = ~np.isnan(y)
    holds_counts = all(_are_counts(y) for y, _ in episodes)  # float32 would make others whole
    return Data(np.where(observed, y, 0), u, observed, lengths, holds_counts)


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


def load(paths: str | Sequence[str], bin_width: float = 1.0) -> Data:
    """Reads and checks files, and joins their episodes; spike times are counted in bins.

    Raises ValueError, in one line, which says what is wrong with them.
    """
    if not 0 < bin_width < np.inf:
        raise ValueError(f"bin_width is {bin_width}; expected a finite time above 0")
    paths = [paths] if isinstance(paths, str) else list(paths)
    arrays = [_arrays(path) for path in paths]
    units = spike_times.num_units(dict(zip(paths, arrays, strict=True)))
    found = [_episodes(path, x, bin_width, units) for path, x in zip(paths, arrays, strict=True)]
    sizes = [(of_file[0][0].shape[1], of_file[0][1].shape[1]) for of_file in found]
    for path, size in zip(paths, sizes, strict=True):
        if size != sizes[0]:
            raise ValueError(
                f"{path} has {size[0]} channels and {size[1]} inputs, and {paths[0]} {sizes[0][0]} "
                f"and {sizes[0][1]}: files must have the same"
            )
    episodes = [episode for of_file in found for episode in of_file]
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    longest = max(len(y) for y, _ in episodes)
    if len(episodes) * longest * sum(sizes[0]) * 4 > array_files.MAX_BYTES:
        raise ValueError(
            f"{len(episodes)} episodes of up to {longest} steps in {name} are too much when all "
            "are padded to the longest: cut the longest into pieces"
        )
    _refuse_scale(name, episodes)
    return joined(episodes)


def _arrays(path: str) -> dict[str, np.ndarray]:
    try:
        arrays = array_files.read_npz(path, ("y", "u", "lengths", *spike_times.ARRAYS))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; {WANTED}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {WANTED}") from None
    if "u" not in arrays:
        raise ValueError(f"{path} has no array 'u'; {WANTED}; without inputs, of zeros")
    if ("y" in arrays) == ("spike_times" in arrays):
        which = "both y and" if "y" in arrays else "no array 'y' and no"
        raise ValueError(f"{path} has {which} spike_times; {WANTED}")
    return arrays


def _episodes(
    path: str, arrays: dict[str, np.ndarray], bin_width: float, units: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of one file: y `[T, n]`, NaN where missing, and u `[T, m]` of each episode."""
    y, u = _with_all_axes(path, arrays.get("y"), arrays["u"])
    with array_files.about(path):
        lengths = _lengths(arrays.get("lengths"), y, u)
        if y is None:
            spikes = spike_times.read(arrays, len(u))
            if not units:
                raise ValueError("there are no spikes")
            rows = lengths
            lengths, end = spike_times.lengths(arrays, rows, bin_width)
            y = spike_times.counts(spikes, lengths, end, bin_width, units)
            spike_times.tell_gaps(path, spikes, rows, lengths, bin_width)
    if len(lengths) > len(u):  # episodes in a row
        y, u = (np.split(x[0], np.cumsum(lengths)[:-1]) for x in (y, u))
    y, u = (
        [x[:n].astype(float) for x, n in zip(of_all, lengths, strict=True)] for of_all in (y, u)
    )
    _refuse_infinite(path, y, u)
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
            raise ValueError(f"{name} in {path} has shape {arrays[name].shape}; {WANTED}")
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
    full = {name: x.astype(float).reshape(-1, *x.shape[-2:]) for name, x in full.items()}
    return full.get("y"), full["u"]


def _lengths(numbers: np.ndarray | None, y: np.ndarray | None, u: np.ndarray) -> np.ndarray:
    """Steps `[E]` of each episode: as the file says, or up to where y and u are NaN to the end.

    One row of y may hold several episodes that follow each other.
    """
    count, steps = u.shape[:2]
    if numbers is None:
        nothing = np.all(np.isnan(u if y is None else np.concatenate([y, u], -1)), axis=2)
        last = steps - np.argmin(nothing[:, ::-1], axis=1)
        return np.where(nothing.all(axis=1), steps, last)
    lengths, is_row = array_files.as_whole(numbers.reshape(-1)), count == 1 and y is not None
    if lengths is None or np.any(lengths < 1) or np.any(lengths > steps):
        lengths = np.zeros(0, int)  # which fit nothing
    if len(lengths) != count and not (is_row and lengths.sum() == steps):
        together = f", or add up to {steps}, one episode after the other" if is_row else ""
        raise ValueError(
            f"lengths must be [{count}] whole numbers from 1 to {steps}, steps of each{together}"
        )
    return lengths


def _refuse_infinite(path: str, y: list[np.ndarray], u: list[np.ndarray]) -> None:
    infinite = sum(int(np.sum(np.isinf(x))) for x in y)
    if infinite:
        raise ValueError(f"y in {path} has {infinite} infinite values; mark them as missing, NaN")
    unknown = sum(int(np.sum(~np.isfinite(x))) for x in u)
    if unknown:
        raise ValueError(
            f"u in {path} has {unknown} values that are NaN or infinite; an input must be known at "
            "every step, only y may be missing"
        )


def _refuse_scale(path: str, episodes: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Raises ValueError for numbers that float32 cannot learn from."""
    y, u = (np.concatenate(of_all) for of_all in zip(*episodes, strict=True))
    if np.isnan(y).all():
        raise ValueError(f"y in {path} has no values, all are NaN")
    for name, array in (("y", y), ("u", u)):
        largest = _largest(array).max()
        if largest > HUGE:
            raise ValueError(
                f"{name} in {path} has values up to {largest:.2g}; expected at most {HUGE:g}: "
                "divide by their standard deviation"
            )
        _refuse_rounded(name, path, array)
    span = spans(y).max()
    if 0 < span < TINY:
        raise ValueError(
            f"y in {path} varies by {span:.2g}; expected more than {TINY:g}: divide by its "
            "standard deviation"
        )


def _refuse_rounded(name: str, path: str, x: np.ndarray) -> None:
    """Raises ValueError for channels that float32 rounds to few values; those of x `[N, n]`."""
    span, moved = spans(x), _largest(x - x.astype(np.float32))
    # What is constant but for the rounding of float64 loses nothing.
    varies = span > np.maximum(TINY, 4 * np.spacing(_largest(x)))
    lost = np.flatnonzero(varies & (moved > ROUNDED * span))
    if len(lost):
        k = lost[0]
        raise ValueError(
            f"channel {k} of {name} in {path} has a spread of {span[k]:.2g} around "
            f"{np.nanmean(x[:, k]):.2g}, which float32 cannot hold: subtract its mean"
        )


def _largest(x: np.ndarray) -> np.ndarray:
    """Largest magnitude `[n]` in each channel of x `[N, n]`; 0 if all are NaN."""
    return np.where(np.isnan(x), 0, np.abs(x)).max(0)


def spans(y: np.ndarray) -> np.ndarray:
    """Largest minus smallest value `[n]` of each channel of y `[N, n]`; 0 if all are NaN."""
    missing = np.isnan(y)
    span = np.where(missing, -np.inf, y).max(0) - np.where(missing, np.inf, y).min(0)
    return np.where(missing.all(0), 0, span)


def oddities(data: Data, noise: str = "gaussian") -> list[str]:
    """What is unusual about data that can be learned from, a line each.

    `noise` is what the channels are taken to have.
    """
    y = np.where(data.observed, data.y, np.nan).reshape(-1, data.y.shape[-1])
    found = _channel_oddities(y, int(data.lengths.sum()))
    if data.holds_counts and noise != "poisson":
        found.append(
            "y holds counts; --env.noise poisson with --env.observation loglinear is their model"
        )
    if (factor := _common_factor(data)) > 1:
        found.append(
            f"all numbers of y are multiples of {factor:,}: if they are rates, divide by that to "
            "have counts"
        )
    return found


def unusual_scales(data: Data) -> list[str]:
    """Which of y and u are far from numbers of order 1, a line each; u may be constant."""
    lines = []
    valid = np.arange(data.u.shape[1]) < data.lengths[:, None]
    for name, array in (("y", data.y[valid]), ("u", data.u[valid])):
        kept = np.where(data.observed[valid], array, np.nan) if name == "y" else array
        known = ~np.isnan(kept).all(0)
        scale = float(np.nanstd(kept[:, known], axis=0, dtype=float).max())
        if scale and not USUAL[0] <= scale <= USUAL[1]:
            lines.append(
                f"{name} has a standard deviation of {scale:.2g}; learning expects numbers of "
                "order 1: rescale them"
            )
    return lines


def _common_factor(data: Data) -> int:
    """The largest whole number that divides all counts, as of rates; 1 if there are no counts."""
    values = np.unique(data.y[data.observed])
    if not data.holds_counts or not 0 < values.max(initial=0) < LARGEST_WHOLE:
        return 1
    return int(np.gcd.reduce(values.astype(int)))


def _channel_oddities(y: np.ndarray, steps: int) -> list[str]:
    """What is odd about the channels of y `[N, n]`, NaN where missing, of which so many count."""
    lines, empty = [], np.asarray(np.isnan(y).all(0))
    if len(empty) > steps:
        lines.append(
            f"y has {len(empty)} channels and only {steps} steps: give [E, T] of one channel a "
            "last axis, y[..., None], and transpose what has time along its last axis"
        )
    constant = (spans(y) == 0) & ~empty
    for what, which in (("has no values, all are NaN,", empty), ("is constant", constant)):
        if count := np.count_nonzero(which):
            shown = ", ".join(map(str, np.flatnonzero(which)[:SHOWN_CHANNELS]))
            more = ", …" if count > SHOWN_CHANNELS else ""
            lines.append(
                f"y {what} in {count} of {len(which)} channels ({shown}{more}, counted from 0), "
                "which adds nothing to the scores: leave them out"
            )
    return lines
