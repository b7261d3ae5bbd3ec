"""How well each algorithm learns environments that everybody knows: ten seeds, greedy, fresh games.

python -m bench.common_ground [CASE ...] [--seeds 10] [--runs runs/common_ground]

A case is a command line of `train.gymnax` with the defaults of its preset, but for the flags of
`cases`, such as `ppo CartPole-v1`. Its run directory, one for each number of seeds and steps, is
kept and continued, so that the measurement may be interrupted at any time. Cases that
results/common_ground.json already holds, with as many seeds, steps and games, are passed over.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.snake_speed import append, machine
from jaxrl.numerics import statistics
from train.host.files import metrics_file
from train.host.files.run_directory import RunDirectory

RESULTS = Path(__file__).parent / "results" / "common_ground.json"
GAMES = 200
MINATAR = ("Breakout", "Asterix", "SpaceInvaders", "Freeway")
FLAGS = {("ppo", "Asterix"): ("--agent.discount=0.999", "--agent.learning-rate=0.001")}
LENGTH = "memory_length=10"


class Case(NamedTuple):
    """What is trained."""

    preset: str
    env_id: str
    steps: int  # environment steps of each seed
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.preset} {self.env_id}"


def cases() -> list[Case]:
    """The cheap ones first."""
    classic = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
    memory = (
        Case("ppo", "MemoryChain-bsuite", 500_000, ("--env.numbers", LENGTH)),
        Case("recurrent", "MemoryChain-bsuite", 500_000, ("--env.numbers", LENGTH)),
        Case("ppo", "BernoulliBandit-misc", 2_000_000),
        Case("recurrent", "BernoulliBandit-misc", 2_000_000),
    )
    boxes = ("Pendulum-v1", "MountainCarContinuous-v0", "Reacher-misc")
    return [
        *(Case(preset, env_id, 500_000) for preset in ("ppo", "pqn") for env_id in classic),
        *memory,
        *(Case("ppo_continuous", env_id, 500_000) for env_id in boxes),
        *(Case("sac", env_id, 50_000) for env_id in boxes),
        *(Case("dqn", env_id, 500_000) for env_id in classic[:2]),
        Case("dqn", "MountainCar-v0", 500_000, ("--agent.repeat-exponent=2",)),
        *(
            Case(f"{preset}_minatar", f"{game}-MinAtar", 10_000_000, FLAGS.get((preset, game), ()))
            for preset in ("ppo", "pqn")
            for game in MINATAR
        ),
        *(Case("dqn_minatar", f"{game}-MinAtar", 5_000_000) for game in MINATAR),
    ]


def key_of(case: Case, seeds: int) -> dict[str, Any]:
    """What a measurement is known by: one with any of it different is another."""
    flags = list(case.flags)
    sizes = {"steps": case.steps, "seeds": seeds, "games": GAMES}
    return {"case": case.name, "flags": flags, **sizes}


def measure(case: Case, seeds: int, directory: Path) -> dict[str, Any]:
    """Trains, or goes on training, and reads what the run has written."""
    command = [sys.executable, "-m", "train.gymnax", case.preset, "--env.id", case.env_id]
    command += [*case.flags, f"--run.total-steps={case.steps}", f"--run.num-seeds={seeds}"]
    command += [f"--run.evaluation-games={GAMES}", f"--run.directory={directory}"]
    if RunDirectory(directory).has_config:
        command = [sys.executable, "-m", "train.gymnax", "--resume", str(directory)]
    subprocess.run(command, check=True)
    rows = metrics_file.read_metrics(directory)
    content = json.loads(RunDirectory(directory).evaluation.read_bytes())
    returns = [row["return"]["mean"] for row in content["seeds"]]
    last = max(row["steps"] for row in rows)
    config = RunDirectory(directory).config()["config"]
    config["run"]["directory"] = ""  # of this machine
    return {
        **machine(),
        **key_of(case, seeds),
        "preset": case.preset,
        "env": case.env_id,
        "returns": returns,
        "incomplete": sum(row["incomplete"] for row in content["seeds"]),
        "late": [late_return(rows, row["seed"], last) for row in content["seeds"]],
        "seconds": training_seconds(rows),
        "config": config,
    }


def training_seconds(rows: list[dict[str, Any]]) -> float:
    """Seconds of training, had every chunk taken as long as the median one: other work on the
    machine, and pauses, then count little."""
    ends = np.unique([row["seconds"] for row in rows])
    return float(len(ends) * np.median(np.diff(ends, prepend=0.0)))


def late_return(rows: list[dict[str, Any]], seed: int, last: int) -> float | None:
    """The mean return in the last tenth of training, as agents explore: how peers report it."""
    late = [row for row in rows if row["seed"] == seed and row["steps"] > 0.9 * last]
    pairs = [(row["finished"].get("return"), row["episodes"]) for row in late]
    pairs = [(value, count) for value, count in pairs if value is not None and count]
    values, counts = np.reshape(pairs, (-1, 2)).T
    return float(np.average(values, weights=counts)) if pairs else None


def summary(returns: list[float]) -> tuple[float, float, float]:
    """The interquartile mean over seeds, and its interval."""
    scores = np.asarray(returns)[:, None]
    return statistics.interquartile_mean(scores), *statistics.stratified_interval(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="such as 'ppo CartPole-v1'; default: all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--runs", type=Path, default=Path("runs/common_ground"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    for case in cases():
        saved_records = json.loads(options.out.read_bytes()) if options.out.is_file() else []
        key = key_of(case, options.seeds)
        done = any(key.items() <= x.items() for x in saved_records)
        if done or (options.cases and case.name not in options.cases):
            continue
        # with all that makes it another run, or one of other seeds would be continued in its place
        parts = (*case.name.split(), *case.flags, f"{case.steps}-steps", f"{options.seeds}-seeds")
        directory = options.runs / "-".join(parts)
        record = measure(case, options.seeds, directory)
        append(options.out, record)
        mean, low, high = summary(record["returns"])
        print(f"{case.name}: {mean:.4g} ({low:.4g} to {high:.4g}), {record['seconds']:.0f} s")


if __name__ == "__main__":
    main()
