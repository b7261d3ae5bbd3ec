"""Measurements as Markdown: reads the records of `bench/results/` and writes tables."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from train.host.showing.pictures import interval

RESULTS = Path(__file__).resolve().parents[1] / "results"
Record = dict[str, Any]


def records(name: str) -> list[Record]:
    """The measurements of one file, oldest first."""
    return sorted(json.loads((RESULTS / f"{name}.json").read_bytes()), key=lambda r: r["date"])


def latest(measurements: Iterable[Record], *names: str) -> dict[Any, Record]:
    """The latest record for each value of these fields, a tuple where they are several."""
    key = lambda record: tuple(record.get(name) for name in names)
    chosen = {key(record): record for record in measurements}
    return {k[0] if len(names) == 1 else k: record for k, record in chosen.items()}


def largest_last(measurements: Iterable[Record], *sizes: str) -> list[Record]:
    """In the order of these fields, the newest of equal ones last.

    The last one, and the `latest`, are then of the largest size: a quick look, measured later with
    fewer seeds or steps, takes no place in a table.
    """
    return sorted(measurements, key=lambda record: tuple(record[name] for name in sizes))


def table(head: str, rows: Iterable[Iterable[str]], measurements: Iterable[Record] = ()) -> str:
    """A table, and below it on what and when it was measured."""
    columns = head.split(" | ")
    lines = [f"| {head} |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = list(row)
        assert len(cells) == len(columns), (head, cells)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{provenance(measurements)}"])


def provenance(measurements: Iterable[Record]) -> str:
    """Machines, versions and days of measurements."""
    measurements = list(measurements)
    machines = {
        f"{r['cores']} virtual cores of an {hardware(r['cpu'])}, {accelerator(r['device'])}, "
        f"Python {r['python']}, JAX {r['versions']['jax']}"
        for r in measurements
    }
    days = sorted({r["date"][:10] for r in measurements})
    return f"*{'; '.join(sorted(machines))}; {' to '.join(sorted({days[0], days[-1]}))}.*"


def accelerator(device: str) -> str:
    """What computed beside the cores."""
    return "no GPU" if device == "cpu" else device


def hardware(cpu: str) -> str:
    """The processor's name without trademarks."""
    return cpu.replace("(R)", "").replace(" Processor", "")


def format_rate(rate: float) -> str:
    """A rate, rounded to thousands, or to hundreds below ten thousand."""
    return f"{round(rate, -3 if rate >= 10_000 else -2):,.0f}"


def mean_and_interval(values: Iterable[float], digits: int) -> str:
    """Mean ± half of the 95 % Student interval, which takes three values."""
    array = np.array(list(values), float)
    half = float(interval(array)) if len(array) > 2 else float("nan")
    return f"{array.mean():.{digits}f}" + (f" ± {half:.{digits}f}" if np.isfinite(half) else "")


def mean_and_ends(values: np.ndarray) -> str:
    """A mean with the ends of its 95 % interval, at most 1."""
    mean, half = values.mean(), float(interval(values))
    return f"{mean:.4f} ({mean - half:.4f} to {min(mean + half, 1.0):.4f})"


def round_rate(rate: float) -> float:
    """A rate rounded to hundreds, or to tens below two thousand."""
    return round(rate, -2 if rate >= 2_000 else -1)
