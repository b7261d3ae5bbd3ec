"""Times of the rows of a recording, and of a step: what arrays are called that hold them.

Axes: T rows, of which some may be missing, n channels, m inputs.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from train.host.numbers import listing
from train.vector_field.data.files.content import rows_on_grid, spread_rows

TIMES = re.compile(r"(.*\.)?(t|times?|timestamps?)", re.I)
STEP, RATES = "dt", ("fs", "sampling_rate")
ROUNDING = 1e-3
"""By how much of a step two times of it may differ: those of rows are rounded, too."""


def time_name(name: str, present: Collection[str]) -> str:
    """The array of times: `name`, or else the first of a usual name; empty if there is none.

    Raises ValueError for a `name` that is not there.
    """
    if name and name not in present:
        raise ValueError(f"there is no {name}; there are {listing(list(present))}")
    return name or next(iter(x for x in present if TIMES.fullmatch(x)), "")


def with_times(
    arrays: dict[str, np.ndarray], name: str, times: np.ndarray
) -> tuple[dict[str, np.ndarray], float | None, str]:
    """The arrays with a row for each step, the time of a step, and a note on both.

    Rows of y `[T, n]` that are missing are NaN, and those of u `[T, m]` are the last input.
    """
    places, step = rows_on_grid(name, times.astype(float))
    missing = int(places[-1]) + 1 - len(times)
    if not missing:
        return arrays, step, f"times from {name}"
    rows = np.searchsorted(places, np.arange(places[-1] + 1), "right") - 1
    y = spread_rows(places, arrays["y"].astype(float), np.nan)
    note = f"times from {name}, {missing:,} steps missing"
    return arrays | {"y": y, "u": arrays["u"][rows]}, step, note


def steps_of(
    variables: Mapping[str, Any], usual: Collection[str] = (STEP, *RATES)
) -> list[tuple[str, float]]:
    """The time of a step by each `dt`, or sampling rate `fs`, with its name.

    Raises ValueError for what is no such number.
    """
    steps = []
    for name, variable in variables.items():
        last = name.split(".")[-1].lower()
        if last in usual and not isinstance(variable, list):
            is_number = variable.size == 1 and variable.dtype.kind in "iufb"
            if not is_number or not 0 < variable.item() < np.inf:
                raise ValueError(f"{name} is {variable.ravel()[:3]}; expected one number above 0")
            number = float(variable.item())
            steps.append((name, number if last == STEP else 1 / number))
    return steps


def step_by_rows(name: str, step: float | None, is_known: bool) -> list[tuple[str, float]]:
    """The time of a step by the rows' times, with their name.

    Nothing where they do not tell it, and where it `is_known` otherwise and they only number the
    rows.
    """
    return [] if step is None or (is_known and step == 1) else [(name, step)]


def agreed_step(steps: Sequence[tuple[str, float]]) -> float | None:
    """The time of a step that all say, by name; None if nobody does.

    Raises ValueError where two contradict each other.
    """
    for name, step in steps[1:]:
        first, other = steps[0]
        if not are_close(other, step):
            raise ValueError(
                f"a step lasts {other:.6g} by {first} and {step:.6g} by {name}: leave one of them "
                "out, or give both in one unit of time"
            )
    return steps[0][1] if steps else None


def are_close(first: float, second: float) -> bool:
    """Whether two times of a step are the same but for rounding."""
    return abs(first - second) <= ROUNDING * min(first, second)
