"""What the record of a run tells of its experiments: errors, samples taken, invalid plans.

Axes: F fields, P policies, S seeds, U rows of the record.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from train.host.files.metrics_file import read_metrics
from train.vector_field.config import Config
from train.vector_field.experiment.scores import deviation_text


def error_curves(
    rows: Sequence[dict[str, Any]], config: Config, measure: str = "error"
) -> tuple[np.ndarray, np.ndarray]:
    """`(samples [U], values [S, U, F, P])` of a measure in the record; NaN where it has none.

    Where the row of a seed is lost, those of the others are left out.
    """
    counts = Counter(row["steps"] for row in rows)
    whole_rows = [row for row in rows if counts[row["steps"]] == config.run.num_seeds]
    by_seed = {
        seed: [row for row in whole_rows if row["seed"] == seed] for seed in config.run.seeds
    }
    steps = np.array([row["steps"] for row in by_seed[config.run.seed]])
    rows_of_seeds = [[row["agent"][measure] for row in by_seed[s]] for s in config.run.seeds]
    return steps, np.array(rows_of_seeds, float)


def stops(rows: Sequence[dict[str, Any]], config: Config) -> np.ndarray:
    """`[S, P, F]`: samples of each experiment, until it stopped or to the end of the record."""
    steps, values = error_curves(rows, config, "stopped_at")
    last = np.where(values[:, -1] > 0, values[:, -1], steps[-1])  # [S, F, P]
    return np.swapaxes(last, 1, 2).astype(int)


def samples_taken(directory: Path, config: Config) -> np.ndarray | None:
    """`[S, P, F]`, as `stops`, from the record of a run; None where experiments cannot stop."""
    return stops(read_metrics(directory), config) if config.stop_gain else None


def stops_table(rows: list[dict[str, Any]], config: Config) -> Table:
    """A row for each field and policy: after how many samples it gained too little."""
    _, stop_steps = error_curves(rows, config, "stopped_at")
    counts, num_seeds = stops(rows, config), len(config.run.seeds)
    caption = f"an experiment stops when it gains less than {config.stop_gain:g} nats a sample"
    table = Table(title="samples taken", caption=caption)
    for heading in ("field", "policy", "samples", "± sd", "stopped"):
        table.add_column(heading, justify="left" if heading in ("field", "policy") else "right")
    for f, field in enumerate(config.env.fields):
        for p, name in enumerate(config.policies):
            samples = counts[:, p, f]
            share = f"{int((stop_steps[:, -1, f, p] > 0).sum())} of {num_seeds}"
            numbers = f"{samples.mean():,.0f}", deviation_text(samples, 0)
            table.add_row(field, name, *numbers, share)
        table.add_section()
    return table


def invalid_plans(rows: list[dict[str, Any]], config: Config) -> dict[str, int]:
    """The number of plans of a run whose cost was not finite, by policy; without zeros."""
    _, values = error_curves(rows, config, "invalid_plans")  # counted since the start
    counts = values[:, -1].sum(axis=(0, 1)).astype(int)
    return {name: int(n) for name, n in zip(config.policies, counts, strict=True) if n}
