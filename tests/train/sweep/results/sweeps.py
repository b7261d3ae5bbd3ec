"""Small sweeps with the rows of their records."""

from typing import Any

import numpy as np

from train.sweep.results.summary import Member


def member(index: int, configuration: int, seed: int, score: float | None, **values: Any) -> Member:
    return Member(index, configuration, seed, values, score, "failed" if score is None else "done")


def sweep(
    values: list[dict[str, Any]], seeds: int, failed: tuple[int, ...] = ()
) -> tuple[list[Member], list[dict[str, Any]]]:
    """Members whose scores rise with their configuration's index, and their rows."""
    members, rows, rng = [], [], np.random.default_rng(0)
    for configuration, varied_values in enumerate(values):
        for seed in range(seeds):
            index = len(members)
            score = None if index in failed else configuration + rng.normal(0, 0.1)
            state = "failed" if score is None else "done"
            members.append(Member(index, configuration, seed, varied_values, score, state))
            for i in range(2 if score is None else 5):
                finished = {"points": configuration * i / 4 + rng.normal(0, 0.1)}
                row = {"member": index, "seed": seed, "steps": 1000 * (i + 1), "agent": {}}
                rows.append(row | {"finished": finished})
    return members, rows
