"""How many times fewer samples one policy needs than another for the same field error.

Axes: F fields, P policies, S seeds, U rows of the record.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from train.host.files.metrics_file import read_metrics
from train.vector_field.config import Config
from train.vector_field.experiment.run_record import error_curves, stops


def comparisons(rows: list[dict[str, Any]], config: Config, at: int) -> list[dict[str, Any]]:
    """How many times fewer samples each policy needs than each baseline after `at`, by field.

    For every ordered pair of different policies: the median over seeds of `samples_ratio`, and its
    interval. A baseline that stopped earlier, or of a run that ended earlier, counts to there.
    """
    steps, errors = error_curves(rows, config)
    ends = np.broadcast_to(steps[-1], np.swapaxes(errors[:, -1], 1, 2).shape)  # [S, P, F]
    ends = np.minimum(stops(rows, config) if config.stop_gain else ends, at)
    pairs = []
    for f, field in enumerate(config.env.fields):
        for p, name in enumerate(config.policies):
            for b, baseline in enumerate(config.policies):
                if p != b:
                    ratio = samples_ratio(
                        steps, errors[:, :, f, p], errors[:, :, f, b], ends[:, b, f]
                    )
                    median, low, high = median_interval(ratio)
                    pair = {"field": field, "policy": name, "baseline": baseline}
                    pairs.append({**pair, "ratio": median, "low": low, "high": high})
    return pairs


def comparison_tables(directory: Path, config: Config) -> list[Table]:
    """A table for each field: how many times fewer samples a row's policy needs than a column's."""
    pairs = comparisons(read_metrics(directory), config, at=config.run.total_steps)
    tables = []
    for field in config.env.fields:
        caption = (
            "median over seeds, and its interval: the samples of the column over those after "
            "which the row's error is first as low as the column's at the end"
        )
        title = f"{field}: times fewer samples"
        table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for heading in ("", *config.policies):
            table.add_column(heading, justify="right")
        field_pairs = [x for x in pairs if x["field"] == field]
        for name in config.policies:
            row = {x["baseline"]: x for x in field_pairs if x["policy"] == name}
            table.add_row(name, *(_cell(row.get(other)) for other in config.policies))
        tables.append(table)
    return tables


def _cell(pair: dict[str, Any] | None) -> str:
    """How many times fewer samples and the interval below; 0 is an error that is never as low."""
    if pair is None:
        return ""
    ratio, low, high = (
        f"{pair[name]:.1f}" if pair[name] else "never" for name in ("ratio", "low", "high")
    )
    return ratio if low == high else f"{ratio}\n{low}–{high}"


def samples_ratio(
    steps: np.ndarray, errors: np.ndarray, baseline: np.ndarray, at: np.ndarray | int
) -> np.ndarray:
    """How many times fewer samples than `at` reach the error of the baseline after `at`, `[S]`.

    `errors` and `baseline` `[S, U]` at `steps` `[U]`; `at` is one number or `[S]`, and the last
    step where that is less. For each seed `at` divided by the number of samples after which the
    error is first as low; 0 if it never is. As curves are noisy and may cross early, even a
    baseline compared with itself may get more than 1.
    """
    ends = np.searchsorted(steps, np.minimum(at, steps[-1]))
    ends = np.broadcast_to(ends, len(baseline))
    target = np.take_along_axis(baseline, ends[:, None], axis=1)
    reached = errors <= target
    first = steps[np.argmax(reached, axis=1)]
    return np.where(reached.any(axis=1), steps[ends] / first, 0.0)


def median_interval(values: np.ndarray) -> tuple[float, float, float]:
    """`(median, low, high)`: `low` and `high` are two of the values, an interval of the median.

    With six values or more its confidence is at least 95 % for any distribution, as the number of
    values below the median is binomial. With fewer it spans all values.
    """
    ordered, count = np.sort(values), len(values)
    below = np.cumsum([math.comb(count, k) for k in range(count)]) / 2**count
    drop = max((k + 1 for k in range(count // 2) if 2 * below[k] <= 0.05), default=0)
    inner = ordered[drop - 1 : count - drop + 1] if drop else ordered
    return float(np.median(values)), float(inner[0]), float(inner[-1])
