"""What cropped graphs save: `python -m bench.durotaxis_cropping` prints a table.

Training of `train.durotaxis` with its agent in all slots and with `jaxrl.wrappers.graph_cropping`,
from the same seed, an update of each in turns, in microseconds of the processor, of all cores
together, for each environment step.
"""

import argparse
import time
from typing import Any

import jax
import numpy as np

from jaxrl import loop
from jaxrl.types import Agent
from jaxrl.wrappers import graph_cropping
from train.durotaxis.presets import PRESETS
from train.durotaxis.training import make_curriculum, make_parts


class Run:
    """A training from its start, update by update."""

    def __init__(self, preset: str, seed: int, crops: bool):
        config = PRESETS[preset].config
        env, params, plain = make_parts(config)
        agent: Agent = graph_cropping.make(plain) if crops else plain
        training = loop.make_loop(env, params, agent, config.loop, make_curriculum(config, params))
        self.steps = config.loop.steps_per_update
        self.costs: list[float] = []
        self.arrived: list[float] = []
        started = time.process_time()
        self.state: Any = jax.jit(training.init)(jax.random.key(seed))
        self.program = jax.jit(training.update).lower(self.state).compile()
        self.compile_s = time.process_time() - started

    def update(self) -> None:
        started = time.process_time()
        self.state, metrics = jax.block_until_ready(self.program(self.state))
        self.costs.append(1e6 * (time.process_time() - started) / self.steps)
        self.arrived.append(float(metrics.finished["arrived"]) / max(int(metrics.episodes), 1))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="linear")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=49, help="at least 5")
    options = parser.parse_args(arguments)
    runs = {
        "all slots": Run(options.preset, options.seed, False),
        "as few as needed": Run(options.preset, options.seed, True),
    }
    for i in range(options.updates):
        for run in list(runs.values())[:: 1 if i % 2 else -1]:
            run.update()
    print("| slots | fifths of the run, µs | all, µs | compilation | arrived, last fifth |")
    print("|---" * 5 + "|")
    for name, run in runs.items():
        fifths = [float(np.mean(part)) for part in np.array_split(run.costs, 5)]
        costs = ", ".join(f"{cost:.1f}" for cost in fifths)
        last = np.mean(np.array_split(run.arrived, 5)[-1])
        print(
            f"| {name} | {costs} | {np.mean(run.costs):.1f} | {run.compile_s:.1f} s | {last:.2f} |"
        )


if __name__ == "__main__":
    main()
