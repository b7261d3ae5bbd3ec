"""How well each algorithm learns Snake: the published table, with seeds and intervals.

python -m bench.snake_scores [ALGORITHM ...] [--budget episodes steps] [--seeds 5]

Classic rules, 10×10. `episodes` stops a seed after 3,000 finished games, as the published runs did;
`steps` after ten million environment steps. Afterwards each seed plays 1,000 games greedily and
1,000 as it explores. Rows that the JSON file already holds, with as many seeds, are not measured
again; the table has the latest of each.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.snake_speed import append, machine
from jaxrl.agents import dqn
from jaxrl.loop import Config as LoopConfig
from train.host.compilation import compiled
from train.host.files.metrics_file import read_metrics
from train.host.running import saved_runs
from train.host.running.run import run
from train.host.scoring import scores
from train.snake.config import DQN, AnyConfig, Network
from train.snake.presets import PRESETS
from train.snake.training import make_training

RESULTS = Path(__file__).parent / "results" / "snake_scores.json"
TABLE = Path(__file__).parent / "snake_scores.md"
OBSERVATIONS = ("features", "flood", "tail")
ENDINGS = ("entrapped", "death_wall", "death_self", "truncated")
EPISODES, STEPS = 3_000, 10_000_000
DISTRIBUTION = {"categorical": True, "value_low": -2.0, "value_high": 50.0}
NO_EPSILON = {"epsilon_start": 0.0, "epsilon_end": 0.0}


PLAIN = Network()
FEW = LoopConfig(num_envs=256, num_steps=8)
SHORT = LoopConfig(num_envs=64, num_steps=32)  # more updates than the presets make of as many steps
PQN = PRESETS["pqn"].config


def variant(network: Network = PLAIN, **agent: Any) -> DQN:
    """The DQN of the published system, one switch at a time."""
    base = PRESETS["dqn"].config
    assert isinstance(base, DQN)
    return replace(base, network=network, agent=dqn.Config(**{"double": False, **agent}))


ALGORITHMS: dict[str, AnyConfig] = {
    "dqn": variant(),
    "double": variant(double=True),
    "dueling": variant(Network(dueling=True)),
    "noisy": variant(Network(noisy=True), **NO_EPSILON),
    "prioritised": variant(prioritised=True),
    "c51": variant(Network(atoms=51), **DISTRIBUTION),
    "rainbow": PRESETS["rainbow"].config,
    "ppo": replace(PRESETS["ppo"].config, loop=SHORT),
    "a2c": PRESETS["a2c"].config,
    "reinforce": PRESETS["reinforce"].config,
    "pqn": replace(PQN, loop=SHORT, agent=replace(PQN.agent, epsilon_end=0.01)),
}
PUBLISHED = {  # single runs, mean of the last 100 training games
    "features": (16.78, 14.23, 14.87, 16.98, 14.65, None, 16.21, 17.69, 0.24, 0.18, None),
    "flood": (25.44, 24.80, 22.34, 26.94, 25.12, None, 37.22, 35.27, 0.22, 0.17, None),
    "tail": (None,) * 11,
}


def make_config(name: str, observation: str, budget: str, seeds: int) -> AnyConfig:
    """An algorithm on an observation, with so many seeds, for 3,000 games or ten million steps."""
    config = ALGORITHMS[name]
    if budget == "episodes" and name in ("ppo", "pqn"):  # as published: much from little
        agent = replace(config.agent, epochs=10, minibatches=32)
        config = replace(config, agent=agent, loop=FEW, anneal_steps=0)
    run_settings = replace(
        config.run,
        num_seeds=seeds,
        total_steps=STEPS,
        chunk_steps=20_000 if budget == "episodes" else 500_000,
        max_episodes=EPISODES if budget == "episodes" else None,
    )
    game = replace(config.env, observation=observation, rules="classic", rows=10, cols=10)
    return replace(config, env=game, run=run_settings)


def measure(name: str, observation: str, budget: str, seeds: int) -> dict[str, Any]:
    """A row: the score of every seed, greedy and sampled, and how the games ended."""
    config = make_config(name, observation, budget, seeds)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        config = replace(config, run=replace(config.run, directory=f"{directory}/run"))
        result = run(make_training(config), config, "snake", name)
        last = read_metrics(result.directory)[-1]
    agents = scores.agents_of(result.state.agent, seeds)
    keys = [compiled.keys_of(seed)[1] for seed in config.run.seeds]
    exploring = make_training(saved_runs.with_run_fields(config, evaluation_greedy=False))
    sampled = exploring.evaluate(agents, config.run.seeds, keys)
    assert result.evaluation
    return {
        "algorithm": name,
        "observation": observation,
        "budget": budget,
        "steps": last["steps"],
        "steps_per_second": last["steps_per_second"],
        "seconds": time.perf_counter() - started,  # all: compilation, training, evaluation
        "greedy": [seed_scores(x) for x in result.evaluation.content["seeds"]],
        "sampled": [seed_scores(x) for x in sampled.content["seeds"]],
    }


def key_of(row: dict[str, Any]) -> tuple[str, str, str, int]:
    """Algorithm, observation, budget and number of seeds of a row."""
    return row["algorithm"], row["observation"], row["budget"], len(row["greedy"])


def seed_scores(measures: dict[str, Any]) -> dict[str, float]:
    """What the table tells of one seed."""
    score = measures["score"]
    endings = {name: measures[name]["mean"] for name in ENDINGS}
    return {"mean": score["mean"], "median": score["median"], "max": score["max"], **endings}


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """The mean of the middle half `[..., S] -> [...]` (Agarwal et al. 2021), weighting the edges.

    Of few seeds the quartiles lie within values, of which the part inside counts.
    """
    values = np.sort(values, axis=-1)
    count = values.shape[-1]
    edges = np.arange(count + 1) / count
    inside = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None)
    return (values * inside).sum(-1) / inside.sum()


def interval(values: np.ndarray, resamples: int = 10_000) -> tuple[float, float]:
    """The 95 % bootstrap interval of the interquartile mean over seeds."""
    chosen = np.random.default_rng(0).integers(0, len(values), (resamples, len(values)))
    low, high = np.percentile(interquartile_mean(values[chosen]), [2.5, 97.5])
    return float(low), float(high)


def table(rows: list[dict[str, Any]], budget: str) -> str:
    """The latest rows of one budget in Markdown, by the order in which they are given."""
    amount = f"{EPISODES:,} finished games" if budget == "episodes" else f"{STEPS:,} steps"
    lines = [
        f"\n## After {amount} a seed\n",
        "| algorithm | sees | greedy, IQM (95 %) | seeds | best game | sampled | entrapped "
        "| wall | self | cut | published |",
        "|---" * 11 + "|",
    ]
    names = list(ALGORITHMS)
    order = lambda r: (OBSERVATIONS.index(r["observation"]), names.index(r["algorithm"]))
    latest = {order(r): r for r in rows if r["budget"] == budget}
    for _, row in sorted(latest.items()):
        column = lambda what, row=row: np.array([seed[what] for seed in row["greedy"]])
        sampled = interquartile_mean(np.array([seed["mean"] for seed in row["sampled"]]))
        low, high = interval(column("mean"))
        published = PUBLISHED[row["observation"]][names.index(row["algorithm"])]
        cells = [
            row["algorithm"],
            row["observation"],
            f"{interquartile_mean(column('mean')):.1f} ({low:.1f} to {high:.1f})",
            f"{len(row['greedy'])}",
            f"{column('max').max():.0f}",
            f"{sampled:.1f}",
            *(f"{100 * column(ending).mean():.0f} %" for ending in ENDINGS),
            "" if published is None else f"{published}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def rollouts() -> str:
    """Where PPO and PQN differ from their presets, in words."""
    few, short = (f"{x.num_envs} games by {x.num_steps} steps" for x in (FEW, SHORT))
    return (
        f"PPO and PQN learn from {short} at a time, which makes more of ten million than the "
        f"presets do; for 3,000 games, as published, from {few}, ten times over. PQN takes one "
        f"random move in a hundred to the end, its preset none."
    )


def write_table(rows: list[dict[str, Any]]) -> None:
    """Renders all rows beside this file."""
    machines = {
        f"{row['cpu']}, {row['cores']} cores, Python {row['python']}, JAX {row['versions']['jax']}"
        for row in rows
    }
    dates = [row["date"][:10] for row in rows]
    days = " to ".join(sorted({min(dates), max(dates)}))
    head = (
        "# Snake, classic rules, 10×10: every algorithm\n\n"
        "Food eaten (97 at most), games cut after 1,000 steps: "
        "`python -m bench.snake_scores --budget episodes steps`. "
        "IQM: interquartile mean over the seeds of the mean over 1,000 greedy games, with its "
        "bootstrap interval; sampled: the same as the agent explores. How greedy games end: "
        "entrapped (no move would have saved it, judged before the move), at a wall, at itself, "
        "cut by the clock. Published: one run, the last 100 games of 3,000 in training. "
        f"{rollouts()}\n\n"
        f"On {'; '.join(sorted(machines))}; {days}.\n"
    )
    budgets = [x for x in ("episodes", "steps") if any(row["budget"] == x for row in rows)]
    parts = [table(rows, budget) for budget in budgets]
    TABLE.write_text(head + "\n".join(parts) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithms", nargs="*", metavar="ALGORITHM", help=", ".join(ALGORITHMS))
    parser.add_argument("--observations", nargs="+", choices=OBSERVATIONS, default=OBSERVATIONS)
    parser.add_argument("--budget", nargs="+", choices=("episodes", "steps"), default=("episodes",))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    if unknown := set(options.algorithms) - set(ALGORITHMS):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(ALGORITHMS)}")
    for budget in options.budget:
        for observation in options.observations:
            for name in options.algorithms or ALGORITHMS:
                saved_records = json.loads(options.out.read_bytes()) if options.out.exists() else []
                key = (name, observation, budget, options.seeds)
                if key not in map(key_of, saved_records):
                    append(options.out, {**machine(), **measure(*key)})
    if options.out == RESULTS:
        write_table(json.loads(RESULTS.read_bytes()))


if __name__ == "__main__":
    main()
