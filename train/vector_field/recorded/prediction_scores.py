"""Scores by which all models of recorded data are compared: R², coverage and log-likelihood.

A model is a function from starts, steps of held-out episodes, to `Forecasts` of what follows them.
It is called with blocks of starts, so that a long record of many channels needs little memory:

    scores = score(training, held_out, forecaster, is_count, ahead=30)

Letters: E episodes, T steps of the longest, B starts, K steps ahead, S of them with intervals, n
channels.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from train.vector_field.data.recordings import Data
from train.vector_field.experiment.held_out import SKIPPED
from train.vector_field.recorded import predictive

INTERVALS_AT = (1, 10, 30)
"""Steps ahead at which models say how probable an observation was, if they forecast so far."""
TAIL = 0.05
"""Probability on either side of an interval."""
CONSTANT = 1e-12
"""Variance that a channel has which is constant in the training data."""
BLOCK_VALUES = 2_000_000
"""Forecast values in a block of starts."""


class Starts(NamedTuple):
    """Where forecasts begin: with all that was observed until then, this step included."""

    episode: np.ndarray  # int [B]
    step: np.ndarray  # int [B]


class Forecasts(NamedTuple):
    """What a model expects after B starts, and where in that the observations lie."""

    mean: np.ndarray  # [B, K + 1, n] now and up to K steps later
    below: np.ndarray  # [B, S, n] P(Y < y) of the observations y at `INTERVALS_AT`
    at_most: np.ndarray  # [B, S, n] P(Y ≤ y)
    log_likelihood: np.ndarray  # [B, n] of each channel by itself, one step later; nats


Forecaster = Callable[[Starts], Forecasts]


class Weights(NamedTuple):
    """What the scores of a record rest on, by which those of several records are joined."""

    starts: int  # B, forecasts
    spread: np.ndarray  # [K + 1] squares of what is foretold around its means, all channels
    error: np.ndarray  # [K + 1] squares of errors; both in the variances of the training data
    observed: np.ndarray  # [S] number of observations whose intervals are scored
    values: float  # number of those one step ahead


class Scores(NamedTuple):
    """Over all starts that are scored; NaN where nothing is."""

    r2: np.ndarray  # [K + 1] mean over channels
    coverage: np.ndarray  # [S] share of observations in their 90 % intervals at `INTERVALS_AT`
    gain: float  # nats per observed value one step ahead, more than the training data's mean gives
    weights: Weights


def interval_steps(ahead: int) -> tuple[int, ...]:
    """S: those of `INTERVALS_AT` that are at most K = `ahead`."""
    return tuple(k for k in INTERVALS_AT if k <= ahead)


def starts_of(data: Data, ahead: int) -> Starts:
    """All steps that forecasts are scored from: `SKIPPED` are before them, `ahead` after them."""
    steps = [np.arange(SKIPPED, length - ahead) for length in data.lengths]
    episodes = np.repeat(np.arange(len(steps)), [len(x) for x in steps])
    return Starts(episodes, np.concatenate(steps))


def rows_at(x: np.ndarray, starts: Starts, k: int) -> np.ndarray:
    """The rows `[B, ...]` of x `[E, T, ...]`, k steps after the starts."""
    return x[starts.episode, starts.step + k]


def rows_at_steps(x: np.ndarray, starts: Starts, steps: tuple[int, ...]) -> np.ndarray:
    """The rows `[B, S, ...]` of x `[E, T, ...]`, so many steps after the starts."""
    return x[starts.episode[:, None], starts.step[:, None] + np.array(steps, int)[None]]


def score(
    training: Data, held_out: Data, forecaster: Forecaster, is_count: np.ndarray, ahead: int
) -> Scores:
    """Scores a model on the held-out data, in channels that are counts, bool `[n]`, or numbers.

    R² is that of `episodes.r2`, all episodes together: what is missing is not scored, and no
    channel where it is constant. Coverage is the mean of `coverage_of`. The gain compares with a
    model that knows the mean and the variance of each channel in the training data: numbers that
    were constant there have no variance, and do not count.

    Raises ValueError if no start is scored, or forecasts have other shapes than expected.
    """
    starts, channels = starts_of(held_out, ahead), held_out.y.shape[-1]
    if not len(starts.step):
        raise ValueError(
            f"no held-out episode is longer than {SKIPPED + ahead} steps: there is no forecast to "
            "be scored; hold out longer episodes"
        )
    mean, variance = moments_of(training, is_count)
    has_unit = _varies(training)
    reference, sums = partial(predictive.place, is_count, mean, variance), None
    for block, count in blocks(starts, channels * (ahead + 1)):
        forecasts = Forecasts(*(np.asarray(x)[:count] for x in forecaster(block)))
        _refuse_shapes(forecasts, count, ahead, channels)
        block = Starts(*(x[:count] for x in block))
        block_sums = _sums(held_out, block, forecasts, reference, is_count | has_unit, ahead)
        sums = block_sums if sums is None else Sums(*map(np.add, sums, block_sums))
    assert sums is not None
    total, changes = _spread(held_out, starts, ahead)
    ratio = lambda a, b: np.where(b > 0, a / np.maximum(b, 1), np.nan)
    r2 = np.where(changes, 1 - sums.error / np.where(changes, total, 1), 0).sum(-1)
    gain = float(ratio(sums.gain, sums.values))
    # A channel that was constant in the training data has no unit.
    in_units = lambda squares: np.where(changes & has_unit, squares / variance, 0).sum(-1)
    spread, error = in_units(total), in_units(sums.error)
    weights = Weights(len(starts.step), spread, error, sums.observed, float(sums.values))
    return Scores(ratio(r2, changes.sum(-1)), ratio(sums.inside, sums.observed), gain, weights)


class Sums(NamedTuple):
    """Sums of scores over starts; only observed values count."""

    error: np.ndarray  # [K + 1, n] squares
    inside: np.ndarray  # [S] in their intervals
    observed: np.ndarray  # [S] number
    gain: np.ndarray  # scalar, nats one step ahead
    values: np.ndarray  # scalar, their number


def _sums(
    data: Data,
    starts: Starts,
    forecasts: Forecasts,
    reference: Callable[[np.ndarray], predictive.Place],
    has_gain: np.ndarray,
    ahead: int,
) -> Sums:
    """The sums of one block, step by step, which needs little memory.

    `has_gain`, bool `[n]`: the channels that can be compared with the `reference`.
    """
    error = []
    for k in range(ahead + 1):
        residuals = rows_at(data.y, starts, k) - forecasts.mean[:, k].astype(float)
        error.append(np.sum(np.where(rows_at(data.observed, starts, k), residuals, 0) ** 2, axis=0))
    steps = interval_steps(ahead)
    observed = rows_at_steps(data.observed, starts, steps)
    inside = np.where(observed, coverage_of(forecasts.below, forecasts.at_most), 0)
    next_step = min(ahead, 1)
    has_next = rows_at(data.observed, starts, next_step) & has_gain & (next_step == 1)
    extra_nats = (
        forecasts.log_likelihood - reference(rows_at(data.y, starts, next_step)).log_likelihood
    )
    gain = np.sum(np.where(has_next, extra_nats, 0), dtype=float)
    return Sums(np.stack(error), inside.sum((0, 2)), observed.sum((0, 2)), gain, has_next.sum())


def blocks(starts: Starts, values: int) -> Iterator[tuple[Starts, int]]:
    """Cuts starts into blocks of one size, each start with so many values to forecast.

    The last start fills up the last block: programs are compiled once. Yields each block and how
    many of its starts count.
    """
    total = len(starts.step)
    size = min(total, max(1, BLOCK_VALUES // values))
    for begin in range(0, total, size):
        place = np.minimum(np.arange(begin, begin + size), total - 1)
        yield Starts(*(x[place] for x in starts)), min(size, total - begin)


def coverage_of(below: np.ndarray, at_most: np.ndarray) -> np.ndarray:
    """The share of each observation that lies in its central 90 % interval, elementwise.

    No interval of whole numbers holds just 90 %: that from the 5 % to the 95 % quantile of rare
    counts holds nearly all. So a count y stands for all numbers from P(Y < y) to P(Y ≤ y), of which
    the share between 5 % and 95 % is covered: the mean of randomised intervals (Czado, Gneiting &
    Held 2009), without the randomness. A model that is true has a mean of 90 %, of counts, too.
    """
    inside = np.minimum(at_most, 1 - TAIL) - np.maximum(below, TAIL)
    width = at_most - below
    share = np.clip(inside, 0, None) / np.where(width > 0, width, 1)
    middle = (below >= TAIL) & (below <= 1 - TAIL)
    return np.where(width > 0, share, middle)


def moments_of(training: Data, is_count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the variance `[n]` of each channel in the training data, all that a model knows
    with which others are compared.

    Normal, of counts negative binomial: that counts vary more than Poisson ones is no merit of
    dynamics. Half a count is added to the sum of each channel, so that none is impossible.
    """
    number = np.maximum(training.observed.sum((0, 1)), 1)
    sums = training.y.sum((0, 1), dtype=float)  # 0 where missing
    mean = np.where(is_count, (sums + 0.5) / number, sums / number)
    squares = np.zeros_like(mean)
    for y, observed in zip(training.y, training.observed, strict=True):  # all would be gigabytes
        squares += np.where(observed, (y - mean) ** 2, 0).sum(0)
    return mean, np.where(squares > 0, squares / number, CONSTANT)


