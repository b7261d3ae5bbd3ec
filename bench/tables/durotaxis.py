"""The tables of durotaxis: learning, speed of the environment and of training."""

import re

import numpy as np

from bench import durotaxis_tracks
from bench.tables.markdown import format_rate, latest, mean_and_interval, records, round_rate, table

STEPS = 100_000
"""Of the trainings that the page compares; longer and shorter ones are kept apart."""


def learning() -> str:
    trained = (r for r in records("durotaxis_learning") if "learnt_at" in r)
    chosen = latest((r for r in trained if r["steps"] == STEPS), "name")
    names = ("linear", "pooled", "normal", "three_part", "state_machine")
    rows = []
    for record in (chosen[name] for name in names):
        when = [steps for steps in record["learnt_at"] if steps is not None]
        rows.append(
            (
                f"`{record['name']}`",
                mean_and_interval(record["arrived"], 3),
                mean_and_interval(record["length"], 1),
                f"{np.median(when):,.0f} ({len(when)} of {record['seeds']})" if when else "never",
            )
        )
    head = "run | arrived | steps to the end | steps of training until 90 % arrive"
    return table(head, rows, [chosen[name] for name in names])


def speed() -> str:
    record = records("durotaxis_speed")[-1]
    best = {
        (row["name"], row["colonies"], row["capacity"]): max(row["steps_per_second"])
        for row in record["rows"]
    }
    words = {"unseen": "unseen", "local": "without hull and centrality", "full": "all features"}
    core_counts = {int(x) for name, *_ in best for x in re.findall(r", (\d+) cores$", name)}
    suffixes = {1: "", **{cores: f", {cores} cores" for cores in sorted(core_counts)}}
    rows = [
        (
            f"{colonies:,}",
            str(cores),
            words[observation],
            *(
                format_rate(best[f"directed {observation}, {policy}{suffix}", colonies, 128])
                for policy in ("hold", "small")
            ),
        )
        for colonies in (2048, 256)
        for cores, suffix in suffixes.items()
        for observation in words
    ]
    head = "colonies | devices | observation | 75 cells, steps/s | 6 cells, steps/s"
    return table(head, rows, [record])


def training_speed() -> str:
    record = records("durotaxis_speed")[-1]
    rows = [
        (row["name"].removeprefix("training, "), f"{round_rate(max(row['steps_per_second'])):,.0f}")
        for row in record["rows"]
        if row["name"].startswith("training")
    ]
    return table("network | training, steps/s", rows, [record])


def tracks() -> str:
    """A row for each parameter of each case: how many intervals hold the truth."""
    by_case = latest(records("durotaxis_tracks"), "case")
    chosen = [by_case[name] for name in durotaxis_tracks.CASES if name in by_case]
    rows = [
        (
            f"`{record['case']}`",
            name,
            f"{row['truth']:.3g}",
            f"{row['median']:.3g}",
            f"{float(row['median_low']):.3g} to {float(row['median_high']):.3g}",
            f"{row['held']} of {record['repeats']}",
            str(row["open_ended"] or ""),
        )
        for record in chosen
        for name, row in record["parameters"].items()
    ]
    head = (
        "case | parameter | truth | median estimate | median ends of intervals | held the truth"
        " | with an open end"
    )
    return table(head, rows, chosen)
