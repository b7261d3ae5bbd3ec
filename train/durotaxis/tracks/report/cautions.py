"""What to beware of in a fit: what the data leave open, and what the likelihood leaves out."""

import math

import numpy as np

from envs.durotaxis.substrate import LEAST_INTENSITY
from envs.durotaxis.units import Units
from train.durotaxis.tracks import fitting
from train.durotaxis.tracks.check import Check
from train.durotaxis.tracks.fitting import Fit
from train.durotaxis.tracks.goodness import fewest_colonies
from train.durotaxis.tracks.report.numbers import Number, event_numbers, hill_band, spawning_numbers
from train.durotaxis.tracks.tables import Table
from train.host.numbers import quantity

CONFOUNDED = 0.95
"""Correlation of estimates from which on they are known together alone."""
FLAT = 2.0
"""Stiffest over softest ground under parents, below which the Hill curve is hardly seen."""
FEW_EVENTS = 5
COARSE = 0.05
"""Relative change of stiffness over an error of places that the likelihood may leave out."""


def warnings(table: Table, fit: Fit, check: Check, steepness: float, units: Units) -> list[str]:
    """What the data leave open, and what the likelihood leaves out; a line each."""
    lines = [*open_lines(fit, units), *confounded_lines(table, fit, units)]
    if not fit.has_scatter and fit.law == "directed":
        lines.append(
            "no place was seen more often than it is used, so errors of places and the scatter of "
            "children are not told apart: error holds both"
        )
    error = float(fit.laws.spawning.error)
    if error * steepness > COARSE:
        lines.append(
            f"stiffness changes by {error * steepness:.0%} over an error of places; that is left "
            "out, and alpha may be off"
        )
    if line := soft_line(table):
        lines.append(line)
    for kind, data in (("deaths", table.deaths), ("births", table.births)):
        count = int(data.happened.sum())
        if count < FEW_EVENTS:
            lines.append(f"only {quantity(count, kind)}: their law is little more than a guess")
    for count, what in (
        (table.num_edge, "near an edge of the ground, where children are held back,"),
        (
            table.num_short,
            "whose parent was seen in fewer frames than there are births to be told from them, its "
            "own and those of its children,",
        ),
    ):
        if count:
            lines.append(left_out_line(count, what))
    if table.num_twins:
        twins = quantity(table.num_twins, "children")
        lines.append(f"{twins} beyond the first of a cell in one frame; the model has one")
    if check.overflow:
        lines.append(f"{check.overflow:.0%} of simulated colonies outgrew their arrays")
    return lines


def colonies_lines(colonies: int, num_tests: int) -> list[str]:
    """What to say of simulated colonies so few that no recording could be too unlike them."""
    needed = fewest_colonies(num_tests)
    if colonies >= needed:
        return []
    return [
        f"{quantity(colonies, 'simulated colonies')} cannot speak against the number of cells, "
        f"front, middle and rear in {num_tests} tests: give --simulations {needed} or more"
    ]


def left_out_line(count: int, what: str) -> str:
    """What to say of births that do not tell where children land."""
    verb = "is" if count == 1 else "are"
    return f"{quantity(count, 'births')} {what} {verb} left out of the law of spawning"


def soft_line(table: Table) -> str:
    """What to say of births whose parent stands on no stiffness, of which there may be none."""
    stiffness = table.displacements.stiffness
    soft = int(np.sum(stiffness <= LEAST_INTENSITY))
    if not soft:
        return ""
    return (
        f"{soft} of {quantity(len(stiffness), 'births')} {'has' if soft == 1 else 'have'} a parent "
        "on stiffness of 0 or less, which counts as 1 there, so alpha may be off: check --slope "
        "and --base, or --field-file"
    )


def open_lines(fit: Fit, units: Units) -> list[str]:
    """A line for each interval without an end."""
    spawning = spawning_numbers(fit, units).items()
    lines = [line for name, number in spawning if (line := open_line(name, number))]
    for kind, estimate, causes in (
        ("deaths", fit.deaths, fit.death_causes),
        ("births", fit.births, fit.birth_causes),
    ):
        for name, number in event_numbers(estimate, causes, units).items():
            if not math.isfinite(number.low) or not math.isfinite(number.high):
                lines.append(
                    f"{kind}: {name} has no end on one side; it parts those that {kind} befall "
                    "from the others without exception"
                )
    return lines


def open_line(name: str, number: Number) -> str:
    """What to say of a number of the law of spawning that has no end on a side; empty if none.

    A direction has both ends or none.
    """
    text = lambda value: f"{value:.3g} {number.unit}".strip()
    has_upper_end = math.isfinite(number.high)
    if name == "theta":
        return "" if has_upper_end else "theta is not known at all: the data allow all directions"
    if not has_upper_end and not number.low > 0:
        return f"{name} is not known at all: the data allow all between 0 and ∞"
    if not has_upper_end:
        return f"{name} has no upper end: the data allow any value above {text(number.low)}"
    if number.low == 0:
        return f"{name} has no lower end above 0: it may be 0, and {text(number.high)} at most"
    return ""


def confounded_lines(table: Table, fit: Fit, units: Units) -> list[str]:
    """A line if gamma, alpha and noise are known together alone, and what is known then."""
    stiffness = table.displacements.stiffness
    low, high = float(stiffness.min()), float(stiffness.max())
    correlation = fitting.correlation(fit.spawning, ("gamma", "alpha", "noise"))
    if correlation < CONFOUNDED and high > FLAT * low:
        return []
    middle = np.median(stiffness)
    value, least, largest = (
        float(x[0]) * units.length
        for x in hill_band(fit, table.displacements, np.array([middle], np.float32))
    )
    factor, what = units.stiffness, "distance" if fit.law == "directed" else "Hill distance"
    return [
        f"gamma, alpha and noise are confounded (correlation up to {correlation:.2f}): parents "
        f"stand on stiffness {factor * low:.3g} to {factor * high:.3g} only. What is known is the "
        f"{what} there, {value:.3g} ({least:.3g} to {largest:.3g}) {units.length_name} at "
        f"{factor * middle:.3g}; softer and stiffer ground would tell them apart"
    ]
