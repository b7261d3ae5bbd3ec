"""Training with random numbers in one kernel, beside JAX's own loop (see `envs.threefry`).

python -m bench.random_numbers [PROGRAM:PRESET ...] [--seconds 3] [--rounds 3] [--out FILE]

Each case is compiled and timed in a process of its own, with one and the other in turns. The
numbers drawn are the same, so both do the same work. CPUs only: elsewhere JAX has no such loop.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import jax
from jax._src.random import threefry2x32 as threefry_of_jax
from jax.interpreters import mlir

from bench.compiling import program_and_config
from bench.snake_speed import append, machine

RESULTS = Path(__file__).parent / "results" / "random_numbers.json"
CASES = (
    *("snake:near", "snake:ppo", "snake:dqn", "two_snake:curriculum"),
    *("gymnax:ppo", "gymnax:pqn", "durotaxis:linear"),
)
WAYS = ("loop", "kernel")


def take_the_loop_of_jax() -> None:
    """Makes JAX compile Threefry as it does by itself."""
    rule = threefry_of_jax._threefry2x32_cpu_lowering_rule
    mlir.register_lowering(threefry_of_jax.threefry2x32_p, rule, platform="cpu")


def time_training(case: str, seconds: float) -> dict[str, float]:
    """Environment steps per second of updates in a row, the best of three, and compilation."""
    program, config = program_and_config(case, 1)
    training = program.training(config)
    state = jax.jit(training.init)(jax.random.key(0))
    started = time.perf_counter()
    update = jax.jit(training.update, donate_argnums=0).lower(state).compile()
    compile_s = time.perf_counter() - started
    rates = []
    for _ in range(3):
        started, updates = time.perf_counter(), 0
        while time.perf_counter() - started < seconds / 3:
            state, _ = jax.block_until_ready(update(state))
            updates += 1
        rates.append(updates * training.steps_per_update / (time.perf_counter() - started))
    return {"steps_per_second": max(rates), "compile_seconds": compile_s}


def measure(case: str, seconds: float, rounds: int) -> dict[str, list[dict[str, float]]]:
    """The timings of each way, in turns."""
    timings: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            flags = ["--way", way, "--seconds", str(seconds)]
            command = [sys.executable, "-m", "bench.random_numbers", case, *flags]
            output = subprocess.run(
                command, capture_output=True, encoding="utf-8", check=True
            ).stdout
            timings[way].append(json.loads(output.splitlines()[-1]))
    return timings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="PROGRAM:PRESET")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each timing")
    parser.add_argument("--rounds", type=int, default=3, help="timings of each way")
    parser.add_argument("--way", choices=WAYS, help="time one way, once, in this process")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    if options.way:
        if options.way == "loop":
            take_the_loop_of_jax()
        print(json.dumps(time_training(options.cases[0], options.seconds)))
        return
    for case in options.cases:
        timings = measure(case, options.seconds, options.rounds)
        speed = {
            way: statistics.median(timing["steps_per_second"] for timing in timings[way])
            for way in WAYS
        }
        ratio = speed["kernel"] / speed["loop"]
        print(f"{case}: {speed['loop']:,.0f} and {speed['kernel']:,.0f} steps/s, {ratio:.2f} times")
        append(options.out, {**machine(), "case": case, "timings": timings})


if __name__ == "__main__":
    main()
