"""Which column of a table holds what, by the names that were given or that are usual."""

import re
from collections.abc import Sequence

from train.host.numbers import listing
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.time_units import ALONE, without_unit

TIMES = re.compile(rf"(spike_?|frame_?)?(t|times?|timestamps?|{ALONE.pattern})")
UNITS = re.compile(
    r"(spike_?)?(units?|neurons?|cells?|clusters?|unit_?ids?|(neuron|cell|cluster)_?id)"
)
TRIALS = re.compile(r"(spike_?)?(trials?|episodes?|epochs?|sweeps?)(_?(id|index|number))?")
INPUTS = re.compile(r"(u|inputs?|stim|stimulus|stimuli|light|laser|opto|current)_?\d*")


def pick_column(what: str, name: str, header: Sequence[str], usual: re.Pattern[str]) -> str:
    """The column of a name, or the one of a usual name; empty if there is none.

    Raises ValueError if there are several.
    """
    if name:
        return existing_column(what, name, header)
    candidates = [x for x in header if usual.fullmatch(without_unit(x))]
    if len(candidates) > 1:
        raise ValueError(f"{listing(candidates)} could all be {what}: choose, --names.{what}")
    return candidates[0] if candidates else ""


def existing_column(what: str, name: str, header: Sequence[str]) -> str:
    """The column `name`. Raises ValueError if the header lacks it."""
    if name not in header:
        raise ValueError(
            f"there is no column {name} for --names.{what}; there are {listing(header)}"
        )
    return name


def channels_and_inputs(
    names: Names, header: Sequence[str], named: tuple[str, str]
) -> tuple[list[str], list[str]]:
    """The columns of y and of u, beside those `named` time and trials."""
    u_names = [existing_column("u", x, header) for x in names.u]
    if not names.u:
        u_names = [x for x in header if INPUTS.fullmatch(without_unit(x)) and x not in names.y]
    y_names = [existing_column("y", x, header) for x in names.y]
    return y_names or [x for x in header if x not in (*named, *u_names)], u_names
