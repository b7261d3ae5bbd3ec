"""Channels of numbers that lie whole steps apart: rates, which are multiples of one number as those
in Hz of wide bins are, and counts that were moved and scaled, as z-scored ones are.

Axes: N steps of all episodes in a row, n channels.
"""

import numpy as np

LEAST = 20
"""Values above 0 of a channel; fewer can be multiples of one number by chance."""
FEW_VALUES = 100
"""Different values of a channel, below which they may be counts in another unit."""
WHOLE_STEPS = 1e-3
"""By how much of a step the distances of such values may differ from whole steps."""


def whole_factors(y: np.ndarray, is_count: np.ndarray) -> np.ndarray:
    """The whole number above 1 that divides all values of a channel of y `[N, n]`, int `[n]`.

    0 of those without one, of constant ones and of those that hold no counts, bool `[n]`.
    """
    factors, sizes = np.zeros(y.shape[1], int), np.zeros(y.shape[1], int)
    for channel in np.flatnonzero(is_count):
        values, counts = np.unique(y[~np.isnan(y[:, channel]), channel], return_counts=True)
        if len(values) > 1:
            factors[channel] = np.gcd.reduce(values.astype(int))
            sizes[channel] = counts[values > 0].sum()
    is_multiple = (factors > 1) & (sizes >= LEAST)
    # A channel of few events alone tells nothing, but beside others that are multiples of the same.
    common = int(np.gcd.reduce(factors[is_multiple], initial=0))
    if common > 1:
        is_multiple |= (factors > 1) & (factors % common == 0)
    return np.where(is_multiple, factors, 0)


def step_of(values: np.ndarray) -> float:
    """The step of a few values `[K]`, which rise and lie whole steps apart, as counts of any unit
    do; 0 of others."""
    if not 2 < len(values) < FEW_VALUES:
        return 0.0
    gaps = np.diff(values)
    steps = gaps / gaps.min()
    return float(gaps.min()) if np.abs(steps - np.round(steps)).max() < WHOLE_STEPS else 0.0


def moved_counts(y: np.ndarray, is_count: np.ndarray) -> list[tuple[int, float]]:
    """The channels of y `[N, n]` whose values lie whole steps from each other but not from 0.

    Each with its step. What a converter gives lies whole steps from 0, too.
    """
    moved = []
    for channel in np.flatnonzero(~is_count):
        values = np.unique(y[~np.isnan(y[:, channel]), channel])
        if step := step_of(values):
            offset = values[np.abs(values).argmin()] / step
            if abs(offset - np.round(offset)) > WHOLE_STEPS:
                moved.append((int(channel), step))
    return moved
