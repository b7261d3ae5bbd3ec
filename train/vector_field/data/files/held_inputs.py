"""Inputs that have times of their own, in the steps of what was observed.

Axes: T steps, m inputs, R rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SLACK = 1e-9
"""Of a step: a row so close to the edge of one is on it."""


class Series(NamedTuple):
    """Rows with their times, which do not go back; each holds until the next."""

    times: np.ndarray  # [R]
    values: np.ndarray  # [R, k]
    unit: str = ""  # of time; empty if not known
    names: tuple[str, ...] = ()  # [k] of the values; empty if not known


def refuse_unordered(name: str, times: np.ndarray) -> None:
    """Raises ValueError for times of inputs that are missing or go back."""
    if bad := int(np.sum(~np.isfinite(times))):
        raise ValueError(f"{name} has {bad} times that are not finite: give each row its time")
    if (np.diff(times) < 0).any():
        row = int(np.argmax(np.diff(times) < 0))
        raise ValueError(
            f"{name} goes back at row {row + 1} (counted from 0), from {times[row]:.10g} to "
            f"{times[row + 1]:.10g}: sort the rows"
        )


def time_mismatch(inputs: Sequence[Series], start: float, end: float) -> str:
    """How inputs can have no effect on what was observed in this time; empty where they may."""
    times = np.concatenate([np.zeros(0), *(x.times for x in inputs)])
    if not len(times):
        return ""
    is_inside = bool(((times >= start) & (times < end)).any())
    sizes = [x._replace(values=np.abs(x.values)) for x in inputs]
    acts = hold(sizes, np.array([start, end])).any() or not any(x.values.any() for x in inputs)
    if is_inside and acts:
        return ""
    what = "no input but 0" if is_inside else "no row of inputs"
    return (
        f"{what} is between {start:.6g} and {end:.6g}, when all was observed, and their rows are "
        f"at {times.min():.6g} to {times.max():.6g}: give both in one unit of time, from one start"
    )


def hold(inputs: Sequence[Series], edges: np.ndarray) -> np.ndarray:
    """The inputs `[T, m]` between T + 1 edges of time: the mean over time of what is held.

    0 before the first row of each.
    """
    return np.concatenate([_hold(x, edges) for x in inputs], axis=1)


def _hold(series: Series, edges: np.ndarray) -> np.ndarray:
    times = _on_edges(series.times, edges)
    # Within a piece, from one row or edge to the next, nothing changes.
    pieces = np.union1d(edges, times[(times > edges[0]) & (times < edges[-1])])
    first = np.searchsorted(pieces, edges)  # piece of each step
    share = np.diff(pieces) / np.repeat(np.diff(edges), np.diff(first))
    values = np.concatenate([np.zeros((1, series.values.shape[1])), series.values])
    held = values[np.searchsorted(times, pieces[:-1], side="right")]
    return np.add.reduceat(held * share[:, None], first[:-1])


def _on_edges(times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The times, on an edge where they are beside it by rounding alone."""
    nearest = edges[np.searchsorted((edges[1:] + edges[:-1]) / 2, times)]
    slack = SLACK * np.diff(edges).min() + 4 * np.spacing(np.abs(nearest))
    return np.where(np.abs(times - nearest) <= slack, nearest, times)
