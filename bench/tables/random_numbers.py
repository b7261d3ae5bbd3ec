"""The table of random numbers in one kernel, beside JAX's own loop."""

import statistics

from bench.random_numbers import WAYS
from bench.tables.markdown import Record, format_rate, latest, records, table


def speed() -> str:
    by_case = latest(records("random_numbers"), "case")
    head = "program, preset | JAX's own loop, steps/s | one kernel, steps/s | times | compile, s"
    return table(head, map(cells, by_case.values()), by_case.values())


def cells(record: Record) -> list[str]:
    """A row of the table."""
    median = lambda way, name: statistics.median(x[name] for x in record["timings"][way])
    loop, kernel = (median(way, "steps_per_second") for way in WAYS)
    compilation = " and ".join(f"{median(way, 'compile_seconds'):.1f}" for way in WAYS)
    speeds = format_rate(loop), format_rate(kernel), f"{kernel / loop:.2f}"
    return [f"`{record['case']}`", *speeds, compilation]
