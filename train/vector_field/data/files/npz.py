"""npz files: the arrays of a recording by name, a row for each step, and what is not read of them.

Axes: T steps, n channels, m inputs.
"""

import numpy as np

from train.host.files import array_files
from train.host.files.array_files import to_vector
from train.vector_field.data import spike_times
from train.vector_field.data.files.content import join, rows_on_grid
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.recording_file import EXPECTED
from train.vector_field.data.files.row_times import (
    RATES,
    STEP,
    step_by_rows,
    steps_of,
    time_name,
    with_times,
)

ARRAYS = ("y", "u", "lengths", *spike_times.ARRAYS)
UNIT = "time_unit"
WRITTEN = ({"y", "u", "z", "belief"}, {"y", "u", "z", "seconds"})
"""All arrays of the recordings of a run and of the simulated rig: theirs are no mistake."""
Headers = dict[str, tuple[tuple[int, ...], np.dtype]]
"""Shape and kind of each array."""


def read(path: str, names: Names) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of a file, and notes on times and on what is not read.

    Raises ValueError, in one line, for what cannot be read or is not there.
    """
    arrays, headers, notes = _arrays(path, names), array_files.npz_headers(path), []
    if time := _time_name(path, headers, names):
        y = arrays["y"].reshape(len(arrays["y"]), -1)  # one channel needs no axis
        with array_files.value_errors_with_path(path):
            arrays, _, note = with_times({**arrays, "y": y}, time, _times(path, time))
        notes.append(note)
    usual = (*_names_read(names), STEP, UNIT, time)
    unread = [x for x in headers if x not in usual and x.lower() not in RATES]
    if unread and set(headers) not in WRITTEN:
        readable = "y or spike_times, u, lengths, t (a number for each step of one episode), dt, "
        readable += "fs and time_unit, or what --names.y, --names.u and --names.time name"
        notes.append(array_files.unread_note(unread, readable))
    return arrays, notes


def _names_read(names: Names) -> tuple[str, ...]:
    """The arrays that are read, but for those of time."""
    return (*(x for x in ARRAYS if not getattr(names, x, ())), *names.y, *names.u)


def _arrays(path: str, names: Names) -> dict[str, np.ndarray]:
    """The arrays as they are, those of other names as y and u."""
    try:
        arrays = array_files.read_npz(path, _names_read(names))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {EXPECTED}") from None
    for what in ("y", "u"):
        chosen = getattr(names, what)
        if absent := [x for x in chosen if x not in arrays]:
            raise ValueError(f"{path} has no array {absent[0]!r}, which --names.{what} asks for")
        if chosen:
            parts = [arrays[x] for x in chosen]
            arrays[what] = parts[0] if len(parts) == 1 else join(parts)
    if "u" not in arrays:
        raise ValueError(f"{path} has no array 'u'; {EXPECTED}; without inputs, of zeros")
    if ("y" in arrays) == ("spike_times" in arrays):
        which = "both y and" if "y" in arrays else "no array 'y' and no"
        raise ValueError(f"{path} has {which} spike_times; {EXPECTED}")
    return arrays


def steps_of_rows(path: str, names: Names, is_known: bool = False) -> list[tuple[str, float]]:
    """The time of a step by a sampling rate, and by the times of the rows, with their names.

    These say nothing if they only number the rows and it `is_known` otherwise.

    Raises ValueError, in one line, for what is no rate, and for uneven times.
    """
    headers = array_files.npz_headers(path)
    time = _time_name(path, headers, names)
    with array_files.value_errors_with_path(path):
        steps = steps_of(array_files.read_npz(path, [x for x in headers if x.lower() in RATES]))
        if time:
            step = rows_on_grid(time, _times(path, time))[1]
            steps += step_by_rows(time, step, is_known or bool(steps) or STEP in headers)
        return steps


def _time_name(path: str, headers: Headers, names: Names) -> str:
    """The array with a time for each row of a single episode; empty if there is none."""
    shapes = {name: shape for name, (shape, dtype) in headers.items() if dtype.kind in "fiub"}
    with array_files.value_errors_with_path(path):
        time = time_name(names.time, shapes)
    rows = [shapes.get(x, ()) for x in (*(names.y or ("y",)), *(names.u or ("u",)), time)]
    if "lengths" in headers or not all(len(shape) in (1, 2) for shape in rows):
        return ""
    *others, times = rows
    is_one_each = times[0] > 1 and np.prod(times) == times[0]
    return time if is_one_each and {x[0] for x in others} == {times[0]} else ""


def _times(path: str, name: str) -> np.ndarray:
    return to_vector(array_files.read_npz(path, (name,))[name]).astype(float)
