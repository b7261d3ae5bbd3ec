"""Spikes of MATLAB files: a cell with the times of each unit, or vectors of times and of units.

Axes: T bins, m inputs.
"""

import re
from collections.abc import Collection, Sequence

import numpy as np

from train.host.files.array_files import MAX_BYTES, to_integers, to_vector
from train.vector_field.data.files.content import join, spikes_content
from train.vector_field.data.matlab_variables import Variable, beside, to_plain
from train.vector_field.data.spike_times import bins_before

SPIKE_TIMES = re.compile(r"(.*\.)?spike_?times", re.I)
SPIKES = re.compile(r"(.*\.)?spikes", re.I)
UNITS = "spike_units"
ENDS = {"duration", "lengths"}
AS_NPZ = (UNITS, "spike_episodes", "num_units", *sorted(ENDS))


def are_spikes(cell: Sequence[np.ndarray]) -> bool:
    """Whether a cell holds the spike times of units: vectors, each rising."""
    vectors = [to_vector(x) for x in cell if x.size]
    is_rising = all(x.ndim == 1 and (np.diff(x.astype(float)) >= 0).all() for x in vectors)
    return bool(vectors) and is_rising and all(min(x.shape) <= 1 for x in cell)


def are_times(name: str, variable: Variable) -> bool:
    """Whether a variable holds times of spikes, by its name, or as a single channel never rises."""
    if SPIKE_TIMES.fullmatch(name) or isinstance(variable, list):
        return bool(SPIKE_TIMES.fullmatch(name))
    vector = to_vector(variable)
    is_rising = vector.ndim == 1 and len(vector) > 2 and (np.diff(vector.astype(float)) > 0).all()
    return bool(SPIKES.fullmatch(name) and is_rising)


def spikes_of(
    names: Sequence[str],
    variables: dict[str, Variable],
    inputs: Sequence[Variable],
    bin_width: float,
) -> tuple[dict[str, np.ndarray], str] | None:
    """Arrays of spikes and a note on them; inputs have a row for each bin. None of other data.

    Spikes are a cell of vectors, or vectors of times and of units, as in an npz file. Raises
    ValueError for times of spikes that are neither.
    """
    name, first = names[0], variables[names[0]]
    if len(names) == 1 and isinstance(first, list) and are_spikes(first):
        spikes, of_file, note = _spikes_of_cell(name, variables, bin_width)
    elif not any(are_times(x, variables[x]) for x in names):
        return None
    elif isinstance(first, list):
        raise ValueError(f"{name} is a cell, but not of a vector of rising times for each unit")
    elif len(names) > 1 or not beside(name, UNITS, variables):
        raise ValueError(
            f"{name} holds times of spikes without the unit of each: give {UNITS} beside it, of "
            "the same length, or a cell with a vector of rising times for each unit"
        )
    else:
        (spikes, of_file), note = _spikes_of_vectors(name, variables, bin_width), ""
    if inputs:
        spikes.pop("lengths", None)  # the rows of the inputs are as many as there are bins
        spikes["u"], turned = _inputs_of_spikes(inputs, spikes["u"].shape[-2])
        note += turned
    elif ENDS & of_file.keys():  # the record goes on after its last spike
        spikes.pop("lengths", None)
        spikes["u"] = _zero_inputs(of_file, spikes["u"], bin_width)
    return spikes | of_file, note


def _spikes_of_cell(
    name: str, variables: dict[str, Variable], bin_width: float
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], str]:
    """Arrays of the spikes, those that the file has beside them, and a note on them."""
    cell = variables[name]
    times = np.concatenate([x.ravel() for x in cell]).astype(float)
    units = np.repeat(np.arange(len(cell)), [x.size for x in cell])
    arrays = spikes_content(times, units, len(cell), (), bin_width)
    of_file = _arrays_beside(name, variables, ENDS)
    return arrays, of_file, f"; {len(times):,} spikes of {len(cell)} units"


def _spikes_of_vectors(
    name: str, variables: dict[str, Variable], bin_width: float
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Arrays of the spikes, and those that the file has beside them."""
    of_file = _arrays_beside(name, variables, AS_NPZ)
    times, units = to_vector(to_plain(variables[name])), to_vector(of_file[UNITS])
    trials = to_integers(to_vector(of_file.get("spike_episodes", np.zeros(len(times), int))))
    is_valid = trials is not None and trials.shape == times.shape and (trials >= 0).all()
    # others are refused where those of all kinds of files are
    of_spikes = spikes_content(times, units, 0, (), bin_width, trials if is_valid else None)
    del of_spikes["num_units"]  # the file alone says how many there are, or the last that fired
    return of_spikes, of_file


def _arrays_beside(
    name: str, variables: dict[str, Variable], others: Collection[str]
) -> dict[str, np.ndarray]:
    """The arrays of the names `others` that stand beside a variable."""
    places = {x: beside(name, x, variables) for x in others}
    return {x: to_plain(variables[place]) for x, place in places.items() if place}


def _zero_inputs(arrays: dict[str, np.ndarray], u: np.ndarray, bin_width: float) -> np.ndarray:
    """Zeros `[E, T, 1]` for as many bins as the durations or lengths of a file say.

    `u`, for the bins up to the last spike, where these are no numbers of bins, which is refused
    where those of all kinds of files are. Raises ValueError for more bins than fit into memory.
    """
    steps = [np.zeros(len(u) if u.ndim == 3 else 1)]
    if "duration" in arrays:
        steps.append(bins_before(arrays["duration"].reshape(-1).astype(float), bin_width))
    if "lengths" in arrays:
        steps.append(arrays["lengths"].reshape(-1))
    longest = np.max(np.concatenate(steps))
    if not 1 <= longest < np.inf:
        return u
    shape = max(map(len, steps)), int(longest)
    if shape[0] * shape[1] * 8 > MAX_BYTES:
        raise ValueError(f"{shape[1]:,} bins of {bin_width:g} are too many: larger --env.bin-width")
    return np.zeros((*shape, 1))


def _inputs_of_spikes(inputs: Sequence[Variable], bins: int) -> tuple[np.ndarray, str]:
    """Inputs `[T, m]` side by side, or the only one as it is, which may have an axis of trials.

    With a note if time was along columns: those with too few rows for the `bins` up to the last
    spike, and columns enough, are turned.
    """
    arrays = [to_plain(x) for x in inputs]
    are_turned = [x.ndim == 2 and len(x) < bins <= x.shape[1] for x in arrays]
    rows = [x.T if turned else x for x, turned in zip(arrays, are_turned, strict=True)]
    note = "; inputs have time along columns, transposed" if any(are_turned) else ""
    return (rows[0] if len(rows) == 1 else join(rows)), note
