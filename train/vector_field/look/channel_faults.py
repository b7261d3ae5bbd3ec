"""Channels that look broken: what was seen, and what to do about it, a line each.

Each check is a rule of thumb, by the constants here: the reader decides. Axes: N steps of all
episodes in a row, n channels.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from train.host.numbers import listing, quantity
from train.vector_field.look.facts import Channels, Table, correlations
from train.vector_field.look.multiples import FEW_VALUES, moved_counts, step_of

RARE = 20
"""Events of a channel that counts; fewer tell nothing of dynamics."""
TWIN = 0.99
"""Correlation of two channels of numbers, up or down, that are the same signal."""
TWIN_COUNTS = 0.9
"""The same for counts, which two units hardly share."""
AT_EDGE, LEAST_AT_EDGE = 0.005, 20
"""Share and number of values that are just the same at one end: a clipped channel."""
BEYOND = 0.002
"""Share of values beyond that end, such as those of artefacts."""
DRIFT, DRIFT_ORDER = 0.5, 0.9
"""Change from the first to the last quarter in standard deviations (of counts, in shares of the
mean), and the rank correlation of means over stretches with time, that make a drift."""
STRETCHES = 20
OUTLIER, MOST_OUTLIERS = 12.0, 0.002
"""Distance from the median in robust standard deviations, and the share of values that are so far:
more of them are a heavy tail, but for a single one."""
WHOLE = 0.9
"""Share of whole numbers in a channel that should have held counts."""
ARTEFACT, TOGETHER = 5.0, 0.5
"""Distance from the mean in standard deviations, and the share of channels that are so far in one
step."""
SHOWN = 8


def list_of(numbers: Sequence[object] | np.ndarray) -> str:
    """`3, 7, …`: the first of them, counted from 0."""
    return listing(list(map(str, numbers)), SHOWN)


def silent_channels(table: Table, channels: Channels) -> Iterator[str]:
    """Channels without values, constant ones, and counts of hardly any event."""
    empty = np.isnan(channels.mean)
    still = ~empty & (channels.largest == channels.smallest)
    events = np.nansum(np.where(table.is_count, table.y, np.nan), axis=0)
    rare = table.is_count & ~empty & ~still & (events < RARE)
    for which, text in (
        (empty, "without any value"),
        (still, "constant, dead or switched off"),
        (rare, f"with fewer than {RARE} events in all"),
    ):
        if which.any():
            count = quantity(int(which.sum()), "channels")
            yield f"{count} {text} ({list_of(np.flatnonzero(which))}): leave them out"


def twins(table: Table, standard: np.ndarray) -> Iterator[str]:
    """Pairs of channels that hold the same signal."""
    similarity = np.abs(correlations(standard))
    kinds = table.is_count[:, None] & table.is_count[None]
    limit = np.where(kinds, TWIN_COUNTS, TWIN)
    first, second = np.nonzero(np.triu(similarity, 1) > limit)
    if len(first):
        pairs = [f"{a} and {b}" for a, b in zip(first, second, strict=True)]
        yield (
            f"the same signal in {quantity(len(pairs), 'pairs')} of channels ({list_of(pairs)}): "
            "a unit sorted twice, or a channel copied; leave one of each out"
        )


def clipped_channels(table: Table) -> Iterator[str]:
    """Channels of numbers that stay at one value, beyond which there is hardly any."""
    clipped = [int(x) for x in np.flatnonzero(~table.is_count) if _is_clipped(table.y[:, x])]
    if clipped:
        yield (
            f"{quantity(len(clipped), 'channels')} clipped ({list_of(clipped)}): many values are "
            "just the same, and next to none beyond; mark them as missing, or lower the gain"
        )


def _is_clipped(y: np.ndarray) -> bool:
    x = y[~np.isnan(y)]
    if not len(x) or (x == np.round(x)).mean() >= WHOLE:  # whole numbers are often the same
        return False
    values, counts = np.unique(x, return_counts=True)
    if step_of(values):  # z-scored counts, of which most may be 0
        return False
    edge, count = values[counts.argmax()], counts.max()
    low, high = np.quantile(x, (0.01, 0.99))
    beside = np.sum((np.abs(x - edge) < 0.01 * (high - low)) & (x != edge))
    beyond = min(np.mean(x < edge), np.mean(x > edge))
    varies = len(values) > 1  # a constant channel is told as such
    is_edge = varies and edge != 0 and beyond <= BEYOND  # 0 is what many filters make of noise
    return bool(is_edge and count >= max(LEAST_AT_EDGE, AT_EDGE * len(x), 2 * beside))


def drifts(table: Table, channels: Channels) -> Iterator[str]:
    """Channels whose mean moves one way through the whole record."""
    if len(table.y) < 10 * STRETCHES:
        return
    means = np.stack([mean_of_known(x) for x in np.array_split(table.y, STRETCHES)])  # [S, n]
    first, last, order = np.array([_course(x[~np.isnan(x)]) for x in means.T]).T  # [n] each
    change = last - first
    unit = np.where(table.is_count, channels.mean, channels.deviation)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.abs(change / unit)
    which = np.flatnonzero((size > DRIFT) & (order > DRIFT_ORDER))  # NaN is not above
    if len(which):
        largest = which[np.argmax(size[which])]
        ends = float(first[largest]), float(last[largest])
        yield (
            f"drift in {quantity(len(which), 'channels')} ({list_of(which)}), most in {largest}, "
            f"from {distinct(*ends)} to {distinct(*ends[::-1])}:"
            " cut the record, or take out what is slower than the dynamics that you look for"
        )


def distinct(number: float, other: float) -> str:
    """A number with as many digits as tell it from the other one, three at least."""
    larger = max(abs(number), abs(other)) / (abs(number - other) or 1.0)
    digits = max(3, 2 + math.ceil(math.log10(max(larger, 1.0))))
    return f"{number:.{digits}g}"


def _course(means: np.ndarray) -> tuple[float, float, float]:
    """The means of the first and of the last quarter of the stretches `[S]` that have values, and
    how far these rise or fall in order, 0 to 1; NaN of fewer than half of all stretches."""
    if 2 * len(means) < STRETCHES:
        return np.nan, np.nan, np.nan
    quarter = len(means) // 4
    time = np.arange(len(means)) - (len(means) - 1) / 2
    order = abs(float(time @ np.argsort(np.argsort(means)))) / np.sum(time**2)
    return float(means[:quarter].mean()), float(means[-quarter:].mean()), float(order)


def mean_of_known(y: np.ndarray) -> np.ndarray:
    """The mean `[n]` of y `[N, n]` where it is known; NaN where it is nowhere."""
    observed = ~np.isnan(y)
    count = observed.sum(0)
    total = np.where(observed, y, 0).sum(0, dtype=float)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def outliers(table: Table, standard: np.ndarray) -> Iterator[str]:
    """Channels of numbers with a few values far from all others, where not all jump together."""
    which, alone = [], ~jumps(standard)
    for channel in np.flatnonzero(~table.is_count):
        x = table.y[alone, channel]
        x = x[~np.isnan(x)]
        if not len(x):
            continue
        low, middle, high = np.quantile(x, (0.25, 0.5, 0.75))
        is_far = np.abs(x - middle) > OUTLIER * (high - low) / 1.35
        count = int(is_far.sum())
        if high > low and 0 < count <= max(1, MOST_OUTLIERS * len(x)):
            which.append((int(channel), count))
    if which:
        total = sum(count for _, count in which)
        yield (
            f"{quantity(total, 'outliers')} in {quantity(len(which), 'channels')} "
            f"({list_of([channel for channel, _ in which])}), more than {OUTLIER:g} robust standard"
            " deviations from the median: mark them as missing, NaN"
        )


def broken_counts(table: Table) -> Iterator[str]:
    """Channels that nearly hold counts, those of rates, multiples of one number, and z-scores."""
    nearly = []
    rates = [(int(x), float(table.factors[x])) for x in np.flatnonzero(table.factors)]
    for channel in np.flatnonzero(~table.is_count & (table.factors == 0)):
        x = table.y[:, channel]
        x = x[~np.isnan(x)]
        if not len(x) or x.min() < 0 or not (x > 0).any():
            continue
        is_whole = (x == np.round(x)).mean()
        least = x[x > 0].min()
        ratio = x / least
        multiples = np.round(ratio)
        if is_whole == 1:  # counts, with --env.noise gaussian
            continue
        if is_whole >= WHOLE:
            nearly.append(int(channel))
        # Far from 0 all numbers are near the least one, and none is another multiple of it.
        elif (
            len(np.unique(x)) < FEW_VALUES
            and np.abs(ratio - multiples).max() < 1e-3
            and np.ptp(multiples) > 0
        ):
            rates.append((int(channel), float(least)))
    if nearly:
        yield (
            f"almost counts in {quantity(len(nearly), 'channels')} ({list_of(nearly)}), but not "
            "all numbers are whole: a correction or an average was applied; give the counts"
        )
    if rates:
        rates.sort()
        names = list_of([channel for channel, _ in rates])
        yield (
            f"multiples of one number in {quantity(len(rates), 'channels')} ({names}), such as "
            f"{rates[0][1]:.4g}: rates of counts; divide by it to have the counts"
        )
    if moved := moved_counts(table.y, table.is_count):
        names = list_of([channel for channel, _ in moved])
        yield (
            f"whole steps apart in {quantity(len(moved), 'channels')} ({names}), such as "
            f"{moved[0][1]:.4g}, but not from 0: counts that were z-scored; give the counts"
        )


def artefacts(standard: np.ndarray) -> Iterator[str]:
    """Steps at which most channels jump together."""
    steps = np.flatnonzero(jumps(standard))
    if len(steps):
        yield (
            f"most channels jump together at {quantity(len(steps), 'steps')} ({list_of(steps)}): "
            "movement, or the stimulus seen by the electrodes; mark them as missing, NaN"
        )


def jumps(standard: np.ndarray) -> np.ndarray:
    """Steps at which most channels are far from their means, bool `[N]`; none of few channels."""
    together = (np.abs(standard) > ARTEFACT).mean(1) >= TOGETHER
    return together & (standard.shape[1] >= 4)
