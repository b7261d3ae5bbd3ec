"""What is unusual about recorded data that can be learned from."""

import numpy as np

from train.vector_field.data.data_checks import spans
from train.vector_field.data.recordings import Data

USUAL = (1e-3, 1e3)
"""Standard deviations of data that learn well; others are named."""
LARGEST_WHOLE = 2**24
"""Whole numbers from here on are rounded by float32."""
SHOWN_CHANNELS = 8
FAR = 10.0
"""Standard deviations from 0 beyond which a mean is named, if it is not of order 1 itself."""


def oddities(data: Data, noise: str = "gaussian") -> list[str]:
    """What is unusual about data that can be learned from, a line each.

    `noise` is what the channels are taken to have.
    """
    y = np.where(data.observed, data.y, np.nan).reshape(-1, data.y.shape[-1])
    lines = _channel_oddities(y, int(data.lengths.sum()))
    if data.holds_counts and noise != "poisson":
        lines.append(
            "y holds counts; --env.noise poisson with --env.observation loglinear is their model"
        )
    if (factor := _common_factor(data)) > 1:
        lines.append(
            f"all numbers of y are multiples of {factor:,}: if they are rates, divide by that to "
            "have counts"
        )
    return lines


def unusual_scales(data: Data) -> list[str]:
    """Which of y and u are far from numbers of order 1, or from 0, a line each; either may be
    constant."""
    lines = []
    valid = np.arange(data.u.shape[1]) < data.lengths[:, None]
    for name, array in (("y", data.y[valid]), ("u", data.u[valid])):
        samples = np.where(data.observed[valid], array, np.nan) if name == "y" else array
        has_values = ~np.isnan(samples).all(0)
        samples = samples[:, has_values]
        deviation = np.nanstd(samples, axis=0, dtype=float)
        scale, mean = float(deviation.max()), np.nanmean(samples, axis=0, dtype=float)
        if scale and not USUAL[0] <= scale <= USUAL[1]:
            lines.append(
                f"{name} has a standard deviation of {scale:.2g}; learning expects numbers of "
                "order 1: rescale them"
            )
        is_far = (np.abs(mean) > FAR * np.maximum(deviation, 1)) & (deviation > 0)
        if is_far.any():
            k = int(np.argmax(np.where(is_far, np.abs(mean) / np.maximum(deviation, 1), 0)))
            lines.append(
                f"{name} has a mean of {mean[k]:.3g} beside a standard deviation of "
                f"{deviation[k]:.2g}; learning expects numbers around 0: subtract it"
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
            listing = ", ".join(map(str, np.flatnonzero(which)[:SHOWN_CHANNELS]))
            more = ", …" if count > SHOWN_CHANNELS else ""
            lines.append(
                f"y {what} in {count} of {len(which)} channels ({listing}{more}, counted from 0), "
                "which adds nothing to the scores: leave them out"
            )
    return lines
