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
    rises = _rises(numbers, episodes)
    if NAMES.fullmatch(name):
        return bool(len(rises) and (rises > 0).all() and (rises % 1 == 0).all())
    return len(numbers) >= FEWEST and bool((rises == 1).all())


def missing_rows(numbers: np.ndarray, episodes: np.ndarray) -> int:
    """How many rows such a column `[R]` leaves out within `episodes` `[R]`, by its usual rise."""
    rises = _rises(numbers, episodes)
    if not len(rises):
        return 0
    left_out = np.round(rises / np.median(rises)) - 1
    return int(np.sum(np.maximum(left_out, 0)))  # a smaller rise makes up for no other row


def _rises(numbers: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    """By how much a column `[R]` rises from row to row of the same episode `[R]`."""
    return np.diff(numbers)[np.diff(episodes) == 0]
