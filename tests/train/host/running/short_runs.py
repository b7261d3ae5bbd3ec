"""Short runs of a small game, in this process and in others."""

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl import checkpoint
from jaxrl.loop import LoopMetrics, TrainState
from tests.train import tiny
from train.host.running.run import Result, run

ROOT = Path(__file__).resolve().parents[4]
UPDATES = 20


def configure(
    preset: str = "slow", updates: int = UPDATES, agent: Any = None, **run
) -> tiny.Config:
    """A preset of the tiny training without evaluation, and with other fields."""
    config = tiny.PRESETS[preset].config
    run = {"evaluation_games": 0, "total_steps": updates * tiny.PER_UPDATE, **run}
    return dataclasses.replace(
        config,
        agent=dataclasses.replace(config.agent, **(agent or {})),
        run=dataclasses.replace(
            config.run, **{k: str(v) if k in PATHS else v for k, v in run.items()}
        ),
    )


PATHS = ("directory", "resume")


def train(config: tiny.Config) -> Result:
    return run(tiny.make_training(config), config, tiny.PROGRAM.address, "slow")


def start(*arguments: str | int | Path) -> subprocess.Popen[str]:
    """The tiny training in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "tests.train.tiny", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=pipe, stderr=pipe)


def wait_for_rows(process: subprocess.Popen, directory: Path, count: int) -> None:
    """Until the record has that many rows."""
    path = directory / "metrics.jsonl"
    for _ in range(6000):
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise TimeoutError(f"fewer than {count} rows in {path}")


def state_in(directory: Path, like: Any) -> Any:
    return checkpoint.restore(directory / "checkpoints", like)[0]


class Healthy(NamedTuple):
    """The first updates of the same run in a plain loop."""

    update: Callable[[TrainState], tuple[TrainState, LoopMetrics]]  # jitted
    states: list[TrainState]  # before each update
    reports: list[LoopMetrics]

    def poison(self, number: int) -> float:
        """What makes update `number`, counted from 1, yield NaN."""
        return float(self.reports[number - 1].agent["bits"])


def assert_close(state: Any, other: TrainState) -> None:
    """Equal but for the rounding of another compilation."""
    for a, b in zip(*(jax.tree.leaves((s.agent, s.obs)) for s in (state, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
