"""The table of searches beside random search."""

import numpy as np

from bench import search
from bench.tables.markdown import Record, latest, records, table
from jaxrl.numerics import comparison

ENOUGH = 5
"""Repeats below which intervals would be too narrow to be shown."""
TITLES = {
    "random": "random, 32 configurations",
    "halving": "halving, 8 members × 4 budgets",
    "population": "population of 32",
}


def scores() -> str:
    """A row for each case and method, in the order of the measurement."""
    by_repeat = latest(records("search"), "case", "method", "repeat")
    rows = []
    for case in search.CASES:
        of_case = {
            method: [
                x for (name, kind, _), x in by_repeat.items() if (name, kind) == (case.name, method)
            ]
            for method in search.METHODS
        }
        rows += [row(case, method, of_case) for method in of_case if of_case[method]]
    head = (
        "command | search | million steps | repeats | score on fresh seeds | lowest to highest | "
        "when chosen | better than random, % | configurations tried"
    )
    return table(head, rows, by_repeat.values())


def row(case: search.Case, method: str, of_case: dict[str, list[Record]]) -> list[str]:
    method_records = of_case[method]
    scores = [x["score"] for x in method_records]
    chosen = [x["chosen"] for x in method_records]
    mean, low, high = search.summary(scores)
    interval = f" ({low:.4g} to {high:.4g})" if len(scores) >= ENOUGH else ""
    tried = sorted(x["tried"] for x in method_records)
    return [
        f"`gymnax {case.preset}` {case.env_id}",
        TITLES[method],
        f"{method_records[0]['steps'] / 1e6:.1f}",
        str(len(method_records)),
        f"{mean:.4g}{interval}",
        f"{min(scores):.4g} to {max(scores):.4g}",
        f"{search.summary(chosen)[0]:.4g}",
        "" if method == "random" else improvement(scores, of_case["random"]),
        f"{tried[0]} to {tried[-1]}" if tried[0] < tried[-1] else str(tried[0]),
    ]


def improvement(scores: list[float], random: list[Record]) -> str:
    """The probability of a better score than random search, with its interval."""
    if min(len(scores), len(random)) < ENOUGH:
        return ""
    runs, reference = np.array(scores)[:, None], np.array([x["score"] for x in random])[:, None]
    probability = comparison.probability_of_improvement(runs, reference)
    low, high = comparison.improvement_interval(runs, reference)
    return f"{100 * probability:.0f} ({100 * low:.0f} to {100 * high:.0f})"
