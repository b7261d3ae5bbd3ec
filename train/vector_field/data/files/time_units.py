"""Units of time: those that a column's name tells, and inputs in the unit of what was observed."""

import re

from train.vector_field.data.files.held_inputs import Series

PER_SECOND = {"h": 1 / 3600, "min": 1 / 60, "s": 1, "ms": 1_000, "us": 1_000_000}
NAMES = {
    **{"h": "h", "hr": "h", "hour": "h", "hours": "h"},
    **{"min": "min", "mins": "min", "minute": "min", "minutes": "min"},
    **{"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s"},
    **{"ms": "ms", "msec": "ms", "us": "us", "usec": "us", "\N{MICRO SIGN}s": "us"},
    **{"\N{GREEK SMALL LETTER MU}s": "us"},
}
ALONE = re.compile(r"(hours?|minutes?|seconds?|secs?|ms)")
"""Names of columns of times that are a unit."""
BEHIND = "|".join(x for x in NAMES if x not in ("h", "min"))
"""What is a unit behind a name and `_`, as in `t_ms`; `_min` may be a minimum.

In brackets any may be.
"""


def without_unit(name: str) -> str:
    """A name in small letters, with `_` for spaces, without the unit behind it."""
    bare = re.sub(rf"[\s_]*[\[(].*[\])]$|_({BEHIND})$", "", name.strip().lower())
    return bare.replace(" ", "_")


def time_unit_of(name: str) -> str:
    """The unit of a column of times by its name, such as `time (ms)`, `t_s` or `minutes`.

    Empty if it tells none.
    """
    text = name.strip().lower()
    if ALONE.fullmatch(text):
        return NAMES[text]
    match = re.search(rf"[\[(]\s*(\w+)\s*[\])]$|_({BEHIND})$", text)
    return NAMES.get(match[1] or match[2], "") if match else ""


def in_unit(series: Series, unit: str) -> Series:
    """Inputs with their times in this unit, where both units are known."""
    if not (unit and series.unit):
        return series
    times = series.times * (PER_SECOND[unit] / PER_SECOND[series.unit])
    return series._replace(times=times, unit=unit)
