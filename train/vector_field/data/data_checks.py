"""Recorded numbers that are refused: infinite ones, and those of which float32 loses too much.

Axes: E episodes of T steps, n channels, m inputs, S spikes.
"""

from collections.abc import Callable, Sequence

import numpy as np

from train.vector_field.data.spike_times import bins_before

HUGE, TINY = 1e15, 1e-15
"""Numbers beyond these have squares and sums of squares that float32 cannot hold."""
ROUNDED = 1e-3
"""Share of the spread of a channel by which float32 may move its numbers."""


def refuse_infinite(path: str, y: list[np.ndarray], u: list[np.ndarray]) -> None:
    """Raises ValueError for infinite numbers, and for inputs that are missing."""
    infinite = sum(int(np.sum(np.isinf(x))) for x in y)
    if infinite:
        raise ValueError(f"y in {path} has {infinite} infinite values; mark them as missing, NaN")
    unknown = sum(int(np.sum(~np.isfinite(x))) for x in u)
    if unknown:
        raise ValueError(
            f"u in {path} has {unknown} values that are NaN or infinite; an input must be known at "
            "every step, only y may be missing"
        )


def refuse_turned(u: np.ndarray, times: np.ndarray, bin_width: float) -> None:
    """Raises ValueError for inputs `[E, m, T]` of spikes at these times `[S]`: too few rows for
    their bins, and columns enough."""
    bins = int(bins_before(times, bin_width).max(initial=-1)) + 1
    rows, columns = u.shape[1:]
    if rows < bins <= columns:
        raise ValueError(
            f"u has {rows} rows of {columns} columns, and spikes are in {bins} bins; expected a "
            "row for each bin, [bins, inputs]: transpose it"
        )


def refuse_scale(path: str, episodes: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Raises ValueError for numbers that float32 cannot learn from."""
    y, u = zip(*episodes, strict=True)
    if np.isnan(_reduce(np.fmax, y)).all():
        raise ValueError(f"y in {path} has no values, all are NaN")
    for name, arrays in (("y", y), ("u", u)):
        largest = _largest_magnitude(arrays).max()
        if largest > HUGE:
            raise ValueError(
                f"{name} in {path} has values up to {largest:.2g}; expected at most {HUGE:g}: "
                "divide by their standard deviation"
            )
        _refuse_rounded(name, path, arrays)
    span = _spans(y).max()
    if 0 < span < TINY:
        raise ValueError(
            f"y in {path} varies by {span:.2g}; expected more than {TINY:g}: divide by its "
            "standard deviation"
        )


def _refuse_rounded(name: str, path: str, episodes: Sequence[np.ndarray]) -> None:
    """Raises ValueError for channels that float32 rounds to few values; those of `[T, n]` each."""
    span = _spans(episodes)
    rounding = _largest_magnitude(episodes, lambda x: x - x.astype(np.float32))
    # What is constant but for the rounding of float64 loses nothing.
    varies = span > np.maximum(TINY, 4 * np.spacing(_largest_magnitude(episodes)))
    lost = np.flatnonzero(varies & (rounding > ROUNDED * span))
    if len(lost):
        k = lost[0]
        mean = np.nanmean(np.concatenate([x[:, k] for x in episodes]))
        raise ValueError(
            f"channel {k} of {name} in {path} has a spread of {span[k]:.2g} around {mean:.2g}, "
            "which float32 cannot hold: subtract its mean"
        )


def _reduce(extreme: np.ufunc, episodes: Sequence[np.ndarray]) -> np.ndarray:
    """`fmin` or `fmax` `[n]` of each channel of episodes `[T, n]`; NaN if all are NaN.

    One episode after the other, without a copy of them all.
    """
    return extreme.reduce([extreme.reduce(x, axis=0) for x in episodes])


def _largest_magnitude(
    episodes: Sequence[np.ndarray], change: Callable[[np.ndarray], np.ndarray] = lambda x: x
) -> np.ndarray:
    """Largest magnitude `[n]` of what `change` makes of each channel of episodes `[T, n]`.

    0 if all are NaN.
    """
    magnitudes = [np.fmax.reduce(np.abs(change(x)), axis=0) for x in episodes]
    return np.nan_to_num(np.fmax.reduce(magnitudes))


def spans(y: np.ndarray) -> np.ndarray:
    """Largest minus smallest value `[n]` of each channel of y `[N, n]`; 0 if all are NaN."""
    return _spans([y])


def _spans(episodes: Sequence[np.ndarray]) -> np.ndarray:
    """`spans` of episodes `[T, n]` together."""
    return np.nan_to_num(_reduce(np.fmax, episodes) - _reduce(np.fmin, episodes))
