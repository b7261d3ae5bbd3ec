"""What a fit says, in numbers and in words: the table, `fit.json`, and what to beware of."""

import math
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table as TextTable

from envs.durotaxis.substrate import LEAST_INTENSITY
from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.spawning import Displacements
from envs.durotaxis.units import Units
from jaxrl.numerics.max_likelihood import DROP, Estimate
from train.durotaxis.tracks import fitting
from train.durotaxis.tracks.check import Check
from train.durotaxis.tracks.fitting import Fit
from train.durotaxis.tracks.goodness import Test, failures, fewest_colonies
from train.durotaxis.tracks.tables import Table
from train.host.numbers import quantity

LENGTHS = ("gamma", "noise", "error", "scatter")
MEANINGS = {
    "gamma": "distance of children on very stiff ground",
    "alpha": "stiffness at which that is half",
    "noise": "added to the distance",
    "theta": "mean direction, from x towards y",
    "kappa": "concentration around it",
    "error": "standard deviation of a place as observed",
    "scatter": "that of where children land about the law",
}
ISOTROPIC = {
    "gamma": "reach R on very stiff ground; children lie within 1 px + 2 R, one deviation",
    "noise": "deviation of R",
}
"""What else numbers mean in that law, which has no distance: see `spawning.isotropic_terms`."""
CONFOUNDED = 0.95
"""Correlation of estimates from which on they are known together alone."""
FLAT = 2.0
"""Stiffest over softest ground under parents, below which the Hill curve is hardly seen."""
FEW_EVENTS = 5
COARSE = 0.05
"""Relative change of stiffness over an error of places that the likelihood may leave out."""


class Number(NamedTuple):
    """An estimate with its 95 % interval, whose ends may be infinite; in `unit`."""

    value: float
    low: float
    high: float
    unit: str
    meaning: str


def spawning_numbers(fit: Fit, units: Units) -> dict[str, Number]:
    """The numbers of the law of spawning, as it has them, in units."""
    numbers, factors = {}, unit_factors(units)
    unit_names = {"alpha": units.stiffness_name, "theta": "°"}
    for i, name in enumerate(spawning.NAMES):
        if name not in spawning.PARAMETERS[fit.law] or (name == "scatter" and not fit.has_scatter):
            continue
        estimate = fit.spawning
        ends = (estimate.theta[i], estimate.low[i], estimate.high[i])
        value, low, high = (factors[name] * fitting.natural(name, x, fit.law) for x in ends)
        unit = units.length_name if name in LENGTHS else unit_names.get(name, "")
        meanings = MEANINGS | ISOTROPIC if fit.law == "isotropic" else MEANINGS
        numbers[name] = Number(value, low, high, unit, meanings[name])
    return numbers


def unit_factors(units: Units) -> dict[str, float]:
    """By what the numbers of a law of spawning are multiplied to be told in units."""
    own = dict.fromkeys(LENGTHS, units.length)
    own |= {"alpha": units.stiffness, "theta": 180 / math.pi, "kappa": 1.0}
    return own


def event_numbers(estimate: Estimate, causes: tuple[str, ...], units: Units) -> dict[str, Number]:
    """The coefficients of a law of events, log-odds; the constant is of a stiffness in units."""
    rows = zip(events.NAMES, estimate.theta, estimate.low, estimate.high, strict=True)
    meanings = events.meanings(f"{units.stiffness:g} {units.stiffness_name}".strip())
    return {
        name: Number(float(value), float(low), float(high), "", meanings[name])
        for name, value, low, high in rows
        if name in ("constant", *causes)
    }


