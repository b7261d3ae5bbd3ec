"""Searches that learn from results beside random search, at equal numbers of environment steps.

python -m bench.search [CASE ...] [--repeats 10] [--runs runs/search]

Each repeat is a sweep with seeds of its own: 32 configurations drawn at random; 8 members that
train four budgets of successive halving; or a population of 32. Its score is that of the chosen
configuration, trained from scratch on five fresh seeds. Every sweep is kept and continued, so that
the measurement may be interrupted at any time; what results/search.json holds is passed over.

The first candidate of a sweep is the program's default, which is known to be good. Here it has the
lower ends of all ranges instead, so that what is measured is the search.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.snake_speed import append, machine
from jaxrl.numerics import statistics

RESULTS = Path(__file__).parent / "results" / "search.json"
CONFIGURATIONS, SLOTS, BUDGETS, FRESH = 32, 8, 4, 5
RANGES = {
    "agent.learning_rate": "log:1e-5..1e-1",
    "agent.entropy_weight": "log:1e-4..1e-1",
    "agent.discount": "0.8..0.999",
    "agent.gae_lambda": "0.5..1.0",
}
METHODS = {
    "random": ("--random", str(CONFIGURATIONS - 1), "--seeds", "1"),
    "halving": ("--search", "halving", "--members", str(SLOTS), "--budgets", str(BUDGETS)),
    "population": ("--search", "population", "--members", str(CONFIGURATIONS)),
}


class Case(NamedTuple):
    """What is trained."""

    preset: str
    env_id: str
    steps: int  # environment steps of a configuration

    @property
    def name(self) -> str:
        return f"{self.preset} {self.env_id}"


CASES = (Case("ppo", "CartPole-v1", 32_768), Case("ppo", "Acrobot-v1", 65_536))


def flags(case: Case, method: str, repeat: int) -> list[str]:
    """The command line of a sweep after `python -m train.sweep`."""
    lowest = {name: text.removeprefix("log:").partition("..")[0] for name, text in RANGES.items()}
    return [
        *("gymnax", case.preset, "--env.id", case.env_id),
        *(f"--{name.replace('_', '-')}={value}" for name, value in lowest.items()),
        f"--run.total-steps={case.steps}",
        f"--run.chunk-steps={case.steps // 16}",
        f"--run.seed={100_000 * repeat}",
        "--run.evaluation-games=200",
        *(x for name, text in RANGES.items() for x in ("--vary", f"{name}={text}")),
        *METHODS[method],
        f"--confirm={FRESH}",
    ]


def measure(case: Case, method: str, repeat: int, directory: Path) -> dict[str, Any]:
    """Runs a sweep, or goes on with it, and reads what it has written."""
    sweep_flags = flags(case, method, repeat)
    is_begun = (directory / "sweep.yaml").is_file()
    arguments = (
        ["--resume", str(directory)] if is_begun else [*sweep_flags, "--directory", str(directory)]
    )
    if not is_begun:
        shutil.rmtree(directory, ignore_errors=True)  # stopped before there was anything to keep
    subprocess.run([sys.executable, "-m", "train.sweep", *arguments], check=True)
    confirmation = json.loads((directory / "confirmation.json").read_bytes())
    configurations = json.loads((directory / "summary.json").read_bytes())["configurations"]
    return {
        **machine(),
        "case": case.name,
        "method": method,
        "repeat": repeat,
        "steps": CONFIGURATIONS * case.steps,
        "command": " ".join(["python -m train.sweep", *sweep_flags]),
        "score": confirmation["fresh"]["iqm"],
        "scores": confirmation["fresh"]["scores"],
        "chosen": confirmation["chosen"]["iqm"],
        "values": confirmation["values"],
        "tried": len(configurations),
    }


def summary(scores: list[float]) -> tuple[float, float, float]:
    """The interquartile mean over repeats, and its interval."""
    column = np.asarray(scores)[:, None]
    mean = statistics.interquartile_mean(column)
    return mean, *(statistics.stratified_interval(column) if len(scores) > 1 else (mean, mean))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="such as 'ppo CartPole-v1'; default: all")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--runs", type=Path, default=Path("runs/search"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    cases = [case for case in CASES if not options.cases or case.name in options.cases]
    for repeat in range(options.repeats):
        for case in cases:
            for method in METHODS:
                saved_records = (
                    json.loads(options.out.read_bytes()) if options.out.is_file() else []
                )
                key = (case.name, method, repeat)
                if key in {(x["case"], x["method"], x["repeat"]) for x in saved_records}:
                    continue
                directory = options.runs / "-".join(map(str, key)).replace(" ", "-")
                record = measure(case, method, repeat, directory)
                append(options.out, record)
                print(f"{case.name} {method} {repeat}: {record['score']}", flush=True)


if __name__ == "__main__":
    main()
