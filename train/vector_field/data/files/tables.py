"""CSV files: spikes as rows of unit and time, or channels as columns, with a first line of names.

Columns are separated by commas, semicolons, tabs or spaces; an empty cell is missing.
"""

import re
from collections.abc import Sequence

import numpy as np

from train.host.numbers import listing, quantity
from train.vector_field.data.files.content import (
    Content,
    late_trial,
    rows_on_grid,
    spikes_content,
    spread_rows,
)
from train.vector_field.data.files.held_inputs import Series, refuse_unordered, time_mismatch
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.row_numbers import missing_rows, numbers_rows
from train.vector_field.data.files.text_cells import cells_of, in_order, numbers_of
from train.vector_field.data.files.time_units import ALONE, in_unit, time_unit_of, without_unit

TIMES = re.compile(rf"(spike_?|frame_?)?(t|times?|timestamps?|{ALONE.pattern})")
UNITS = re.compile(
    r"(spike_?)?(units?|neurons?|cells?|clusters?|unit_?ids?|(neuron|cell|cluster)_?id)"
)
TRIALS = re.compile(r"(spike_?)?(trials?|episodes?|epochs?|sweeps?)(_?(id|index|number))?")
INPUTS = re.compile(r"(u|inputs?|stim|stimulus|stimuli|light|laser|opto|current)_?\d*")


def read(path: str, names: Names, bin_width: float, inputs: Series | None = None) -> Content:
    """The content of a file. Raises ValueError, in one line, for what it cannot be."""
    header, rows = cells_of(path)
    time = _pick("time", names.time, header, TIMES)
    units = _pick("units", names.units, header, UNITS)
    trials = _pick("trials", names.trials, header, TRIALS)
    others = [x for x in header if x not in (time, units, trials)]
    may_be_spikes = bool(time and units) and not names.y
    columns = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    episodes = np.zeros(len(rows), int)
    if trials:
        labels = columns[trials]
        episodes = np.array([list(dict.fromkeys(labels)).index(x) for x in labels])
    trial_text = f", {episodes.max() + 1} trials by {trials}" if trials else ""
    named = time, trials
    if may_be_spikes and (not others or names.units):
        content = _spikes(columns, units, episodes, named, inputs, bin_width, trial_text)
        left_out = f"; left out: {listing(others)}" if others else ""
        return content._replace(about=content.about + left_out)
    try:
        return _continuous(names, header, columns, episodes, named, inputs, trial_text)
    except ValueError as error:
        if not may_be_spikes:
            raise
        raise ValueError(
            f"its columns {units} and {time} are those of spikes, but there are others, "
            f"{listing(others)}: leave these out, as --names.units {units} does; as channels it "
            f"cannot be read, {error}"
        ) from None


def _spikes(
    columns: dict[str, list[str]],
    units: str,
    episodes: np.ndarray,
    named: tuple[str, str],
    inputs: Series | None,
    bin_width: float,
    trial_text: str,
) -> Content:
    (time, trials), labels = named, columns[units]
    if trials and inputs:
        raise ValueError(
            "its trials begin at time 0 each: leave out --inputs, or give an npz file with u of "
            "each trial"
        )
    if unnamed := labels.count(""):
        raise ValueError(
            f"{quantity(unnamed, 'spikes')} without a unit in column {units}: leave them out"
        )
    order = in_order(labels)
    index = {label: k for k, label in enumerate(order)}
    numbers, unit = numbers_of(time, columns[time]), time_unit_of(time)
    spike_units = np.array([index[x] for x in labels])
    series = [in_unit(inputs, unit)] if inputs else []
    arrays = spikes_content(
        numbers, spike_units, len(order), series, bin_width, episodes if trials else None
    )
    if note := time_mismatch(series, 0, numbers.max() + bin_width):
        raise ValueError(f"{note}, or leave out --inputs")
    about = (
        f"CSV, {len(labels):,} spikes of {len(order)} units ({units}: {listing(order)}) at times "
        f"in {time}{trial_text}{'' if inputs else ', without inputs'}"
    )
    if late := late_trial(numbers, episodes):
        name = list(dict.fromkeys(columns[trials]))[late[0]]
        about += (
            f"; trial {name} begins with {late[1]:.6g} without any spike, as times go on from "
            "trial to trial: subtract from them the start of their trial"
        )
    return Content(arrays, None, unit, about, order, inputs.names if inputs else ())


