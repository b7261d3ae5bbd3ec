"""The arrays of a recording, as an npz file has them, made of rows or spikes with their times.

Axes: T steps, n channels, m inputs, S spikes, E episodes, R rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from train.host.files.array_files import MAX_BYTES
from train.vector_field.data.files.held_inputs import Series, hold
from train.vector_field.data.spike_times import bins_before

JITTER = 0.3
"""By how much of a step the time between two rows may differ from whole steps."""
OFF_GRID = 0.2
"""By how much of a step the time of each row may differ from that on an even grid, otherwise.

By what their digits round off it may in any case.
"""
DIGITS = 6
"""Digits behind the point at most by which times can be told to be rounded."""
SILENT = 0.4
"""Share of a trial without a spike at its start that is more than chance."""


class Content(NamedTuple):
    """What a file holds."""

    arrays: dict[str, np.ndarray]  # y or spike_times, u, lengths and the like, as in an npz file
    step: float | None  # time of a step; None: not known, or that of the bins of spikes
    unit: str  # of time; empty if not known
    about: str  # what was read, in one line
    channels: tuple[str, ...] = ()  # names of units, or of the columns of y; empty if not known
    inputs: tuple[str, ...] = ()  # names of the columns of u
    only_numbers_rows: bool = False  # whether the step is 1 by times alone, of no known unit


def rows_on_grid(name: str, times: np.ndarray) -> tuple[np.ndarray, float | None]:
    """The step `[R]`, from 0 on, of rows at these times, and the time of a step.

    One row does not tell how long a step is: None. Where rows are missing steps are left out.
    Raises ValueError for times that go back or stand still, and for uneven ones.
    """
    if not np.isfinite(times).all():
        raise ValueError(
            f"{name} has {int((~np.isfinite(times)).sum())} values that are not finite"
        )
    differences = np.diff(times)
    if not len(differences):
        return np.zeros(len(times), int), None
    if (differences <= 0).any():
        row = int(np.argmax(differences <= 0))
        raise ValueError(
            f"{name} does not rise at row {row + 1} (counted from 0), from {times[row]:.10g} to "
            f"{times[row + 1]:.10g}: sort the rows, or give a file or a trial for each session"
        )
    step = float(np.median(differences))
    steps = np.maximum(np.round(differences / step), 1)
    uneven = np.abs(differences / step - steps) > JITTER
    if uneven.any() and (rounded := _steps_of_rounded(times, step)) is not None:
        steps = rounded
    elif uneven.any():
        row = int(np.argmax(uneven))
        raise ValueError(
            f"{name} has uneven steps, {differences[row]:.6g} before row {row + 1} (counted from "
            f"0) where most are {step:.6g}: interpolate to even ones"
        )
    # The mean over all is more exact than one difference of rounded times.
    return np.concatenate([[0], np.cumsum(steps)]).astype(int), float(
        np.sum(differences) / steps.sum()
    )


def _steps_of_rounded(times: np.ndarray, step: float) -> np.ndarray | None:
    """Whole steps between times `[R]` that are even but for rounding, as 0, 0.03, 0.07, 0.1 are.

    None if they are not. The `step` is a difference of rounded times, such as 0.03.
    """
    differences = np.diff(times)
    single = differences[differences < 1.5 * step]
    steps = np.maximum(np.round(differences / single.mean()), 1)
    if steps.max() > len(single):  # the steps in so long a gap cannot be told from these few
        return None
    places, since = np.concatenate([[0], np.cumsum(steps)]), times - times[0]
    slope, offset = np.polyfit(places, since, 1)
    slack = max(OFF_GRID * slope, min(0.51 * _last_digit(times), JITTER * slope))
    is_even = (np.abs(since - offset - slope * places) <= slack).all()
    return steps if is_even else None


def _last_digit(times: np.ndarray) -> float:
    """What the last digit of times stands for, 0.01 if they are rounded so; 0 if not rounded."""
    for digits in range(DIGITS + 1):
        if np.allclose(times, np.round(times, digits), rtol=0, atol=1e-9):
            return 10.0**-digits
    return 0.0


def spread_rows(places: np.ndarray, values: np.ndarray, fill: float) -> np.ndarray:
    """`[T, k]` with the rows of `values` `[R, k]` at their places, and `fill` between them."""
    if (int(places[-1]) + 1) * values.shape[1] * 8 > MAX_BYTES:
        raise ValueError(f"the times span {int(places[-1]) + 1:,} steps, too many: cut the file up")
    spread = np.full((int(places[-1]) + 1, values.shape[1]), fill)
    spread[places] = values
    return spread


def spikes_content(
    times: np.ndarray,
    units: np.ndarray,
    num_units: int,
    inputs: Sequence[Series],
    bin_width: float,
    trials: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Arrays of spikes `[S]`, with inputs in the bins up to the last spike or input; zeros if none.

    Trials are episodes `[S]` from 0 on, with times of their own, and have no inputs.
    """
    if not 0 < bin_width < np.inf:
        raise ValueError(f"bin_width is {bin_width}; expected a finite time above 0")
    if not len(times):
        raise ValueError("there are no spikes")
    if bad := int(np.sum(~(times >= 0) | np.isinf(times))):
        raise ValueError(f"{bad} spikes have no finite time from 0 on: leave them out")
    arrays = {"spike_times": times, "spike_units": units, "num_units": np.array(num_units)}
    if trials is None:
        trials = np.zeros(len(times), int)
    last = np.zeros(int(trials.max()) + 1)
    np.maximum.at(last, trials, times)
    last = np.maximum(last, max((x.times.max(initial=0) for x in inputs), default=0))
    bins = bins_before(last, bin_width).astype(int) + 1
    if len(bins) > 1:
        arrays |= {"spike_episodes": trials, "lengths": bins}
    shape = len(bins), int(bins.max())
    if shape[0] * shape[1] * 8 > MAX_BYTES:
        raise ValueError(f"{shape[1]:,} bins of {bin_width:g} are too many: larger --env.bin-width")
    u = np.zeros((*shape, 1))
    if inputs:
        u = hold(inputs, bin_width * np.arange(shape[1] + 1))[None]
    return arrays | {"u": u if len(bins) > 1 else u[0]}


def late_trial(times: np.ndarray, trials: np.ndarray) -> tuple[int, float] | None:
    """The trial whose first spike is the latest, and its time; None where times begin anew.

    They do not where each trial of spikes `[S]` begins after the one before has ended, and that one
    with much silence.
    """
    count = int(trials.max(initial=0)) + 1
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, trials, times)
    np.maximum.at(last, trials, times)
    late = int(first.argmax())
    goes_on = count > 1 and bool((first[1:] >= last[:-1]).all())
    return (late, float(first[late])) if goes_on and first[late] > SILENT * last[late] else None


def join(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays `[T, ...]` side by side, `[T, k]`. Raises ValueError for other numbers of rows."""
    columns = [x[:, None] if x.ndim == 1 else x for x in arrays]
    if len({len(x) for x in columns}) > 1 or any(x.ndim != 2 for x in columns):
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ValueError(f"arrays of shapes {shapes} cannot stand side by side: expected [T, ...]")
    return np.concatenate(columns, axis=1)
