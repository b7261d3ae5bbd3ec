"""The record of a run as series: every number in its rows over time, also those in lists."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from train.host.files import rows as chunk_rows

JoinFunction = Callable[[np.ndarray, np.ndarray], Any]
Row = dict[str, Any]


class Timeline(NamedTuple):
    """The rows of each member, and the steps `[K]` at which any of them has one, in their order."""

    members: Sequence[Sequence[Row]]
    steps: np.ndarray  # float [K]


def split_by_member(rows: Sequence[Row], seeds: Sequence[int]) -> list[list[Row]]:
    """The rows of each seed."""
    return [[row for row in rows if row["seed"] == seed] for seed in seeds]


def names(rows: Sequence[Row]) -> dict[str, str]:
    """All that is measured, and whether of `finished` episodes or by the `agent`."""
    groups: dict[str, str] = {}
    for row in rows:
        groups |= {name: group for group in ("finished", "agent") for name in row[group]}
    return groups


def timeline(members: Sequence[Sequence[Row]]) -> Timeline:
    """The rows of each member on one line of time."""
    steps = np.unique([row["steps"] for rows in members for row in rows]).astype(float)
    return Timeline(members, steps)


def parts(line: Timeline, group: str, name: str) -> list[list[np.ndarray]]:
    """A number has one part, lists of P numbers have P of them: each is `[K]` by member.

    It is at the K steps of the line, NaN where nothing is known, as of lost rows. A short chunk is
    taken together with the one before it.
    """
    values = [[flatten(row[group].get(name)) for row in rows] for rows in line.members]
    size = max((len(x) for rows in values for x in rows), default=0)
    or_nan = lambda x: np.nan if x is None else x
    of_part = lambda rows, k: np.array([or_nan(x[k]) if x else np.nan for x in rows], float)
    join = join_function(group, name)
    return [
        [
            at_steps(line.steps, member_rows, merge_short_chunks(member_rows, of_part(x, k), join))
            for member_rows, x in zip(line.members, values, strict=True)
        ]
        for k in range(size)
    ]


def at_steps(times: np.ndarray, rows: Sequence[Row], values: np.ndarray) -> np.ndarray:
    """`values` `[R]` of R rows at their `times` `[K]`, and NaN at others."""
    spread = np.full(len(times), np.nan)
    spread[np.searchsorted(times, [row["steps"] for row in rows])] = values
    return spread


def join_function(group: str, name: str) -> JoinFunction | None:
    """What two chunks together have of a measure, `(values [2], lengths [2]) -> value`.

    None for means over updates, as few updates have no other mean than many. Few episodes may.
    """
    if group == "finished":
        return lambda values, lengths: np.average(values, weights=lengths)
    extreme = chunk_rows.EXTREMES.get(name.rpartition("_")[2])
    return extreme and (lambda values, lengths: extreme(values))


def merge_short_chunks(
    rows: Sequence[Row], values: np.ndarray, join: JoinFunction | None
) -> np.ndarray:
    """`values` `[K]` of the chunks of K rows in their order, as they are drawn.

    A chunk shorter than the next and below half of the one before, as the last may be, has too few
    episodes, or updates for an extreme: its value is that of both.
    """
    if join is None:
        return values
    lengths = np.diff([row["steps"] for row in rows], prepend=0)
    is_short = (lengths[1:] < lengths[:-1] / 2) & (lengths[1:] < np.append(lengths[2:], np.inf))
    merged = values.copy()
    for k in np.flatnonzero(is_short):
        pair = slice(k, k + 2)
        finite = np.isfinite(values[pair])
        if finite.any():
            merged[k + 1] = join(values[pair][finite], lengths[pair][finite])
    return merged


def flatten(value: Any) -> list[float | None]:
    """The numbers of a number or of nested lists, in order; empty for none."""
    if isinstance(value, list):
        return [number for x in value for number in flatten(x) or [None]]
    return [] if value is None else [value]