def hill_band(
    fit: Fit, data: Displacements, stiffness: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hill distances `[G]` at stiffness `[G]`: fitted, least and largest.

    These are the ends over all parameters on the profiles that the data do not reject, or by the
    curvature where that is wider: along a profile of another number a distance hardly changes. The
    noise of the isotropic law is a deviation, and no part of a distance.
    """
    profile = fit.spawning.profile
    inside = profile.drop <= DROP
    paths = profile.theta[inside]  # [N, P]
    gamma, alpha, noise = (
        np.array([fitting.natural(name, x, fit.law) for x in column])[:, None]
        for name, column in zip(
            spawning.NAMES, np.vstack([fit.spawning.theta, paths]).T[:3], strict=False
        )
    )
    noise = noise * (fit.law == "directed")
    share = 1 / (1 + (alpha / np.maximum(stiffness, 1e-6)) ** 2)
    curves = gamma * share + noise
    by_gamma, by_alpha = gamma[0] * share[0], -2 * gamma[0] * share[0] * (1 - share[0])
    reach = np.sqrt(2 * DROP) * fitting.curve_errors(fit, data, by_gamma, by_alpha)
    low, high = (curves[0] - reach).clip(0), curves[0] + reach
    return curves[0], np.minimum(curves.min(0), low), np.maximum(curves.max(0), high)


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


def text_table(fit: Fit, units: Units) -> TextTable:
    """All numbers with their intervals, for a terminal."""
    out = TextTable(title="maximum likelihood, 95 % intervals", title_justify="left")
    for heading, side in (("", "left"), ("estimate", "right"), ("interval", "left"), ("", "left")):
        out.add_column(heading, justify=side)  # type: ignore[arg-type]
    for name, number in spawning_numbers(fit, units).items():
        value = f"{format_number(number.value)} {number.unit}".strip()
        out.add_row(name, value, interval_text(number), number.meaning)
    for kind, estimate, causes in (
        ("deaths", fit.deaths, fit.death_causes),
        ("births", fit.births, fit.birth_causes),
    ):
        out.add_section()
        for name, number in event_numbers(estimate, causes, units).items():
            out.add_row(
                f"{kind}: {name}",
                format_number(number.value),
                interval_text(number),
                number.meaning,
            )
    return out


def format_number(value: float) -> str:
    return "∞" if value == math.inf else "-∞" if value == -math.inf else f"{value:.3g}"


def interval_text(number: Number) -> str:
    return f"{format_number(number.low)} to {format_number(number.high)}"


def test_lines(tests: list[Test]) -> list[str]:
    """What the laws cannot explain, a line each, or that nothing was seen of it."""
    failed = failures(tests)
    if not failed:
        least = min(tests, key=lambda test: test.p)
        return [
            f"nothing speaks against the model in {quantity(len(tests), 'tests')} (smallest p "
            f"{least.p:.2g}, of {least.name})"
        ]
    return [f"not explained: {test.failure} (p {test.p:.2g})" for test in failed]


def content(
    fit: Fit, table: Table, tests: list[Test], warning_lines: list[str], units: Units
) -> dict[str, Any]:
    """All of it as plain data; infinite ends are None."""
    plain = lambda numbers: {name: number._asdict() for name, number in numbers.items()}
    laws = {
        "law": fit.law,
        "spawning": plain(spawning_numbers(fit, units)),
        "deaths": plain(event_numbers(fit.deaths, fit.death_causes, units)),
        "births": plain(event_numbers(fit.births, fit.birth_causes, units)),
    }
    counts = {
        "displacements": len(table.displacements.distance),
        "deaths": int(table.deaths.happened.sum()),
        "births": int(table.births.happened.sum()),
        "cell_frames": len(table.deaths.happened),
        "left_out_near_edges": table.num_edge,
        "left_out_seen_too_seldom": table.num_short,
        "twins": table.num_twins,
    }
    estimates = {"spawning": fit.spawning, "deaths": fit.deaths, "births": fit.births}
    return {
        **laws,
        "log_likelihood": {name: float(x.log_likelihood) for name, x in estimates.items()},
        "counts": counts,
        "tests": {test.name: test.p for test in tests},
        "not_explained": [test.failure for test in failures(tests)],
        "warnings": warning_lines,
    }
