"""Numbers that stand for missing samples, such as -999: far from all others, and all the same.

Numbers that were measured do not meet again and again where there are none beside them; those of a
heavy tail, of a clipped channel or of bursts have neighbours. Axes: N steps, n channels.
"""

from collections.abc import Iterator

import numpy as np

from train.host.numbers import quantity
from train.vector_field.look.channel_faults import OUTLIER, list_of
from train.vector_field.look.facts import Table

SAME = 5
"""How often such a number occurs at least; fewer are outliers."""
APART = 0.5
"""Share of its distance from the median within which there is no other number."""


def sentinels(table: Table, is_sentinel: np.ndarray) -> Iterator[str]:
    """A line on those that `find_sentinels` returned."""
    which = np.flatnonzero(is_sentinel.any(axis=0))
    if len(which):
        values = np.unique(table.y[is_sentinel])
        count = quantity(int(is_sentinel.sum()), "values")
        yield (
            f"{count} of just {list_of([f'{x:g}' for x in values])} in "
            f"{quantity(len(which), 'channels')} ({list_of(which)}), far from all others: they "
            "stand for missing samples, or for a sensor at its limit; mark them as missing, NaN"
        )


def find_sentinels(table: Table, leave_out: np.ndarray) -> np.ndarray:
    """Where such numbers stand, bool `[N, n]`; steps `leave_out`, bool `[N]`, are not looked at."""
    y = np.where(leave_out[:, None], np.nan, table.y)
    return np.stack([np.isin(x, sentinel_values(x[~np.isnan(x)])) for x in y.T], axis=1)


def sentinel_values(x: np.ndarray) -> np.ndarray:
    """The numbers among those of a channel that look like sentinels."""
    if len(x) < SAME:
        return x[:0]
    low, middle, high = np.quantile(x, (0.25, 0.5, 0.75))
    unit = (high - low) / 1.35
    if unit == 0:
        return x[:0]
    distance = np.abs(x - middle) / unit
    values, counts = np.unique(x[distance > APART * OUTLIER], return_counts=True)
    gaps = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    gap, far = np.minimum(gaps[:-1], gaps[1:]), np.abs(values - middle)
    return values[(counts >= SAME) & (gap > APART * far) & (far > OUTLIER * unit)]
