"""R² of simple models on the held-out episodes of `vector_field_learning sequence_vae`, ten seeds.

python -m bench.vector_field_baselines [POLICY ...] [--seeds 10] [--steps 10000]

Policies that do not look at the learner give the same recordings with any: here with a Bayesian one
of few bumps, as a sequence VAE would take half an hour. The others are run with the
sequence VAE itself.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.snake_speed import append, machine
from bench.vector_field_learning import CASES
from train.host.program import Run
from train.host.running.run import run
from train.host.scoring.scores import agents_of
from train.vector_field import experiment_baselines
from train.vector_field.config import Config
from train.vector_field.factories import policy
from train.vector_field.program import PROGRAM
from train.vector_field.recorded import baselines
from train.vector_field.training import make_training, samples_of

RESULTS = Path(__file__).parent / "results" / "vector_field_baselines.json"
CASE = CASES["sequence_vae"]
AHEAD = (1, 10, 30)


def is_blind(name: str) -> bool:
    """Whether a policy does not look at the learner."""
    return policy(CASE, name).kind == "hold"


def experiments(policies: tuple[str, ...], seeds: int, steps: int) -> Config:
    """The case `sequence_vae` with these policies; a cheap learner if none of them looks at it."""
    settings = replace(CASE.run, num_seeds=seeds, total_steps=steps)
    config = replace(CASE, policies=policies, run=settings)
    if not all(map(is_blind, policies)):
        return config
    few = replace(CASE.bayesian, grid=replace(CASE.bayesian.grid, per_axis=3))
    return replace(config, learner="bayesian", bayesian=few)


def measure(config: Config) -> dict[str, Any]:
    """Means over the seeds by baseline and policy, 1, 10 and 30 steps ahead."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        config = replace(config, run=replace(config.run, directory=f"{directory}/run"))
        result = run(make_training(config), config, "vector_field", "sequence_vae")
        agents = agents_of(result.state.agent, config.run.num_seeds)
        finished = Run(result.directory, PROGRAM, config, result.updates, agents, result.state)
        samples = samples_of(finished)
        assert samples is not None
        curves = experiment_baselines.measure_baselines(finished, samples, None)["r2"]
    at = lambda curve: {str(k): float(curve[k]) for k in AHEAD}
    return {
        "learner": config.learner,
        "seeds": config.run.num_seeds,
        "steps": config.run.total_steps,
        "r2": {
            name: {p: at(curves[name][:, i, 0].mean(0)) for i, p in enumerate(config.policies)}
            for name in baselines.NAMES
        },
        "seconds": time.perf_counter() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policies", nargs="*", default=CASE.policies, metavar="POLICY")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    for blind in (True, False):
        names = tuple(name for name in options.policies if is_blind(name) == blind)
        if names:
            row = measure(experiments(names, options.seeds, options.steps))
            append(options.out, {**machine(), **row})
            print(row, flush=True)


if __name__ == "__main__":
    main()
