"""How fast Durotaxis is: `python -m bench.durotaxis_speed` prints tables.

Environment: many colonies side by side in one `lax.scan`, automatic reset, a policy that keeps the
number of nodes steady (`bench.durotaxis_cases`). `unseen` reads neither observation nor info, and
the compiler leaves them out; `local` and `full` write the observation to memory, as an agent would
find it, and add it up.

With JAX_NUM_CPU_DEVICES=2 there are rows where two cores share the colonies, each a device.

Training: one call is some updates of `train.durotaxis`, all its own, evaluation apart.

All rows are measured in turns, so that a busy moment of the machine falls on all of them, and in
seconds of the clock as well as of the processor, which a shared machine disturbs less. The
original was not run beside ours: `BEFORE` holds what it was once measured at.
"""

import argparse
import math
import os
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import jax

from bench.durotaxis_cases import SEEN, Case, step_cases, training_case
from bench.snake_speed import LEAST_SECONDS, append, machine

RESULTS = Path(__file__).parent / "results" / "durotaxis_speed.json"
BEFORE = {"last version, N = 76": 2.66, "reference version, N = 11": 11.8}
"""Environment steps per second, with policy and without learning, of one colony, which is all that
the original can step: its commits f93f3d6 and f1e7ee9, one run of 90 s each, measured before on
another machine, of two cores."""


class Timing(NamedTuple):
    case: Case
    runs: list[float]  # environment steps per second
    cpu: list[float]  # µs of processor time per step, of all cores together
    nodes: float  # mean number of nodes; 0 where unknown


def measure(cases: list[Case], repeats: int) -> list[Timing]:
    """Times every case `repeats` times, in turns, after a warm-up that reaches the steady state."""
    timings, calls = [], []
    for case in cases:
        case.run()
        started = time.perf_counter()
        nodes = case.run()
        calls.append(max(1, round(LEAST_SECONDS / (time.perf_counter() - started))))
        timings.append(Timing(case, [], [], 0.0 if nodes is None else float(nodes)))
    for _ in range(repeats):
        for timing, count in zip(timings, calls, strict=True):
            started, cpu_started = time.perf_counter(), time.process_time()
            for _ in range(count):
                timing.case.run()
            steps = count * timing.case.steps
            timing.cpu.append(1e6 * (time.process_time() - cpu_started) / steps)
            timing.runs.append(steps / (time.perf_counter() - started))
    return timings


def all_cases(colonies: list[int], steps: int, updates: int) -> list[Case]:
    cases, cores = [], len(jax.devices())
    for number in colonies:
        for observation in SEEN:
            for num_cores in sorted({1, cores}):
                cases += step_cases(
                    observation, number, 128, "directed", steps, ["hold", "small"], num_cores
                )
        cases += step_cases("unseen", number, 128, "isotropic", steps, ["hold"])
    for capacity in (64, 256, 512):
        for observation in ("unseen", "local"):
            cases += step_cases(observation, colonies[0], capacity, "directed", steps, ["hold"])
    return cases + [training_case(torso, updates) for torso in ("graph", "pooled")]


def table(timings: list[Timing]) -> str:
    head = (
        "| Durotaxis | colonies | C | mean N | steps/s, best | median | µs of processor | compile |"
    )
    lines = [head, "|---" * 8 + "|"]
    for case, runs, cpu, nodes in timings:
        nodes_text = f"{nodes:.0f}" if nodes else ""
        lines.append(
            f"| {case.name} | {case.colonies} | {case.capacity} | {nodes_text} | {max(runs):,.0f} "
            f"| {statistics.median(runs):,.0f} | {min(cpu):.1f} | {case.compile_s:.1f} s |"
        )
    return "\n".join(lines)


def scaling(timings: list[Timing]) -> str:
    """How time grows with the capacity, where N does as well: flat if it is C log C."""
    lines = ["| directed, hold | C | µs of processor | ns per C log2 C |", "|---" * 4 + "|"]
    least = min(timing.case.colonies for timing in timings if "directed" in timing.case.name)
    chosen = [t for t in timings if t.case.colonies == least and t.case.name.endswith(", hold")]
    for observation in ("unseen", "local"):
        matching = [t for t in chosen if t.case.name == f"directed {observation}, hold"]
        for timing in sorted(matching, key=lambda t: t.case.capacity):
            capacity, cost = timing.case.capacity, min(timing.cpu)
            share = 1e3 * cost / (capacity * math.log2(capacity))
            lines.append(f"| {observation} | {capacity} | {cost:.1f} | {share:.1f} |")
    return "\n".join(lines)


def ratios(timings: list[Timing]) -> dict[str, float]:
    """Training, which acts and learns, over the original's steps with policy, without learning."""
    return {
        f"{timing.case.name} / {name}": max(timing.runs) / speed
        for timing in timings
        if timing.case.name.startswith("training")
        for name, speed in BEFORE.items()
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--colonies", type=int, nargs="+", default=[256, 2048], help="side by side")
    parser.add_argument("--steps", type=int, default=50, help="steps of each colony in one scan")
    parser.add_argument("--updates", type=int, default=2, help="updates of training in one call")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs of each row")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args(arguments)
    busy = os.getloadavg()
    timings = measure(all_cases(options.colonies, options.steps, options.updates), options.repeats)
    speed_ratios = ratios(timings)
    print(table(timings), scaling(timings), sep="\n\n")
    print("\n| ratio, the original as measured before | times |\n|---|---|")
    print(*(f"| {name} | {ratio:,.0f} |" for name, ratio in speed_ratios.items()), sep="\n")
    rows = [
        {
            **timing.case._asdict(),
            "nodes": timing.nodes,
            "steps_per_second": [round(run) for run in timing.runs],
            "cpu_us_per_step": [round(cost, 2) for cost in timing.cpu],
        }
        for timing in timings
    ]
    for row in rows:
        del row["run"]
    record = {"load_before": busy, "before": BEFORE, "ratios": speed_ratios, "rows": rows}
    append(options.out, {**machine(), **record})


if __name__ == "__main__":
    main()
