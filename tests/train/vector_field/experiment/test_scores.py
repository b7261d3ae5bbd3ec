"""The table of learned fields as a terminal shows it."""

import statistics
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from jaxrl.loop import LoopMetrics
from train.host.compilation.compiled import Report
from train.host.files.rows import agent_means
from train.vector_field.config import Config
from train.vector_field.experiment import scores
from train.vector_field.training import of_rows

FIELDS = ["double_limit_cycle", "duffing"]


def measures(*bases: str) -> dict[str, Any]:
    """The measures of one seed and policy on both fields, with R² up to 30 steps ahead."""
    r2 = np.full((2, 31), 0.5).tolist()
    numbers: dict[str, Any] = {"error": [0.25, 0.5], "cosine": [0.9, 0.8], "r2": r2, "r2_free": r2}
    return numbers | ({"basis": list(bases)} if bases else {})


def table_lines(seeds: list[dict[str, Any]]) -> list[str]:
    """The lines of the table on a terminal of 80 columns."""
    console = Console(width=80)
    content = {"fields": FIELDS, "policies": ["d_optimal"], "seeds": seeds}
    with console.capture() as captured:
        console.print(scores.scores_table(content))
    return captured.get().splitlines()


def test_names_stay_whole_in_80_columns_and_the_basis_of_most_seeds_is_named():
    waves, cubic = "fourier + linear", "polynomial"
    lines = table_lines([{"d_optimal": measures(waves, x)} for x in (cubic, "bumps", cubic)])
    assert max(map(len, lines)) <= 80
    first = next(i for i, line in enumerate(lines) if "double_limit_cycle d_optimal" in line)
    assert "fourier +" in lines[first]
    assert "linear" in lines[first + 1]
    (of_duffing,) = (line for line in lines if "duffing" in line)
    assert of_duffing.split()[-1] == cubic
    assert of_duffing.split()[2:4] == ["0.500", "0.000"]


def test_no_basis_is_named_where_there_is_no_choice():
    assert not any("basis" in line for line in table_lines([{"d_optimal": measures()}]))


def test_deviations_are_those_of_a_sample_and_a_single_seed_has_none():
    errors = [0.1, 0.4, 0.25]
    seeds = [{"d_optimal": measures() | {"error": [x, 0.5]}} for x in errors]
    (line,) = (line for line in table_lines(seeds) if "double_limit_cycle" in line)
    assert line.split()[2:5] == ["0.250", f"{statistics.stdev(errors):.3f}", "0.900"]
    (line,) = (line for line in table_lines(seeds[:1]) if "double_limit_cycle" in line)
    assert line.split()[2:4] == ["0.100", "0.900"]


def test_deviations_of_samples_taken_are_those_of_a_sample():
    config = Config(policies=("random",), stop_gain=0.1)
    config = replace(config, run=replace(config.run, num_seeds=3, total_steps=900))
    config = replace(config, env=replace(config.env, fields=("duffing",)))
    counts = [200, 500, 0]  # the last one never stopped
    rows = [
        {"seed": seed, "steps": 900, "agent": {"stopped_at": [[count]]}}
        for seed, count in zip(config.run.seeds, counts, strict=True)
    ]
    console = Console(width=80)
    with console.capture() as captured:
        console.print(scores.stops_table(rows, config))
    (line,) = (line for line in captured.get().splitlines() if "duffing" in line)
    numbers = [word for word in line.split() if word.isdigit()]
    assert numbers == ["533", f"{statistics.stdev([200, 500, 900]):.0f}", "2", "3"]


def test_a_row_of_several_updates_has_the_counts_after_the_last_one():
    counts = jnp.array([[0, 0], [100, 0], [100, 0], [100, 200]], jnp.float32)  # of four updates
    places = jnp.array([[0, 1], [0, 1], [2, 1], [2, 0]], jnp.float32)
    scored = {"stopped_at": counts, "fits": places, "invalid_plans": 7 * places, "error": places}
    measures = jax.vmap(of_rows)({name: x[:, None] for name, x in scored.items()})
    measures = jax.tree.map(lambda x: x[:, None], measures)  # one seed
    report = Report(LoopMetrics(jnp.zeros(4), {}, measures), jnp.ones((4, 1), bool))
    agent = agent_means(report, 0)
    assert agent["stopped_at"] == [[100, 200]]
    assert agent["fits"] == [[2, 0]]
    assert agent["error"] == [[1, 0.75]]
    assert agent["invalid_plans"] == [[14, 0]]  # counted since the start
    config = Config(policies=("random", "off"), stop_gain=0.1)
    config = replace(config, run=replace(config.run, num_seeds=1))
    row = {"seed": 0, "steps": 200, "agent": agent}
    assert scores.invalid_plans([row], config) == {"random": 14}
    assert scores.stops([row], config).tolist() == [[[100], [200]]]
    agent["stopped_at"][0][0] = None  # as of one that goes on
    assert scores.stops([row], config).tolist() == [[[200], [200]]]


def test_experiments_are_compared_up_to_their_end():
    """Which may come before the budget is used up, and for one policy sooner than for another."""
    config = Config(policies=("myopic", "off"))
    config = replace(config, run=replace(config.run, num_seeds=1, total_steps=2_000))
    errors, stops = [(0.9, 0.8), (0.5, 0.5), (0.3, 0.5), (0.2, 0.5)], [0, 100, 100, 100]
    rows = [
        {
            "seed": 0,
            "steps": 50 * (i + 1),
            "agent": {"error": [errors[i]], "stopped_at": [[200 * (i == 3), stops[i]]]},
        }
        for i in range(4)
    ]
    ratios = lambda config, at=2_000: [x["ratio"] for x in scores.comparisons(rows, config, at)]
    assert ratios(config) == [2, 0]  # 200 samples of `off` by 100
    assert ratios(replace(config, stop_gain=0.1)) == [1, 0]  # 100 by 100
    assert ratios(config, at=100) == [1, 1]
    # a row of a second seed that is lost is no row of the first one either
    config = replace(config, run=replace(config.run, num_seeds=2))
    lost = [*rows, *(row | {"seed": 1} for row in rows if row["steps"] != 100)]
    whole = [row for row in lost if row["steps"] != 100]
    assert scores.comparisons(lost, config, 2_000) == scores.comparisons(whole, config, 2_000)