def _continuous(
    names: Names,
    header: Sequence[str],
    columns: dict[str, list[str]],
    episodes: np.ndarray,
    named: tuple[str, str],
    inputs: Series | None,
    trial_text: str,
) -> Content:
    time, trials = named
    y_names, u_names = _channels_and_inputs(names, header, named)
    numbers = {x: numbers_of(x, columns[x]) for x in (*y_names, *u_names)}
    may_count = [] if names.y else y_names
    counters = [x for x in may_count if numbers_rows(without_unit(x), numbers[x], episodes)]
    y_names = [x for x in y_names if x not in counters]
    if not y_names:
        raise ValueError(f"no column is left for y; there are {listing(header)}: --names.y")
    y, u = (
        np.stack([numbers[x] for x in chosen], axis=1) if chosen else np.zeros((len(episodes), 1))
        for chosen in (y_names, u_names)
    )
    step: float | None = None
    if time:
        parts = [episodes == e for e in range(episodes.max() + 1)]
        places, step = _places_of_trials(time, numbers_of(time, columns[time]), parts)
        trials_of = list(zip(places, parts, strict=True))
        y = np.concatenate([spread_rows(place, y[part], np.nan) for place, part in trials_of])
        u = np.concatenate([_held_rows(place, u[part]) for place, part in trials_of])
        lengths = np.array([int(place[-1]) + 1 for place in places])
    elif (np.diff(episodes) < 0).any():
        raise ValueError(f"rows of one trial in {trials} are not together: sort them")
    else:
        lengths = np.bincount(episodes)
    arrays = {"y": y, "u": u}
    if len(lengths) > 1:
        arrays["lengths"] = lengths
    if inputs is not None:
        raise ValueError(
            'its inputs stand in its own columns: leave out --inputs, or give "" for this file'
        )
    gaps = int(lengths.sum()) - len(episodes)
    about = (
        f"CSV, {quantity(len(episodes), 'rows')}"
        + (f" {step:.6g} apart by {time}" if step else f" at {time}" * bool(time))
        + ", no column of times" * (not time)
        + (f", {gaps:,} missing between them" if gaps else "")
        + f"{trial_text}; y: {listing(y_names)}; "
        + (f"u: {listing(u_names)}" if u_names else "no inputs (--names.u COLUMN names them)")
        + (f"; left out: {listing(counters)}, which numbers the rows" if counters else "")
    )
    counts = {} if time else {x: missing_rows(numbers[x], episodes) for x in counters}
    if lost := [x for x, count in counts.items() if count]:
        about += (
            f"; by {lost[0]} {counts[lost[0]]:,} rows are missing: "
            f"--names.time {lost[0]} makes them missing samples"
        )
    unit = time_unit_of(time) if step else ""
    columns_of = tuple(y_names), tuple(u_names)
    return Content(arrays, step, unit, about, *columns_of, step == 1 and not unit)


def _places_of_trials(
    time: str, times: np.ndarray, trials: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], float | None]:
    """The steps of the rows of each trial, and the time of a step; `trials` choose rows `[R]`.

    A trial of one row does not tell how far its rows are apart; None if all are like that.
    """
    places, steps = zip(*(rows_on_grid(time, times[rows]) for rows in trials), strict=True)
    steps = [step for step in steps if step is not None]
    if not steps:
        return list(places), None
    if max(steps) > 1.01 * min(steps):
        raise ValueError(
            f"the rows of trials are {min(steps):.6g} to {max(steps):.6g} apart in {time}: "
            "expected one time of a step"
        )
    return list(places), float(np.median(steps))


def _channels_and_inputs(
    names: Names, header: Sequence[str], named: tuple[str, str]
) -> tuple[list[str], list[str]]:
    """The columns of y and of u, beside those `named` time and trials."""
    u_names = [_existing("u", x, header) for x in names.u]
    if not names.u:
        u_names = [x for x in header if INPUTS.fullmatch(without_unit(x)) and x not in names.y]
    y_names = [_existing("y", x, header) for x in names.y]
    return y_names or [x for x in header if x not in (*named, *u_names)], u_names


def _held_rows(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Inputs `[T, m]`: between rows the last one."""
    steps = np.arange(int(places[-1]) + 1)
    return values[np.searchsorted(places, steps, side="right") - 1]


def series_of(path: str, names: Names) -> Series:
    """The inputs of a file of their own: a column of times, and the others, held between rows.

    Raises ValueError, in one line, for what cannot be that.
    """
    header, rows = cells_of(path)
    time = _pick("time", names.time, header, TIMES)
    if not time:
        raise ValueError(f"there is no column of times; there are {listing(header)}")
    chosen = [_existing("u", x, header) for x in names.u] or [x for x in header if x != time]
    if not chosen:
        raise ValueError(f"there is no column of inputs beside {time}")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    times = numbers_of(time, columns[time])
    refuse_unordered(time, times)
    values = np.stack([numbers_of(x, columns[x]) for x in chosen], axis=1)
    if not np.isfinite(values).all():
        raise ValueError("inputs are missing at some times: an input must be known")
    return Series(times, values, time_unit_of(time), tuple(chosen))


def _pick(what: str, name: str, header: Sequence[str], usual: re.Pattern[str]) -> str:
    """The column of a name, or the one of a usual name; empty if there is none.

    Raises ValueError if there are several.
    """
    if name:
        return _existing(what, name, header)
    candidates = [x for x in header if usual.fullmatch(without_unit(x))]
    if len(candidates) > 1:
        raise ValueError(f"{listing(candidates)} could all be {what}: choose, --names.{what}")
    return candidates[0] if candidates else ""


def _existing(what: str, name: str, header: Sequence[str]) -> str:
    if name not in header:
        raise ValueError(
            f"there is no column {name} for --names.{what}; there are {listing(header)}"
        )
    return name
