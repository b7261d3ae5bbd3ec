"""Tables whose columns are channels and inputs, a row for each step."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from train.host.numbers import listing, quantity
from train.vector_field.data.files.content import Content, rows_on_grid, spread_rows
from train.vector_field.data.files.tables.row_numbers import missing_rows, numbers_rows
from train.vector_field.data.files.time_units import time_unit_of, without_unit


def content(
    numbers: Mapping[str, np.ndarray],
    y_names: Sequence[str],
    u_names: Sequence[str],
    episodes: np.ndarray,
    named: tuple[str, str],
    trial_text: str,
) -> Content:
    """The content of a table of channels `y_names` and inputs `u_names`.

    `numbers` has a column `[R]` for each name; `episodes [R]` the trial of each row, from 0;
    `named` are the columns of times and trials, each empty if there is none. Raises ValueError, in
    one line, for times of no even grid, and without times for rows of one trial that are apart.
    """
    time = named[0]
    y, u = (
        np.stack([numbers[x] for x in names], axis=1) if names else np.zeros((len(episodes), 1))
        for names in (y_names, u_names)
    )
    rows = _rows_in_time(y, u, episodes, named, numbers)
    inputs = f"u: {listing(u_names)}" if u_names else "no inputs (--names.u COLUMN names them)"
    about = f"{_about_rows(rows, len(episodes), time)}{trial_text}; y: {listing(y_names)}; {inputs}"
    several = {"lengths": rows.lengths} if len(rows.lengths) > 1 else {}
    unit = time_unit_of(time) if rows.step else ""
    return Content(
        {"y": rows.y, "u": rows.u, **several},
        rows.step,
        unit,
        about,
        tuple(y_names),
        tuple(u_names),
        rows.step == 1 and not unit,
    )


def row_counters(
    numbers: Mapping[str, np.ndarray], names: Sequence[str], episodes: np.ndarray
) -> dict[str, int]:
    """Tells the columns of `names` that number the rows, and how many are missing by each."""
    return {
        x: missing_rows(numbers[x], episodes)
        for x in names
        if numbers_rows(without_unit(x), numbers[x], episodes)
    }


class _Rows(NamedTuple):
    """Observations and inputs with a row for each step, also for those that a table leaves out."""

    y: np.ndarray  # [T, n]; NaN where the table has no row
    u: np.ndarray  # [T, m]; there the last input before
    lengths: np.ndarray  # [E]; steps of each episode, T together
    step: float | None  # the time of one, where a column of times tells it


def _rows_in_time(
    y: np.ndarray,
    u: np.ndarray,
    episodes: np.ndarray,
    named: tuple[str, str],
    numbers: Mapping[str, np.ndarray],
) -> _Rows:
    """The rows `y [R, n]`, `u [R, m]` at their steps, by the columns of times and trials."""
    time, trials = named
    if time:
        by_episode = np.argsort(episodes, kind="stable")
        parts = np.split(by_episode, np.cumsum(np.bincount(episodes))[:-1])
        places, step = _places_of_trials(time, numbers[time], parts)
        trials_of = list(zip(places, parts, strict=True))
        return _Rows(
            np.concatenate([spread_rows(place, y[part], np.nan) for place, part in trials_of]),
            np.concatenate([_held_rows(place, u[part]) for place, part in trials_of]),
            np.array([int(place[-1]) + 1 for place in places]),
            step,
        )
    if (np.diff(episodes) < 0).any():
        raise ValueError(f"rows of one trial in {trials} are not together: sort them")
    return _Rows(y, u, np.bincount(episodes), None)


def _about_rows(rows: _Rows, count: int, time: str) -> str:
    """What is said of the `count` rows of a table and of its column of times."""
    gaps = int(rows.lengths.sum()) - count
    return (
        f"CSV, {quantity(count, 'rows')}"
        + (f" {rows.step:.6g} apart by {time}" if rows.step else f" at {time}" * bool(time))
        + ", no column of times" * (not time)
        + (f", {gaps:,} missing between them" if gaps else "")
    )


def _places_of_trials(
    time: str, times: np.ndarray, trials: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], float | None]:
    """The steps of the rows of each trial, and the time of a step; `trials` choose rows `[R]`.

    A trial of one row does not tell how far its rows are apart; None if all are like that.
    """
    places, steps = zip(
        *(
            rows_on_grid(f"{time} of episode {k}" if len(trials) > 1 else time, times[rows])
            for k, rows in enumerate(trials)
        ),
        strict=True,
    )
    steps = [step for step in steps if step is not None]
    if not steps:
        return list(places), None
    if max(steps) > 1.01 * min(steps):
        raise ValueError(
            f"the rows of trials are {min(steps):.6g} to {max(steps):.6g} apart in {time}: "
            "expected one time of a step"
        )
    return list(places), float(np.median(steps))


def _held_rows(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Inputs `[T, m]`: between rows the last one."""
    steps = np.arange(int(places[-1]) + 1)
    return values[np.searchsorted(places, steps, side="right") - 1]
