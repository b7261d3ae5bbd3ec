"""What colonies learn: every preset, the sets of rewards, graph against mean, and fixed policies.

python -m bench.durotaxis_learning [NAME ...] [--seeds 5] [--steps 100000]

NAME is a preset of `train.durotaxis`, `pooled` (the default without messages), or
`isotropic_fixed`, which learns nothing: the best fixed share to delete, and random deletion.
"""

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.snake_speed import append, machine
from jaxrl import evaluate
from jaxrl.numerics import statistics
from jaxrl.types import Agent
from train.durotaxis.config import Config, make_env
from train.durotaxis.presets import PRESETS
from train.durotaxis.training import make_training
from train.host.files.metrics_file import read_metrics
from train.host.running.run import run
from train.host.showing.pictures import interval

RESULTS = Path(__file__).parent / "results" / "durotaxis_learning.json"
ABLATION = ("linear", "pooled", "normal", "three_part", "state_machine")
LEARNT = 0.9  # of the episodes that end in a chunk


def config_of(name: str) -> Config:
    """A preset, or the default with a mean in the place of messages."""
    if name != "pooled":
        return PRESETS[name].config
    default = PRESETS["linear"].config
    return dataclasses.replace(
        default, network=dataclasses.replace(default.network, torso="pooled", layers=2)
    )


def measure(name: str, num_seeds: int, steps: int) -> dict[str, Any]:
    """One line: a training of all seeds side by side, and its evaluation."""
    config, started = config_of(name), time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        settings = dataclasses.replace(
            config.run,
            num_seeds=num_seeds,
            total_steps=steps or config.run.total_steps,
            directory=f"{directory}/run",
        )
        config = dataclasses.replace(config, run=settings)
        result = run(make_training(config), config, "durotaxis", name)
        rows = read_metrics(result.directory)
    assert result.evaluation
    seeds = result.evaluation.content["seeds"]
    return {
        "name": name,
        "steps": settings.total_steps,
        "seeds": num_seeds,
        "arrived": [seed["arrived"]["mean"] for seed in seeds],
        "length": [seed["length"]["mean"] for seed in seeds],
        "num_nodes": [seed["num_nodes"]["mean"] for seed in seeds],
        "learnt_at": [learnt_at(rows, seed) for seed in settings.seeds],
        "curve": [[row["steps"], row["seed"], row["finished"]["arrived"]] for row in rows],
        "seconds": time.perf_counter() - started,  # all: compilation, training, evaluation
    }


def learnt_at(rows: list[dict[str, Any]], seed: int) -> int | None:
    """Environment steps until the first chunk in which nine episodes of ten arrive."""
    scores = [(row["steps"], row["finished"]["arrived"]) for row in rows if row["seed"] == seed]
    return next((steps for steps, score in scores if score and score >= LEARNT), None)


def measure_fixed(episodes: int = 1_000) -> list[dict[str, Any]]:
    """Colonies that divide in all directions, under policies that look at nothing."""
    # two rules: delete the leftmost cells, or any, and the shares of them to try
    config = PRESETS["isotropic"].config.env
    nodes = dataclasses.replace(config, action="nodes")
    rows = []
    leftmost_ratios, random_ratios = np.arange(0.40, 0.705, 0.02), np.arange(0.40, 0.605, 0.05)
    for experiment, rule, ratios in (
        (config, "leftmost", leftmost_ratios),
        (nodes, "random", random_ratios),
    ):
        env, params = make_env(experiment)

        # an agent without a learner: its state is the share to delete
        def episodes_of(ratio, key, env=env, params=params, rule=rule):
            def act(state, memory, obs, key):
                if rule == "leftmost":
                    return state[None], memory, ()
                is_deleted = jax.random.uniform(key, (env.capacity,)) < state
                spawn = [getattr(params.spawn, name) for name in ("gamma", "alpha", "noise")]
                return (is_deleted.astype(jnp.int32), jnp.array(spawn)), memory, ()

            agent = Agent(lambda key, obs: (), lambda: (), act, lambda *args: args)
            return evaluate.evaluate(env, params, agent, ratio, key, episodes, 1, 1_000)

        # one compilation for all shares, a row for each
        play = jax.jit(episodes_of)
        for ratio in ratios:
            evaluation = jax.device_get(play(jnp.float32(ratio), jax.random.key(0)))
            arrived = evaluation.outcome["arrived"][:, 0]
            steps = evaluation.length[:, 0][arrived]
            rows.append(
                {
                    "name": f"fixed {rule}",
                    "ratio": round(float(ratio), 2),
                    "arrived": float(arrived.mean()),
                    "interval": statistics.wilson(int(arrived.sum()), len(arrived)),
                    "length": float(steps.mean()) if len(steps) else None,
                    "crowded": float(evaluation.outcome["crowded"].mean()),
                }
            )
            print(rows[-1], flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """A row of the table."""

    def format_mean(values: list[float], digits: int) -> str:
        array = np.array(values)
        half = interval(array) if len(array) > 2 else np.nan
        around = f" ± {half:.{digits}f}" if np.isfinite(half) else ""
        return f"{array.mean():.{digits}f}{around}"

    learnt = [x for x in row["learnt_at"] if x is not None]
    when = f"{np.median(learnt):,.0f} ({len(learnt)} of {row['seeds']})" if learnt else "never"
    cells = (
        row["name"],
        f"{row['steps']:,}",
        format_mean(row["arrived"], 3),
        format_mean(row["length"], 1),
        format_mean(row["num_nodes"], 1),
        when,
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(ABLATION))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="0: what the preset says")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    lines = [
        "| run | steps | arrived | steps to the end | nodes | 90 % arrive after |"
        + "\n|---|---|---|---|---|---|"
    ]
    for name in options.names:
        if name == "isotropic_fixed":
            for row in measure_fixed():
                append(options.out, {**machine(), **row})
            continue
        row = measure(name, options.seeds, options.steps)
        lines.append(line(row))
        print(lines[-1], flush=True)
        append(options.out, {**machine(), **row})  # at once: the next one takes minutes
    print("\n".join(lines))


if __name__ == "__main__":
    main()
