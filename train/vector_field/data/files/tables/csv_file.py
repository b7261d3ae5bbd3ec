"""CSV files: spikes as rows of unit and time, or channels as columns, with a first line of names.

Columns are separated by commas, semicolons, tabs or spaces; an empty cell is missing.
"""

from collections.abc import Sequence

import numpy as np

from train.host.numbers import listing, quantity
from train.vector_field.data.files.content import Content, late_trial, spikes_content
from train.vector_field.data.files.held_inputs import Series, refuse_unordered, time_mismatch
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.tables import channel_columns
from train.vector_field.data.files.tables.column_names import (
    TIMES,
    TRIALS,
    UNITS,
    channels_and_inputs,
    existing_column,
    pick_column,
)
from train.vector_field.data.files.tables.text_cells import MISSING, cells_of, in_order, numbers_of
from train.vector_field.data.files.time_units import in_unit, time_unit_of


def read(path: str, names: Names, bin_width: float, inputs: Series | None = None) -> Content:
    """The content of a file. Raises ValueError, in one line, for what it cannot be."""
    header, rows = cells_of(path)
    time = pick_column("time", names.time, header, TIMES)
    units = pick_column("units", names.units, header, UNITS)
    trials = pick_column("trials", names.trials, header, TRIALS)
    others = [x for x in header if x not in (time, units, trials)]
    may_be_spikes = bool(time and units) and not names.y
    columns = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    episodes = np.zeros(len(rows), int)
    if trials:
        if unnamed := sum(x.lower() in MISSING for x in columns[trials]):
            raise ValueError(
                f"{quantity(unnamed, 'rows')} without a trial in column {trials}, as between "
                "trials: leave them out"
            )
        episodes = places_by_first_use(columns[trials])
    trial_text = f", {episodes.max() + 1} trials by {trials}" if trials else ""
    named = time, trials
    if may_be_spikes and (not others or names.units):
        content = _spikes(columns, units, episodes, named, inputs, bin_width, trial_text)
        left_out = f"; left out: {listing(others)}" if others else ""
        return content._replace(about=content.about + left_out)
    try:
        return _channels(names, header, columns, episodes, named, inputs, trial_text)
    except ValueError as error:
        if not may_be_spikes:
            raise
        raise ValueError(
            f"its columns {units} and {time} are those of spikes, but there are others, "
            f"{listing(others)}: leave these out, as --names.units {units} does; as channels it "
            f"cannot be read, {error}"
        ) from None


def places_by_first_use(labels: Sequence[str]) -> np.ndarray:
    """The place `[R]` of each label among those that differ, in the order of their first use."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(x, len(places)) for x in labels])


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


def _channels(
    names: Names,
    header: Sequence[str],
    columns: dict[str, list[str]],
    episodes: np.ndarray,
    named: tuple[str, str],
    inputs: Series | None,
    trial_text: str,
) -> Content:
    y_names, u_names = channels_and_inputs(names, header, named)
    numbers = {x: numbers_of(x, columns[x]) for x in (*y_names, *u_names, *filter(None, named[:1]))}
    may_count = [] if names.y else y_names
    counters = channel_columns.row_counters(numbers, may_count, episodes)
    y_names = [x for x in y_names if x not in counters]
    if not y_names:
        raise ValueError(f"no column is left for y; there are {listing(header)}: --names.y")
    content = channel_columns.content(numbers, y_names, u_names, episodes, named, trial_text)
    if inputs is not None:
        raise ValueError(
            'its inputs stand in its own columns: leave out --inputs, or give "" for this file'
        )
    left_out = f"; left out: {listing(list(counters))}, which numbers the rows" if counters else ""
    if lost := [x for x, count in counters.items() if count and not named[0]]:
        left_out += (
            f"; by {lost[0]} {counters[lost[0]]:,} rows are missing: "
            f"--names.time {lost[0]} makes them missing samples"
        )
    return content._replace(about=content.about + left_out)


def series_of(path: str, names: Names) -> Series:
    """The inputs of a file of their own: a column of times, and the others, held between rows.

    Raises ValueError, in one line, for what cannot be that.
    """
    header, rows = cells_of(path)
    time = pick_column("time", names.time, header, TIMES)
    if not time:
        raise ValueError(f"there is no column of times; there are {listing(header)}")
    chosen = [existing_column("u", x, header) for x in names.u] or [x for x in header if x != time]
    if not chosen:
        raise ValueError(f"there is no column of inputs beside {time}")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    times = numbers_of(time, columns[time])
    refuse_unordered(time, times)
    values = np.stack([numbers_of(x, columns[x]) for x in chosen], axis=1)
    if not np.isfinite(values).all():
        raise ValueError("inputs are missing at some times: an input must be known")
    return Series(times, values, time_unit_of(time), tuple(chosen))
