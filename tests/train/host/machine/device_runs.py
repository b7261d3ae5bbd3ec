"""Runs on eight forced host devices, each a run directory.

`python -m tests.train.host.machine.device_runs DIRECTORY` in a process with
`--xla_force_host_platform_device_count=8`.
"""

import sys
from pathlib import Path

from train.evaluate import main as evaluate
from train.gymnax.program import PROGRAM
from train.host.command_line.command import main

FLAGS = [
    "--loop.num-envs",
    "8",
    "--loop.num-steps",
    "16",
    "--loop.blocks",
    "4",
    "--agent.minibatches",
    "2",
]
FLAGS += ["--agent.shuffle-group", "1", "--network.hidden", "16", "--run.evaluation-games", "8"]
FLAGS += ["--run.chunk-steps", "256", "--run.evaluate-every", "2", "--run.checkpoint-every", "3"]
STEPS, HALF = 1_024, 512
RUNS = {
    "one": ("--devices", "1"),
    "four": ("--devices", "4"),
    "all": ("--devices", "all", "--run.num-seeds", "4"),
    "seeds": ("--devices", "1", "--run.num-seeds", "4"),
    "turns": ("--devices", "2", "--run.num-seeds", "4"),
    "auto": ("--run.num-seeds", "4"),
}
REFUSED = {
    "three": ("--devices", "3"),
    "sixteen": ("--devices", "16"),
    "none": ("--devices", "0"),
    "some": ("--devices", "some"),
}


def train(directory: Path, *flags: str) -> int:
    budget = "--no-anneal", "--run.total-steps", str(STEPS), "--run.directory", str(directory)
    return main(PROGRAM, ["ppo", *budget, *FLAGS, *flags])


def resume(directory: Path, *flags: str) -> int:
    return main(PROGRAM, ["--resume", str(directory), *flags])


def make_runs(directory: Path) -> None:
    for name, flags in RUNS.items():
        assert train(directory / name, *flags) == 0, name
    half = ("--run.total-steps", str(HALF))
    more = ("--run.total-steps", str(STEPS))
    assert train(directory / "moved", "--devices", "4", *half) == 0
    assert resume(directory / "moved", "--devices", "2", *more) == 0
    for name, flags in REFUSED.items():
        assert train(directory / name, *flags) == 2, name
        assert not (directory / name).exists()
    assert evaluate([str(directory / "four"), "--games", "4"]) == 0
    assert evaluate([str(directory / "all"), "--games", "4", "--best"]) == 0


if __name__ == "__main__":
    make_runs(Path(sys.argv[1]))
