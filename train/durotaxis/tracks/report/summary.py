"""What a fit says: a table for terminals, what its laws cannot explain, and `fit.json`."""

import math
from typing import Any

from rich.table import Table as TextTable

from envs.durotaxis.units import Units
from train.durotaxis.tracks.fitting import Fit
from train.durotaxis.tracks.goodness import Test, failures
from train.durotaxis.tracks.report.numbers import Number, event_numbers, spawning_numbers
from train.durotaxis.tracks.tables import Table
from train.host.numbers import quantity


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
