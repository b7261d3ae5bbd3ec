"""Times of the rows of a recording, and of a step: what arrays are called that hold them.

Axes: T rows, of which some may be missing, n channels, m inputs.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from train.vector_field.data.files.content import listing, rows_on_grid, spread_rows

TIMES = re.compile(r"(.*\.)?(t|times?|timestamps?)", re.I)
STEP, RATES = "dt", ("fs", "sampling_rate")


def time_name(name: str, present: Collection[str]) -> str:
    """The array of times: `name`, or else the first of a usual name; empty if there is none.

    Raises ValueError for a `name` that is not there.
    """
    if name and name not in present:
        raise ValueError(f"there is no {name}; there are {listing(list(present))}")
    return name or next(iter(x for x in present if TIMES.fullmatch(x)), "")


def with_times(
    arrays: dict[str, np.ndarray], name: str, times: np.ndarray
) -> tuple[dict[str, np.ndarray], float, str]:
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


def step_of(variables: Mapping[str, Any]) -> float | None:
    """The time of a step by `dt`, or by a sampling rate `fs`; None if there is neither."""
    for name, variable in variables.items():
        last = name.split(".")[-1].lower()
        if last in (STEP, *RATES) and not isinstance(variable, list):
            is_number = variable.size == 1 and variable.dtype.kind in "iufb"
            if not is_number or not 0 < variable.item() < np.inf:
                raise ValueError(f"{name} is {variable.ravel()[:3]}; expected one number above 0")
            number = float(variable.item())
            return number if last == STEP else 1 / number
    return None
