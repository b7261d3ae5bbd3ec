"""Channels of whole numbers that are multiples of one number, as rates in Hz of wide bins are.

Axes: N steps of all episodes in a row, n channels.
"""

import numpy as np

LEAST = 20
"""Values above 0 of a channel; fewer can be multiples of one number by chance."""


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
