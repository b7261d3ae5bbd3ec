"""How long a step of recorded data lasts: what axes, tables and advice say of time.

A file may hold `dt`, a number, and `time_unit`, a text such as "s"; without `dt` a rate `fs`, or
the times of its rows, say how long a step is. Flags say the same of files that do not. The model
has a time of its own, `env.dt`, so that learning does not depend on units.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from train.host.machine.progress import print_line
from train.vector_field.data.files import npz, recording_file
from train.vector_field.data.files.content import Content
from train.vector_field.data.files.loading import inputs_by_file
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.row_times import are_close

LONGEST = 24
"""Characters of a unit, at most."""
Statement = tuple[str, Any]
"""Where a time or a unit is from, and what it is."""


class StepTime(NamedTuple):
    """The time of a step."""

    length: float = 1.0
    unit: str = "steps"  # empty where only the length is known

    def axis(self, name: str = "time") -> str:
        """The label of an axis."""
        return f"{name} ({self.unit})" if self.unit else name

    def text(self, steps: float = 1) -> str:
        """How long so many steps are."""
        is_single = steps == 1 and self == StepTime()
        return f"{steps * self.length:g} {'step' if is_single else self.unit}".rstrip()


def step_length_text(length: StepTime) -> str:
    """ " of 0.02 s", where that is known."""
    return "" if length == StepTime() else f" of {length.text()}"


def load(
    paths: Sequence[str],
    bin_width: float,
    length: float | None,
    unit: str,
    names: Names = Names(),
    inputs: Sequence[str] = (),
) -> StepTime:
    """What files that were read and two flags say; spike times are in bins of `bin_width`.

    Raises ValueError, in one line, where they contradict each other.
    """
    lengths: list[Statement] = [("--step-time", length)] if length is not None else []
    units: list[Statement] = [("--time-unit", _unit("--time-unit", unit))] if unit else []
    is_known = length is not None
    for path, own_inputs in inputs_by_file(paths, inputs):
        if recording_file.is_npz(path):
            of_file = _statements_of_npz(path, names, bin_width, is_known)
        else:
            content = recording_file.read(path, names, bin_width, own_inputs)
            of_file = _statements_of_content(path, content, bin_width, is_known)
        lengths += of_file[0]
        units += of_file[1]
    step = _agreement(lengths, are_close)
    name = _agreement(units, lambda x, y: x == y)
    if step is None and name is not None:
        raise ValueError(
            f"{units[0][0]} is {name!r}, but nothing says how long a step is: give dt in the file, "
            "or --step-time"
        )
    return StepTime() if step is None else StepTime(float(step), name or "")


def _statements_of_content(
    path: str, content: Content, bin_width: float, is_known: bool
) -> tuple[list[Statement], list[Statement]]:
    """What a file of another kind than npz says of the time of a step, and of its unit.

    Times that only number the rows say nothing where it `is_known` otherwise.
    """
    lengths: list[Statement] = []
    if content.step is not None and not (is_known and content.only_numbers_rows):
        lengths.append((f"the time of a step in {path}", content.step))
    if "spike_times" in content.arrays:
        lengths.append(_bin_statement(path, bin_width))
    return lengths, [(f"the unit of time in {path}", content.unit)] if content.unit else []


def _statements_of_npz(
    path: str, names: Names, bin_width: float, is_known: bool
) -> tuple[list[Statement], list[Statement]]:
    """The same of an npz file."""
    lengths: list[Statement] = []
    units: list[Statement] = []
    with np.load(path, allow_pickle=False) as archive:
        present = archive.files
        if "dt" in present:
            lengths.append((f"dt in {path}", _length(path, _entry(archive, path, "dt"))))
        if "spike_times" in present:
            lengths.append(_bin_statement(path, bin_width))
        else:
            # with a unit they are times
            by_rows = npz.steps_of_rows(path, names, is_known and "time_unit" not in present)
            lengths += [(f"the time of a step by {x} in {path}", step) for x, step in by_rows]
        if "time_unit" in present:
            name = f"time_unit in {path}"
            units.append((name, _unit(name, _entry(archive, path, "time_unit"))))
    return lengths, units


def _bin_statement(path: str, bin_width: float) -> Statement:
    return f"--env.bin-width, for spike times in {path},", bin_width


def _entry(archive: Any, path: str, name: str) -> np.ndarray:
    try:
        return archive[name]
    except ValueError:  # an object of Python
        raise ValueError(f"{name} in {path} is not a number or text") from None


def _length(path: str, array: np.ndarray) -> float:
    if array.dtype.kind not in "iuf" or array.size != 1 or not 0 < array.item() < np.inf:
        what = array.item() if array.size == 1 else f"{array.dtype} of shape {array.shape}"
        raise ValueError(
            f"dt in {path} is {what!s}; expected one finite time above 0, that of a step"
        )
    return float(array.item())


def _unit(name: str, value: Any) -> str:
    text = np.asarray(value)
    unit = text.item() if text.size == 1 and text.dtype.kind in "US" else ""
    unit = (unit.decode(errors="replace") if isinstance(unit, bytes) else unit).strip()
    if not unit or not unit.isprintable() or len(unit) > LONGEST:
        raise ValueError(f"{name} must be a short text, such as s or ms")
    return unit


def _agreement(values: list[Statement], are_equal: Callable[[Any, Any], bool]) -> Any:
    """What all say, each named by where it is from; None if nobody does."""
    for name, value in values[1:]:
        first = values[0]
        if not are_equal(first[1], value):
            raise ValueError(f"{first[0]} is {first[1]} and {name} is {value}: say the same")
    return values[0][1] if values else None


@cache
def tell(
    path: str, time: StepTime, lengths: tuple[int, ...], model_time: float | None = None
) -> None:
    """Says once how many steps there are and how long they last, in the data and in a model."""
    episodes, steps = len(lengths), sum(lengths)
    amount = f"{steps:,} steps in {episodes:,} episode{'s' * (episodes > 1)}"
    each = f"each {time.text()}, {time.text(steps)} in all"
    if time == StepTime():
        each = "their time not given: axes count steps (--step-time 0.02 --time-unit s, or dt and "
        each += "time_unit in the file, give it)"
    elif not time.unit:
        each += ", unit not given (--time-unit, or time_unit in the file)"
    in_model = "" if model_time is None else f"; {model_time:g} in the model (--env.dt)"
    print_line(f"{path}: {amount}, {each}{in_model}", stderr=True)
