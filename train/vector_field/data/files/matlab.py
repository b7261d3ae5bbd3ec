"""MATLAB files, v4 to v7: arrays, cells and structures as the arrays of an npz file.

A cell of spike times, one vector for each unit, is spikes; a cell of matrices is episodes. A field
of a structure is named with a dot, `data.y`. Axes: T steps, n channels, m inputs, E episodes.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from train.host.errors import in_one_line
from train.host.files.array_files import MAX_BYTES, to_vector
from train.host.numbers import listing
from train.vector_field.data.files.content import (
    Content,
    join,
    spikes_content,
)
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.row_times import (
    STEP,
    agreed_step,
    step_by_rows,
    steps_of,
    time_name,
    with_times,
)


class Cell(list[np.ndarray]):
    """The arrays of a cell, with its shape."""

    def __init__(self, cell: np.ndarray):
        super().__init__(np.asarray(x) for x in cell.ravel())
        self.shape = cell.shape
        self.is_table = len(self) > max(self.shape)  # with more than one axis


Variable = np.ndarray | Cell
"""An array of numbers, or a cell of them."""
OBSERVED = re.compile(r"(.*\.)?(y|counts|rates|spikes|spike_?times|dff|lfp|traces|data)", re.I)
INPUTS = re.compile(r"(.*\.)?(u|inputs?|stim|stimulus|stimuli)", re.I)
AS_NPZ = ("spike_units", "spike_episodes", "duration", "num_units", "lengths")


def read(path: str, names: Names, bin_width: float) -> Content:
    """The content of a file. Raises ValueError, in one line, for what it cannot be."""
    variables, texts = variables_of(path)
    y_names = chosen_names("y", names.y, variables, OBSERVED)
    u_names = chosen_names("u", names.u, variables, INPUTS, is_needed=False)
    for name in (*y_names, *u_names):
        refuse_two_axes(name, variables[name])
    observed = [variables[x] for x in y_names]
    inputs = [variables[x] for x in u_names]
    unit = texts.get("time_unit", "")
    about = f"MATLAB; y: {listing(y_names)}; "
    about += f"u: {listing(u_names)}" if u_names else "no inputs (--names.u NAME names them)"
    width = agreed_step(steps_of(variables, (STEP,)))  # of spikes fs is that of the voltage
    if len(observed) == 1 and isinstance(observed[0], list) and are_spikes(observed[0]):
        return spikes_of(observed[0], inputs, bin_width, unit, about)._replace(step=width)
    if len(observed) == 1 and is_spike_vector(y_names[0], variables):
        arrays = {x: to_plain(variables[x]) for x in AS_NPZ if x in variables}
        times, units = to_vector(to_plain(observed[0])), to_vector(arrays["spike_units"])
        if inputs:
            arrays |= {"spike_times": times, "u": to_plain(inputs[0])}
        else:
            arrays |= spikes_content(times, units, int(units.max(initial=-1)) + 1, (), bin_width)
        return Content(arrays, width, unit, about)
    arrays, notes = series_of(observed, inputs)
    if "lengths" in variables and "lengths" not in arrays:
        arrays["lengths"] = to_plain(variables["lengths"])
    time = time_name(names.time, variables)
    times = to_vector(to_plain(variables[time])) if time else np.zeros(0)
    steps = steps_of(variables)
    if arrays["y"].ndim == 2 and len(times) == len(arrays["y"]) > 1:
        arrays, step, note = with_times(arrays, time, times)
        steps += step_by_rows(time, step, bool(steps))
        notes.append(note)
    return Content(arrays, agreed_step(steps), unit, "; ".join([about, *notes]))


def variables_of(path: str) -> tuple[dict[str, Variable], dict[str, str]]:
    """Numbers by name, fields of structures included, and texts by name."""
    import scipy.io  # here, as it takes half a second

    try:
        for name, shape, _ in scipy.io.whosmat(path):
            if np.prod([float(x) for x in shape]) * 8 > MAX_BYTES:
                raise ValueError(f"{name} has shape {shape}, more than {MAX_BYTES:,} bytes: cut it")
        content = scipy.io.loadmat(path)
    except ValueError:
        raise
    except Exception as error:  # a damaged file makes scipy raise almost anything
        raise ValueError(in_one_line(error)[:200] or type(error).__name__) from None
    variables: dict[str, Variable] = {}
    texts: dict[str, str] = {}
    for name, value in content.items():
        if not name.startswith("__"):
            _collect(name, value, variables, texts)
    return variables, texts


def _collect(name: str, value: Any, variables: dict[str, Variable], texts: dict[str, str]) -> None:
    """Adds a variable, or the fields of a structure, by dotted name."""
    if hasattr(value, "toarray"):
        value = _to_dense(name, value)
    if not isinstance(value, np.ndarray):
        return
    if value.dtype.names:
        for field in value.dtype.names:
            _collect(f"{name}.{field}", _field_of(value, field), variables, texts)
    elif value.dtype.kind in "fiub" and value.size:
        variables[name] = value
    elif value.dtype.kind == "U" and value.size == 1:
        texts[name.split(".")[-1]] = str(value.item())
    elif value.dtype.kind == "O" and value.size:
        cell = Cell(value)
        if all(x.dtype.kind in "fiub" for x in cell):
            variables[name] = cell


def _to_dense(name: str, value: Any) -> np.ndarray:
    """A sparse matrix as an array. Raises ValueError for one that would be too large."""
    if np.prod([float(x) for x in value.shape]) * 8 > MAX_BYTES:
        raise ValueError(f"{name} is sparse, of shape {value.shape}: too large, cut it")
    return value.toarray()


def _field_of(structures: np.ndarray, field: str) -> Any:
    """A field of one structure; of several, a cell with that of each."""
    items = list(structures[field].ravel())
    if len(items) == 1:
        return items[0]
    # with None at the end NumPy makes no axes of items of equal shape
    return np.array([*items, None], object)[:-1].reshape(structures.shape)


def chosen_names(
    what: str,
    names: Sequence[str],
    variables: dict[str, Variable],
    usual: re.Pattern[str],
    is_needed: bool = True,
) -> list[str]:
    """The variables that are named, or the one of a usual name, or the only one of many rows.

    Raises ValueError, with the candidates, for a name that is not there and for several.
    """
    if unknown := [x for x in names if x not in variables]:
        shapes = listing([f"{x} {_shape(v)}" for x, v in variables.items()])
        raise ValueError(f"there is no variable {unknown[0]}; there are {shapes}")
    if names:
        return list(names)
    exact = [x for x in variables if x.split(".")[-1].lower() == what]
    candidates = exact or [x for x in variables if usual.fullmatch(x)]
    if not candidates and is_needed:
        large = [x for x, v in variables.items() if isinstance(v, list) or min(v.shape) > 1]
        candidates = [x for x in large if not INPUTS.fullmatch(x)]
    if len(candidates) == 1 or (not candidates and not is_needed):
        return candidates
    options = candidates or list(variables)
    shapes = listing([f"{x} {_shape(variables[x])}" for x in options])
    raise ValueError(f"which variable is {what}? There are {shapes}: choose by --names.{what}")


def _shape(variable: Variable) -> str:
    shape = "×".join(str(x) for x in variable.shape)
    if not isinstance(variable, Cell):
        return shape
    return f"cell of {shape if variable.is_table else len(variable)}"


def refuse_two_axes(name: str, variable: Variable) -> None:
    """Raises ValueError for a cell of units and trials, whose axes cannot be told apart."""
    if isinstance(variable, Cell) and variable.is_table:
        raise ValueError(
            f"{name} is a {_shape(variable)}; expected one row of cells, a vector of spike times "
            "for each unit or a matrix for each episode: for trials of spikes give the vectors "
            "spike_times, spike_units and spike_episodes, the latter from 0 on, and u [trials, "
            "bins, inputs], of zeros if there were none"
        )


def to_plain(variable: Variable) -> np.ndarray:
    """An array. Raises ValueError for a cell."""
    if isinstance(variable, list):
        raise ValueError(f"a cell of {len(variable)} stands where one array was expected")
    return variable


def are_spikes(cell: Sequence[np.ndarray]) -> bool:
    """Whether a cell holds the spike times of units: vectors, each rising, of unequal lengths."""
    vectors = [to_vector(x) for x in cell if x.size]
    is_rising = all(x.ndim == 1 and (np.diff(x.astype(float)) >= 0).all() for x in vectors)
    return bool(vectors) and is_rising and all(min(x.shape) <= 1 for x in cell)


def is_spike_vector(name: str, variables: dict[str, Variable]) -> bool:
    """Whether spikes are vectors of times and of units, as in an npz file."""
    return name == "spike_times" and "spike_units" in variables


def spikes_of(
    cell: Sequence[np.ndarray], inputs: Sequence[Variable], bin_width: float, unit: str, about: str
) -> Content:
    """Spikes of a cell; inputs have a row for each bin."""
    times = np.concatenate([x.ravel() for x in cell]).astype(float)
    units = np.repeat(np.arange(len(cell)), [x.size for x in cell])
    arrays = spikes_content(times, units, len(cell), (), bin_width)
    if inputs:
        u = join([_in_rows(to_plain(x)) for x in inputs])
        arrays["u"] = u
    return Content(arrays, None, unit, f"{about}; {len(times):,} spikes of {len(cell)} units")


def _in_rows(x: np.ndarray) -> np.ndarray:
    """One input `[1, T]` as `[T, 1]`."""
    return x.T if x.ndim == 2 and len(x) == 1 else x


def series_of(
    observed: Sequence[Variable], inputs: Sequence[Variable]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """y and u, with time along the first axis of a matrix, and what was turned to have it there."""
    notes: list[str] = []
    if any(isinstance(x, list) for x in observed):
        return _episodes(observed, inputs)
    y = _side_by_side([to_plain(x) for x in observed])
    u = _side_by_side([to_plain(x) for x in inputs]) if inputs else None
    if u is None:
        if y.ndim == 2 and y.shape[1] > y.shape[0]:
            y = y.T
            notes.append("the longer axis taken as time")
        if y.ndim == 3:
            notes.append(_axes_note(y))
        return {"y": y, "u": np.zeros((*y.shape[:-1], 1))}, notes
    if y.ndim == u.ndim == 2:
        turned = [(y, u), (y.T, u.T), (y, u.T), (y.T, u)]
        fits = [len(a) == len(b) and (len(a) > 1 or y.size == 1) for a, b in turned]
        # With as many inputs as channels two of them fit: there are more steps than channels.
        steps = [len(a) if fit else 0 for (a, _), fit in zip(turned, fits, strict=True)]
        if max(steps) > steps[0]:
            y, u = turned[steps.index(max(steps))]
            notes.append("time along columns, transposed")
    if y.ndim == u.ndim == 3 and y.shape[1:] == u.shape[1:]:
        if y.shape == u.shape:
            notes.append(_axes_note(y))
        else:
            y, u = (x.transpose(2, 1, 0) for x in (y, u))
            notes.append("[channels, time, trials] turned to [trials, time, channels]")
    return {"y": y, "u": u}, notes


def _axes_note(y: np.ndarray) -> str:
    """What to look at where shapes do not say which axis of y `[E, T, n]` is which."""
    return (
        "y is read as {} episodes of {} steps of {} channels: turn it if its axes are others"
    ).format(*y.shape)


def _side_by_side(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else join(arrays)


def _episodes(
    observed: Sequence[Variable], inputs: Sequence[Variable]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Episodes of cells, one after the other."""
    if len(observed) > 1 or len(inputs) > 1:
        raise ValueError("cells cannot stand side by side: choose one for y and one for u")
    y = observed[0]
    u = inputs[0] if inputs else [np.zeros((max(x.shape), 1)) for x in y]
    if not isinstance(u, list) or len(u) != len(y):
        raise ValueError(f"y is a cell of {len(y)} episodes; expected a cell of as many for u")
    rows, notes = [], set()
    for a, b in zip(y, u, strict=True):
        pair, note = series_of([a], [b])
        rows.append(pair)
        notes |= {*note}
    if len({(x["y"].shape[1], x["u"].shape[1]) for x in rows}) > 1:
        raise ValueError("the episodes of the cell y have different numbers of channels or inputs")
    joined = {name: np.concatenate([x[name] for x in rows]) for name in ("y", "u")}
    joined["lengths"] = np.array([len(x["y"]) for x in rows])
    return joined, [f"{len(rows)} episodes", *sorted(notes)]
