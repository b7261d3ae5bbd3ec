"""MATLAB files, v4 to v7: arrays, cells and structures as the arrays of an npz file.

A cell of spike times, one vector for each unit, is spikes; a cell of matrices is episodes. A field
of a structure is named with a dot, `data.y`. Axes: T steps, n channels, m inputs, E episodes.
"""

import re
from collections.abc import Collection, Sequence

import numpy as np

from train.host.files.array_files import to_vector
from train.host.numbers import listing
from train.vector_field.data import spike_times
from train.vector_field.data.files.content import Content, join
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.row_times import (
    RATES,
    STEP,
    TIMES,
    agreed_step,
    step_by_rows,
    steps_of,
    time_name,
    with_times,
)
from train.vector_field.data.matlab_spikes import spikes_of
from train.vector_field.data.matlab_variables import (
    Cell,
    Variable,
    beside,
    to_plain,
    variables_of,
)

OBSERVED = re.compile(r"(.*\.)?(y|counts|rates|spikes|spike_?times|dff|lfp|traces|data)", re.I)
USUAL = (STEP, *RATES, "lengths", *spike_times.ARRAYS)
"""What the arrays beside y and u are called."""
INPUTS = re.compile(r"(.*\.)?(u|inputs?|stim|stimulus|stimuli)", re.I)


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
    used = [*y_names, *u_names]
    if spikes := spikes_of(y_names, variables, inputs, bin_width):
        return Content(spikes[0], width, unit, about + spikes[1] + unread_text(variables, used))
    arrays, notes = series_of(observed, inputs)
    lengths = beside(y_names[0], "lengths", variables)
    if lengths and "lengths" not in arrays:
        arrays["lengths"] = to_plain(variables[lengths])
    time, steps = time_name(names.time, variables), steps_of(variables)
    if time and has_times(arrays["y"], variables[time]):
        arrays, step, note = with_times(arrays, time, to_vector(to_plain(variables[time])))
        steps += step_by_rows(time, step, bool(steps))
        notes.append(note)
    elif time:
        notes.append(f"{time} is not read, as it is no time for each step of one episode")
    step, about = agreed_step(steps), "; ".join([about, *notes])
    about += unread_text(variables, [*used, time])
    numbers_rows = step == 1 and [x for x, _ in steps] == [time] and not unit
    return Content(arrays, step, unit, about, only_numbers_rows=numbers_rows)


def unread_text(variables: Collection[str], used: Collection[str]) -> str:
    """What is said of variables that have no part in a recording, such as the number of a trial."""
    others = [x for x in variables if x not in used and x.split(".")[-1].lower() not in USUAL]
    return f"; not read: {listing(others)}" if others else ""


def has_times(y: np.ndarray, times: Variable) -> bool:
    """Whether there is a time for each step of y `[T, n]`; not of several episodes `[E, T, n]`."""
    if y.ndim != 2 or isinstance(times, list):
        return False
    return len(to_vector(times)) == len(y) > 1


def chosen_names(
    what: str,
    names: Sequence[str],
    variables: dict[str, Variable],
    usual: re.Pattern[str],
    is_needed: bool = True,
) -> list[str]:
    """The variables that are named, or the one of a usual name, or the only matrix or vector.

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
        others = {x: v for x, v in variables.items() if not INPUTS.fullmatch(x)}
        large = [x for x, v in others.items() if isinstance(v, list) or min(v.shape) > 1]
        candidates = large or [
            x for x, v in others.items() if len(to_plain(v).ravel()) > 1 and not TIMES.fullmatch(x)
        ]
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
