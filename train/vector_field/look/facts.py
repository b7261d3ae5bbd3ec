"""What recorded data hold, in numbers: channels, inputs, missing steps.

Axes: N steps of all episodes in a row, n channels, m inputs, E episodes, F frequencies.
"""

from typing import NamedTuple

import numpy as np

from train.vector_field.data.recordings import Data
from train.vector_field.look.multiples import whole_factors

SEGMENT = 512
"""Steps of a segment whose power spectrum is taken, at most."""
LEAST_SEGMENT = 32


class Table(NamedTuple):
    """All episodes in a row, without padding."""

    y: np.ndarray  # [N, n], NaN where missing
    u: np.ndarray  # [N, m]
    lengths: np.ndarray  # int [E]
    is_count: np.ndarray  # bool [n]
    factors: np.ndarray  # int [n], of which all values are multiples; 0: of none but 1

    @property
    def starts(self) -> np.ndarray:
        """The rows `[E]` at which episodes begin."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]])

    def episodes(self, x: np.ndarray) -> list[np.ndarray]:
        """x `[N, ...]` cut into episodes."""
        return np.split(x, np.cumsum(self.lengths)[:-1])


class Channels(NamedTuple):
    """Numbers of each channel, `[n]`; NaN for one without values."""

    mean: np.ndarray
    deviation: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray
    missing: np.ndarray  # share of steps


class Inputs(NamedTuple):
    """Numbers of each input, `[m]`."""

    smallest: np.ndarray
    largest: np.ndarray
    active: np.ndarray  # share of steps at which it is not 0
    hold: np.ndarray  # mean steps for which it stays the same while not 0; inf of a constant


class Gaps(NamedTuple):
    """Stretches of steps at which no channel has a value."""

    count: int
    longest: int  # steps
    share: float  # of all steps


class Spectrum(NamedTuple):
    """Power of each channel by frequency, in units of its variance."""

    frequency: np.ndarray  # [F] cycles a step
    power: np.ndarray  # [F, n]; NaN of channels that do not vary


def table_of(data: Data, is_count: np.ndarray) -> Table:
    """The data as one table, in which rates of counts, `[n]`, do not count."""
    inside = np.arange(data.y.shape[1]) < data.lengths[:, None]
    y = np.where(data.observed, data.y, np.nan)[inside]
    factors = whole_factors(y, is_count)
    return Table(y, data.u[inside], data.lengths, is_count & (factors == 0), factors)


def channels_of(table: Table) -> Channels:
    """The numbers of all channels."""
    observed = ~np.isnan(table.y)
    count = observed.sum(0)
    has_values = count > 0
    number = np.where(has_values, count, 1)
    nan_if_empty = lambda x: np.where(has_values, x, np.nan)
    mean = np.where(observed, table.y, 0).sum(0, dtype=float) / number
    square = np.where(observed, (table.y - mean) ** 2, 0).sum(0, dtype=float) / number
    return Channels(
        nan_if_empty(mean),
        nan_if_empty(np.sqrt(square)),
        np.fmin.reduce(table.y, axis=0),
        np.fmax.reduce(table.y, axis=0),
        1 - count / len(table.y),
    )


def inputs_of(table: Table) -> Inputs:
    """The numbers of all inputs, which are held to the end of an episode at most."""
    is_active, begins = table.u != 0, np.zeros(table.u.shape[1], int)
    for u in table.episodes(table.u):
        differs = np.diff(u, axis=0, prepend=0) != 0  # from none, at the start
        begins += (differs & (u != 0)).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hold = np.where(np.ptp(table.u, axis=0) > 0, is_active.sum(0) / begins, np.inf)
    return Inputs(table.u.min(0), table.u.max(0), is_active.mean(0), hold)


def gaps_of(table: Table) -> Gaps:
    """The stretches without any value, which end with their episodes."""
    count = longest = total = 0
    for is_empty in table.episodes(np.asarray(np.isnan(table.y).all(1))):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], is_empty, [False]])))
        sizes = edges[1::2] - edges[::2]
        count, total = count + len(sizes), total + int(sizes.sum())
        longest = max(longest, int(sizes.max(initial=0)))
    return Gaps(count, longest, total / len(table.y))


def standardise(table: Table, channels: Channels) -> np.ndarray:
    """y `[N, n]` of mean 0 and variance 1; 0 where it is missing or does not vary."""
    deviation = np.where(channels.deviation > 0, channels.deviation, np.nan)
    return np.nan_to_num((table.y - channels.mean) / deviation)


def correlations(standard: np.ndarray) -> np.ndarray:
    """`[n, n]` of standardised channels `[N, n]`; 0 with those that do not vary."""
    size = np.sqrt(np.sum(standard**2, axis=0))  # what is missing is 0
    size = np.where(size > 0, size, 1)
    return standard.T @ standard / (size[:, None] * size)


def spectrum_of(table: Table, standard: np.ndarray) -> Spectrum | None:
    """The mean over segments of Hann windows (Welch 1967); None of episodes that are too short."""
    size = min(SEGMENT, int(table.lengths.max()))
    if size < LEAST_SEGMENT:
        return None
    window = np.hanning(size)
    power, number = np.zeros((size // 2 + 1, table.y.shape[1])), 0
    for x in table.episodes(standard):
        for begin in range(0, len(x) - size + 1, size // 2):
            segment = x[begin : begin + size]
            transform = np.fft.rfft((segment - segment.mean(0)) * window[:, None], axis=0)
            power, number = power + np.abs(transform) ** 2, number + 1
    power = power / (number * np.sum(window**2))
    power[:, ~(power > 0).any(0)] = np.nan
    return Spectrum(np.fft.rfftfreq(size)[1:], power[1:])
