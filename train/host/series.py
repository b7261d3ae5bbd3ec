"""The record of a run as series: every number in its rows over time, also those in lists."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]


def by_member(rows: Sequence[Row], seeds: Sequence[int]) -> list[list[Row]]:
    """The rows of each seed."""
    return [[row for row in rows if row["seed"] == seed] for seed in seeds]


def names(rows: Sequence[Row]) -> dict[str, str]:
    """All that is measured, and whether of `finished` episodes or by the `agent`."""
    found: dict[str, str] = {}
    for row in rows:
        found |= {name: group for group in ("finished", "agent") for name in row[group]}
    return found


def parts(members: Sequence[Sequence[Row]], group: str, name: str) -> list[list[np.ndarray]]:
    """A number has one part, lists of K numbers have K of them: each is `[K rows]` by member.

    NaN where nothing is known.
    """
    found = [[flat(row[group].get(name)) for row in rows] for rows in members]
    size = max((len(x) for rows in found for x in rows), default=0)
    known = lambda x: np.nan if x is None else x
    return [
        [np.array([known(x[k]) if x else np.nan for x in rows], float) for rows in found]
        for k in range(size)
    ]


def flat(value: Any) -> list[float | None]:
    """The numbers of a number or of nested lists, in order; empty for none."""
    if isinstance(value, list):
        return [number for x in value for number in flat(x) or [None]]
    return [] if value is None else [value]
