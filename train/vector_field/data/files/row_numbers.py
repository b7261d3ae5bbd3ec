"""Columns of a table that number its rows, as frames do, and are no channels.

Axes: R rows.
"""

import re

import numpy as np

NAMES = re.compile(r"(frames?|index|idx|rows?)(_?(number|index|id|nr|no))?")
FEWEST = 10
"""Rows from which on a column of any name that rises by one in each is no chance."""


def numbers_rows(name: str, numbers: np.ndarray, episodes: np.ndarray) -> bool:
    """Whether a column `[R]` of this plain name only counts the rows of each episode `[R]`.

    One that is called so may leave some out.
    """
    rises = np.diff(numbers)[np.diff(episodes) == 0]
    if NAMES.fullmatch(name):
        return bool(len(rises) and (rises > 0).all() and (rises % 1 == 0).all())
    return len(numbers) >= FEWEST and bool((rises == 1).all())


def missing_rows(numbers: np.ndarray, episodes: np.ndarray) -> int:
    """How many rows of each episode `[R]` such a column `[R]` leaves out, by its usual rise."""
    rises = np.diff(numbers)[np.diff(episodes) == 0]
    return int(np.sum(np.round(rises / np.median(rises)) - 1)) if len(rises) else 0
