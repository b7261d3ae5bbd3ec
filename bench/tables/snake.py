"""The tables of Snake: speed of the environment, speed of training, scores."""

import statistics

import numpy as np

from bench import snake_scores
from bench.tables.markdown import format_rate, latest, provenance, records, table


def speed() -> str:
    record = records("snake_speed")[-1]
    rows = []
    for name, runs in record["steps_per_second"].items():
        millions = [run / 1e6 for run in runs]
        rows.append(
            (
                name,
                f"{statistics.median(millions):.2f}",
                f"{min(millions):.2f} to {max(millions):.2f}",
                f"{record['compile_seconds'][name]:.1f}",
            )
        )
    return table("Snake | M steps/s, median | least to most | compile, s", rows, [record])


def speed_ratios() -> str:
    record = records("snake_speed")[-1]
    rows = [(name, f"{times:.1f}") for name, times in record["ratios"].items()]
    return table("ratio | times", rows, [record])


def training_speed() -> str:
    rows, chosen = [], {}
    for record in records("snake_training_speed"):
        chosen |= {row["name"]: (record, row) for row in record["rows"]}
    for name, (_, row) in chosen.items():
        rates = row["steps_per_second"]
        rows.append(
            (
                f"`{name}`",
                format_rate(statistics.median(rates)),
                f"{format_rate(min(rates))} to {format_rate(max(rates))}",
                f"{row['share_of_limit']:.0%}" if "share_of_limit" in row else "",
                f"{row['compile_s']:.1f}",
            )
        )
    head = "algorithm | steps/s, median | least to most | of the matrix-product limit | compile, s"
    return table(head, rows, [record for record, _ in chosen.values()])


def scores_of(budget: str) -> str:
    """Every algorithm and observation after one budget, as `snake_scores.md` has them."""
    budget_records = [r for r in records("snake_scores") if r["budget"] == budget]
    text = snake_scores.table(budget_records, budget).split("\n\n", 1)[1].strip()
    return f"{text}\n\n{provenance(budget_records)}"


def scores_summary() -> str:
    budget_records = [r for r in records("snake_scores") if r["budget"] == "steps"]
    chosen = latest(budget_records, "algorithm", "observation")
    names = [name for name in snake_scores.ALGORITHMS if (name, "tail") in chosen]
    rows = []
    for name in names:
        means = [
            np.array([seed["mean"] for seed in chosen[name, observation]["greedy"]])
            for observation in snake_scores.OBSERVATIONS
        ]
        rows.append([f"`{name}`", *(f"{snake_scores.interquartile_mean(x):.1f}" for x in means)])
    head = f"algorithm | {' | '.join(f'`{x}`' for x in snake_scores.OBSERVATIONS)}"
    return table(head, rows, budget_records)
