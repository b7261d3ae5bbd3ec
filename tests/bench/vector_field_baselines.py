"""R² of simple models on the held-out episodes of `vector_field_learning sequence_vae`, ten seeds.

python -m tests.bench.vector_field_baselines [--seeds 10] [--steps 10000]

Of the policies that do not look at the learner, which give the same recordings with any: here with
a Bayesian one of few bumps, as a sequence VAE would take half an hour.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.snake_speed import append, machine
from tests.bench.vector_field_learning import CASES
from train.host.program import Run
from train.host.run import run
from train.host.scores import agents_of
from train.vector_field import baselines, experiment_baselines
from train.vector_field.config import Config
from train.vector_field.program import PROGRAM
from train.vector_field.training import make_training, samples_of

RESULTS = Path(__file__).parent / "results" / "vector_field_baselines.json"
POLICIES = ("bang50", "hold20", "random")
AHEAD = (1, 10, 30)


def experiments(seeds: int, steps: int) -> Config:
    """Those of the case `sequence_vae`."""
    config = CASES["sequence_vae"]
    few = replace(config.bayesian, grid=replace(config.bayesian.grid, per_axis=3))
    settings = replace(config.run, num_seeds=seeds, total_steps=steps)
    return replace(config, learner="bayesian", policies=POLICIES, bayesian=few, run=settings)


def measured(config: Config) -> dict[str, Any]:
    """Means over the seeds by baseline and policy, 1, 10 and 30 steps ahead."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        config = replace(config, run=replace(config.run, directory=f"{directory}/run"))
        result = run(make_training(config), config, "vector_field", "sequence_vae")
        agents = agents_of(result.state.agent, config.run.num_seeds)
        finished = Run(result.directory, PROGRAM, config, result.updates, agents, result.state)
        samples = samples_of(finished)
        assert samples is not None
        found = experiment_baselines.measured(finished, samples, None)["r2"]
    return {
        "seeds": config.run.num_seeds,
        "steps": config.run.total_steps,
        "r2": {
            name: {
                policy: {str(k): float(np.mean(found[name][:, p, 0, k])) for k in AHEAD}
                for p, policy in enumerate(POLICIES)
            }
            for name in baselines.NAMES
        },
        "seconds": time.perf_counter() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    row = measured(experiments(options.seeds, options.steps))
    append(options.out, {**machine(), **row})
    print(row)


if __name__ == "__main__":
    main()
