"""What blocks cost of the score: the same training with one block and with eight, on one device.

python -m bench.blocks [CASE ...] [--runs runs/blocks]

A case is a command line, such as `gymnax ppo CartPole-v1`. K blocks are a setting of the experiment
(`--loop.blocks K`), so the score of K on one device is the score of K on any number of devices. Run
directories are kept and continued, and rows that results/blocks.json already holds, of as many
steps, seeds and games, are passed over: the measurement may be interrupted at any time.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bench.common_ground import summary
from bench.snake_speed import append, machine
from train.host.files import metrics_file
from train.host.files.run_directory import RunDirectory

RESULTS = Path(__file__).parent / "results" / "blocks.json"
BLOCKS = (1, 8)
GAMES = 200


class Case(NamedTuple):
    """What is trained, with each number of blocks."""

    program: str
    preset: str
    task: str
    steps: int  # environment steps of each seed
    seeds: int
    flags: tuple[str, ...] = ()
    note: str = ""  # how it differs from the preset

    @property
    def name(self) -> str:
        return f"{self.program} {self.preset} {self.task}"


SIXTEEN = ("--env.id", "CartPole-v1", "--loop.num-envs", "16")
HALF = ("--agent.epsilon-transitions", "125000")  # with half of the budget
FRESH = ("--run.seed", "10")  # none of the seeds before, which were looked at already
NOTE = "16 environments, since the 10 of the preset are not eight blocks"
CASES = (
    Case("gymnax", "ppo", "CartPole-v1", 500_000, 10, ("--env.id", "CartPole-v1")),
    Case("gymnax", "ppo", "Acrobot-v1", 500_000, 10, ("--env.id", "Acrobot-v1")),
    Case("snake", "ppo", "10×10", 3_000_000, 3),
    Case("gymnax", "dqn", "CartPole-v1", 250_000, 10, (*SIXTEEN, *HALF), NOTE),
    Case("gymnax", "dqn", "CartPole-v1", 500_000, 10, SIXTEEN, NOTE),
    Case("gymnax", "dqn", "CartPole-v1", 250_000, 20, (*SIXTEEN, *HALF, *FRESH), "20 other seeds"),
)


def measure(case: Case, blocks: int, directory: Path) -> dict[str, Any]:
    """Trains, or goes on training, and reads what the run has written."""
    program = [sys.executable, "-m", f"train.{case.program}"]
    command = [*program, case.preset, *case.flags, f"--loop.blocks={blocks}"]
    command += [f"--run.total-steps={case.steps}", f"--run.num-seeds={case.seeds}"]
    command += [f"--run.evaluation-games={GAMES}", f"--run.directory={directory}"]
    if RunDirectory(directory).has_config:
        command = [*program, "--resume", str(directory)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    content = json.loads(RunDirectory(directory).evaluation.read_bytes())
    rows = metrics_file.read_metrics(directory)
    return {
        **machine(),
        "case": case.name,
        "blocks": blocks,
        "budget": case.steps,
        "steps": max(row["steps"] for row in rows),  # whole updates
        "seeds": case.seeds,
        "note": case.note,
        "games": GAMES,
        "score": content["score"],
        "scores": [row[content["score"]]["mean"] for row in content["seeds"]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="such as 'gymnax ppo CartPole-v1'; default: all")
    parser.add_argument("--runs", type=Path, default=Path("runs/blocks"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    for case in CASES:
        for blocks in BLOCKS:
            saved_records = json.loads(options.out.read_bytes()) if options.out.is_file() else []
            names = ("case", "blocks", "budget", "seeds", "games")
            key = (case.name, blocks, case.steps, case.seeds, GAMES)
            done = key in [tuple(row[name] for name in names) for row in saved_records]
            if done or (options.cases and case.name not in options.cases):
                continue
            name = f"{case.name.replace(' ', '-')}-{case.steps}-{case.seeds}-{blocks}"
            directory = options.runs / name
            record = measure(case, blocks, directory)
            append(options.out, record)
            mean, low, high = summary(record["scores"])
            score_text = f"{mean:.4g} ({low:.4g} to {high:.4g})"
            print(f"{case.name}, {case.steps:,} steps, {blocks} blocks: {score_text}", flush=True)


if __name__ == "__main__":
    main()
