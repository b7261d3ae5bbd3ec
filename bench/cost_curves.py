"""How time, memory and compilation of an update grow with one size of an experiment.

python -m bench.cost_curves [CURVE ...] [--seconds 1] [--out FILE]

Each point is a process of its own: it compiles an update, makes some, and takes the processor time
of as many as fill so many seconds, the least of three. A curve says how steep it must be: what is
done for each of n things takes n times as long, and what looks at pairs of them n² times. Where a
step of a curve is steeper, an update does something more than once, or leaves a cache.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax

from bench.compiling import program_and_config
from bench.snake_speed import append, machine
from train.host.compilation import cpu_kernels

RESULTS = Path(__file__).parent / "results" / "cost_curves.json"
WARMUP = 3_000  # steps before the clock starts, after which Q-learning learns
WARMUP_SECONDS = 10.0  # after which the clock starts in any case
REPEATS = 3


class Curve(NamedTuple):
    """A case of `bench.compiling` with `{n}` where the size stands."""

    case: str
    sizes: tuple[int, ...]
    power: int = 1
    """Of `n`, for the number of things: 2 where it is the side of a board."""
    least: int = 1
    """The exponent that cannot be avoided in the number of things: 0 where each costs nothing."""


BOARD = ":env.rows={n}:env.cols={n}"
ONE_POLICY = 'vector_field:seen:env.fields=["limit_cycle"]:bayesian.basis="bumps"'
D_OPTIMAL = f'{ONE_POLICY}:policies=["d_optimal"]'
CURVES = {
    "snake, games": Curve("snake:ppo:loop.num_envs={n}", (128, 512, 2048, 8192)),
    "snake, steps of a rollout": Curve("snake:ppo:loop.num_steps={n}", (16, 64, 256, 1024)),
    "snake `tail`, cells": Curve(f"snake:ppo{BOARD}", (6, 10, 16, 24, 32), power=2),
    "snake `near`, cells": Curve(f"snake:near{BOARD}", (6, 10, 16, 24, 32), power=2),
    "snake `planes`, cells": Curve(
        f'snake:ppo:loop.num_envs=64:env.observation="planes"{BOARD}', (6, 10, 16, 24), power=2
    ),
    "two snakes, cells": Curve(f"two_snake:curriculum{BOARD}", (9, 12, 16, 24), power=2),
    "dqn, transitions kept": Curve(
        "snake:dqn:agent.capacity={n}", (10_000, 100_000, 1_000_000), least=0
    ),
    "rainbow, transitions kept": Curve(
        "snake:rainbow:agent.capacity={n}", (10_000, 100_000, 1_000_000), least=0
    ),
    "dqn, batch": Curve("snake:dqn:agent.batch_size={n}", (64, 256, 1024, 4096)),
    "recurrent, steps of a rollout": Curve(
        "gymnax:recurrent:loop.num_steps={n}", (32, 128, 512, 2048)
    ),
    "durotaxis, cells kept": Curve(
        "durotaxis:linear:loop.num_envs=32:env.capacity={n}", (100, 200, 400), least=2
    ),
    "durotaxis, colonies": Curve("durotaxis:linear:loop.num_envs={n}", (32, 128, 512)),
    "allo, states": Curve('allo:allo:env.maze="corridors-{n}"', (100, 400, 1600, 3200), least=2),
    "allo, features": Curve("allo:allo:agent.num_features={n}", (4, 8, 16, 32)),
    "active dynamics, horizon": Curve(
        f"{D_OPTIMAL}:bayesian.policy.planner.horizon={{n}}", (5, 10, 20, 40)
    ),
    "active dynamics, candidates": Curve(
        f"{D_OPTIMAL}:bayesian.policy.planner.candidates={{n}}", (16, 64, 256)
    ),
    "active dynamics, bumps": Curve(
        f'{ONE_POLICY}:policies=["myopic"]:bayesian.grid.per_axis={{n}}',
        (8, 16, 24, 32),
        power=2,
        least=2,
    ),
}


def time_update(case: str, seconds: float) -> dict[str, float]:
    """Processor time of an update, memory of state and temporaries, time of compilation."""
    program, config = program_and_config(case, 1)
    training = program.training(config)
    state = jax.jit(training.init)(jax.random.key(0))
    started = time.perf_counter()
    traced = jax.jit(training.update, donate_argnums=0).trace(state)
    options = cpu_kernels.compiler_options(traced.jaxpr.jaxpr, training.work)
    update = traced.lower().compile(options)
    compile_s = time.perf_counter() - started
    steps, started = 0, time.perf_counter()
    while steps < WARMUP and time.perf_counter() - started < WARMUP_SECONDS:
        state, _ = jax.block_until_ready(update(state))
        steps += training.steps_per_update
    times = []
    for _ in range(REPEATS):
        started, updates = time.process_time(), 0
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            state, _ = jax.block_until_ready(update(state))
            updates += 1
        times.append((time.process_time() - started) / updates)
    use: Any = update.memory_analysis()
    memory = use.argument_size_in_bytes + use.temp_size_in_bytes
    return {"ms": 1e3 * min(times), "MiB": memory / 2**20, "compile_s": compile_s}


def measure(case: str, seconds: float) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "bench.cost_curves", "--point", case]
    command += ["--seconds", str(seconds)]
    output = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    return json.loads(output.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("curves", nargs="*", metavar="CURVE", help="; ".join(CURVES))
    parser.add_argument("--seconds", type=float, default=1.0, help="of each timing")
    parser.add_argument("--point", help="measure this case, in this process")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    if options.point:
        print(json.dumps(time_update(options.point, options.seconds)))
        return
    if unknown := set(options.curves) - set(CURVES):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {'; '.join(CURVES)}")
    for name in options.curves or CURVES:
        points = []
        for size in CURVES[name].sizes:
            case = CURVES[name].case.replace("{n}", str(size))
            points.append({"size": size, **measure(case, options.seconds)})
            print(f"{name} {size:,}: {describe(points[-1])}", flush=True)
        append(options.out, {**machine(), "curve": name, "points": points})


def describe(point: dict[str, float]) -> str:
    """A point in one line."""
    ms, memory, compile_s = (point[key] for key in ("ms", "MiB", "compile_s"))
    return f"{ms:,.1f} ms, {memory:,.1f} MiB, compiled in {compile_s:.1f} s"


if __name__ == "__main__":
    main()
