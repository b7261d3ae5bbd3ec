"""What the record of a run tells of its experiments."""

import statistics
from dataclasses import replace

import jax
import jax.numpy as jnp
from rich.console import Console

from jaxrl.loop import LoopMetrics
from train.host.compilation.compiled import Report
from train.host.files.rows import agent_means
from train.vector_field.config import Config
from train.vector_field.experiment import run_record
from train.vector_field.training import of_rows


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
        console.print(run_record.stops_table(rows, config))
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
    assert run_record.invalid_plans([row], config) == {"random": 14}
    assert run_record.stops([row], config).tolist() == [[[100], [200]]]
    agent["stopped_at"][0][0] = None  # as of one that goes on
    assert run_record.stops([row], config).tolist() == [[[200], [200]]]
