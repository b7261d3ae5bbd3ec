"""Kills runs of every program at random moments, and resumes them until they are done.

python -m bench.faults [PROGRAM ...] [--kills 100] [--seed 0]

A fault is SIGKILL, SIGTERM, or a disk that is full (a limit on the size of files, of a random
number of bytes). What is left in the end is compared with a run that nobody disturbed: the arrays
of the final checkpoint bit by bit, and the rows of the record but for the times. Prints a line for
each fault and appends the counts to results/faults.json. Exits with 1 if anything was lost.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.snake_speed import append, machine
from tests.train.host.crashes import bits, timeless_rows
from train.host.errors import FAILED, INTERRUPTED
from train.host.files.run_directory import RunDirectory
from train.host.running import saved_runs

RESULTS = Path(__file__).parent / "results" / "faults.json"
ROOT = Path(__file__).resolve().parents[1]
SMALL = "--run.evaluation-games=0 --loop.num-envs=16 --loop.num-steps=16 --run.checkpoint-every=3"
CASES = {
    "snake": f"ppo {SMALL} --run.total-steps=600000 --run.chunk-steps=20000",
    "snake-dqn": "dqn --run.evaluation-games=0 --loop.num-envs=16 --agent.capacity=20000 "
    "--run.checkpoint-every=3 --run.total-steps=40000 --run.chunk-steps=2000",
    "two_snake": f"greedy {SMALL} --run.total-steps=300000 --run.chunk-steps=10000",
    "durotaxis": f"linear {SMALL} --env.capacity=30 --env.threshold-nodes=30 "
    "--env.critical-nodes=20 --run.total-steps=20000 --run.chunk-steps=1000",
    "allo": "allo --env.maze GridRoomSmall-1 --env.transitions=20000 --network.hidden 64 "
    "--agent.num-features=6 --run.num-seeds=2 --run.total-steps=2000 --run.checkpoint-every=3",
    "goals": "{before} --goals=2 --learners=2 --steps=4000 --run.num-seeds=2 "
    "--run.checkpoint-every=3",
    "gymnax": f"ppo {SMALL} --run.total-steps=600000 --run.chunk-steps=20000",
    "vector_field": "seen --policies random hold20 --run.num-seeds=2 --run.total-steps=2000 "
    "--run.chunk-steps=50 --run.checkpoint-every=3",
}
"""Runs of a few seconds; the names before a hyphen are those of the programs."""
BEFORE = {"goals": "allo"}
"""Programs that learn from a run of another one, whose case is trained first, into {before}."""
KINDS = ("kill", "term", "disk")
LIMITED = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), -1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


class Fault(NamedTuple):
    """What befalls a process."""

    kind: str
    delay: float  # seconds after its start; of a full disk none
    size: int  # bytes that a file may have; otherwise unused


def start(name: str, arguments: list[str], fault: Fault | None = None) -> subprocess.Popen[str]:
    """The program in a process of its own."""
    module = f"train.{name.partition('-')[0]}"
    command = [sys.executable, "-m", module]
    environment = dict(os.environ)
    if fault and fault.kind == "disk":
        command = [sys.executable, "-c", LIMITED, str(fault.size), module]
        environment["JAX_ENABLE_COMPILATION_CACHE"] = "0"  # which could not be written either
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        encoding="utf-8",
        stdout=pipe,
        stderr=pipe,
    )


def run_with_fault(name: str, arguments: list[str], fault: Fault) -> tuple[int, str]:
    """The exit code of a process that meets a fault, and its last line on stderr."""
    process = start(name, arguments, fault)
    if fault.kind != "disk":
        try:
            process.wait(timeout=fault.delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL if fault.kind == "kill" else signal.SIGTERM)
    _, stderr = process.communicate(timeout=600)
    expected = {
        "kill": {-signal.SIGKILL},
        "term": {INTERRUPTED, -signal.SIGTERM},  # the latter before the run has begun
        "disk": {FAILED},
    }[fault.kind]
    if process.returncode not in {0, *expected}:
        raise RuntimeError(f"{name} after {fault}: exit code {process.returncode}\n{stderr}")
    # a slow start says now and then that it goes on
    lines = [x for x in stderr.splitlines() if not x.startswith("compiling, ")]
    if fault.kind == "disk" and process.returncode == FAILED and len(lines) != 1:
        raise RuntimeError(f"{name} after {fault}: more than one line\n{stderr}")
    return process.returncode, stderr.strip()


def final_results(directory: Path) -> tuple[list[bytes], list[dict[str, Any]]]:
    """The arrays of the newest checkpoint, and the rows but for the times."""
    return bits(saved_runs.load(directory).state), timeless_rows(directory)


def inject_faults(name: str, kills: int, rng: np.random.Generator) -> dict[str, int]:
    """Lets a program meet so many faults; the counts of what happened."""
    counts = {"runs": 0, **dict.fromkeys(KINDS, 0), "other_arrays": 0, "other_rows": 0}
    with tempfile.TemporaryDirectory() as folder:
        whole, before = Path(folder, "whole"), Path(folder, "before")
        if other := BEFORE.get(name):
            complete(other, [*CASES[other].split(), f"--run.directory={before}"])
        began = time.monotonic()
        case = CASES[name].format(before=before).split()
        complete(name, [*case, f"--run.directory={whole}"])
        seconds = time.monotonic() - began
        largest = max(path.stat().st_size for path in whole.rglob("*") if path.is_file())
        expected = final_results(whole)
        while sum(counts[kind] for kind in KINDS) < kills:
            counts["runs"] += 1
            directory = Path(folder, f"run-{counts['runs']}")
            arguments = [*case, f"--run.directory={directory}"]
            for _ in range(rng.integers(1, 6)):
                size = int(2 ** rng.uniform(9, np.log2(largest)))
                fault = Fault(str(rng.choice(KINDS)), float(rng.uniform(1.0, seconds)), size)
                code, last_line = run_with_fault(name, arguments, fault)
                counts[fault.kind] += code != 0
                print(f"{name}: {fault.kind}, exit code {code} {last_line[-90:]}", flush=True)
                if RunDirectory(directory).has_config:
                    arguments = ["--resume", str(directory)]
                if code == 0:
                    break
            complete(name, arguments)
            arrays, rows = final_results(directory)
            counts["other_arrays"] += arrays != expected[0]
            counts["other_rows"] += rows != expected[1]
    return counts


def complete(name: str, arguments: list[str]) -> None:
    """Runs to the end. Raises RuntimeError if that fails."""
    process = start(name, arguments)
    _, stderr = process.communicate(timeout=900)
    if process.returncode:
        raise RuntimeError(f"{name} {arguments}: exit code {process.returncode}\n{stderr}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(CASES)}; default: all")
    parser.add_argument("--kills", type=int, default=100, help="faults in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = options.programs or list(CASES)
    rng = np.random.default_rng(options.seed)
    counts = {}
    for name in names:
        counts[name] = inject_faults(name, -(-options.kills // len(names)), rng)
        counts_text = ", ".join(f"{what} {count}" for what, count in counts[name].items())
        print(f"{name}: {counts_text}", flush=True)
    append(RESULTS, {**machine(), "seed": options.seed, "programs": counts})
    return int(any(x["other_arrays"] or x["other_rows"] for x in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