def _spread(data: Data, starts: Starts, ahead: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squares `[K + 1, n]` of the truths k steps ahead around their means, and bool
    `[K + 1, n]`, which channels change there.
    """
    rows = []
    for k in range(ahead + 1):
        y, observed = rows_at(data.y, starts, k).astype(float), rows_at(data.observed, starts, k)
        mean = np.where(observed, y, 0).sum(0) / np.maximum(observed.sum(0), 1)
        total = np.where(observed, (y - mean) ** 2, 0).sum(0)
        low = np.where(observed, y, np.inf).min(0)
        high = np.where(observed, y, -np.inf).max(0)
        rows.append((total, high > low))
    total, changes = (np.stack(x) for x in zip(*rows, strict=True))
    return total, changes


def _varies(data: Data) -> np.ndarray:
    """Which channels have two values in these data, bool `[n]`."""
    low = np.full(data.y.shape[-1], np.inf)
    high = -low
    for y, observed in zip(data.y, data.observed, strict=True):  # all would be gigabytes
        low = np.minimum(low, np.where(observed, y, np.inf).min(0))
        high = np.maximum(high, np.where(observed, y, -np.inf).max(0))
    return high > low


def _refuse_shapes(forecasts: Forecasts, count: int, ahead: int, channels: int) -> None:
    rows = {"mean": ahead + 1, "below": len(interval_steps(ahead)), "log_likelihood": None}
    rows["at_most"] = rows["below"]
    for name, number in rows.items():
        shape = getattr(forecasts, name).shape
        expected = (count, channels) if number is None else (count, number, channels)
        if shape != expected:
            raise ValueError(
                f"{name} of the forecasts has shape {shape}, expected {expected}: "
                "give one row for each start"
            )
