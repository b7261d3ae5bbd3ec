"""Seeds on the cores of a CPU beside seeds side by side on one device: steps/s, alternated.

python -m bench.cores [CASE ...] [--rounds 5] [--out FILE]

A case is a program, a preset and a number of seeds, such as `gymnax sac 10`. Both variants run in
one process, chunk after chunk in turns; compiling and a first chunk are not counted.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.host.machine import start
from train.host.program import find
from train.host.running.preparation import trace

RESULTS = Path(__file__).parent / "results" / "cores.json"
VARIANTS = {"one": "1", "cores": "auto"}
"""What is compared, and its `--devices`."""


class Case(NamedTuple):
    """What is trained."""

    program: str
    preset: str
    seeds: int
    updates: int  # of a chunk

    @property
    def name(self) -> str:
        return f"{self.program} {self.preset} {self.seeds}"


CASES = (
    Case("gymnax", "ppo", 10, 10),
    Case("gymnax", "ppo_minatar", 10, 4),
    Case("gymnax", "recurrent", 10, 2),
    Case("gymnax", "pqn", 10, 4),
    Case("gymnax", "dqn", 10, 1_000),
    Case("gymnax", "sac", 10, 400),
    Case("snake", "ppo", 4, 4),
    Case("snake", "rainbow", 4, 50),
    Case("durotaxis", "linear", 4, 2),
    Case("allo", "allo", 10, 50),
    Case("vector_field", "seen", 4, 50),
)


def prepare(case: Case, devices: str) -> tuple[Callable[[], float], float, int]:
    """`(seconds of the next chunk, seconds of compiling, steps of a chunk)`."""
    program = find(case.program, "the command line")
    config: Any = program.presets[case.preset].config
    run = replace(config.run, num_seeds=case.seeds, devices=devices)
    config = replace(config, run=run)
    training = program.training(config)
    length = case.updates * training.steps_per_update
    config = replace(config, run=replace(run, chunk_steps=length))
    started = time.perf_counter()
    programs = trace(training, config).compile()
    compiling = time.perf_counter() - started
    state: list[Any] = [programs.init(config.run.members.starts)]

    def chunk() -> float:
        started = time.perf_counter()
        state[0], report = programs.chunk(state[0], np.int32(case.updates))
        jax.block_until_ready((state[0].key, report.finite))
        return time.perf_counter() - started

    return chunk, compiling, length * case.seeds


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """Steps/s of all seeds together in each round, and the ratio of both variants."""
    from bench.snake_speed import machine

    chunks, compile_s, seconds = {}, {}, {name: [] for name in VARIANTS}
    steps = 0
    for name, devices in VARIANTS.items():
        chunks[name], compile_s[name], steps = prepare(case, devices)
        chunks[name]()
    for round_ in range(rounds):
        order = list(VARIANTS) if round_ % 2 else list(reversed(VARIANTS))
        for name in order:
            seconds[name].append(chunks[name]())
    ratios = [one / cores for one, cores in zip(seconds["one"], seconds["cores"], strict=True)]
    return {
        **machine(),
        "case": case.name,
        "devices": jax.device_count(),
        "compile_s": {name: round(s, 1) for name, s in compile_s.items()},
        "steps_per_second": {name: steps / statistics.median(s) for name, s in seconds.items()},
        "ratio": [statistics.median(ratios), min(ratios), max(ratios)],
    }


def main() -> None:
    from bench.snake_speed import append

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="such as 'gymnax sac 10'; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    for case in CASES:
        if options.cases and case.name not in options.cases:
            continue
        record = measure(case, options.rounds)
        append(options.out, record)
        rates = {name: f"{rate:,.0f}" for name, rate in record["steps_per_second"].items()}
        print(f"{case.name}: {rates}, {record['ratio'][0]:.2f} times as fast", flush=True)


if __name__ == "__main__":
    start.begin()
    main()
