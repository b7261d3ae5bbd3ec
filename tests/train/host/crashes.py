"""What a crash leaves of a run, made from one that came to its end; and whether runs are equal."""

import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import checkpoint
from train.host.command_line.command import parse
from train.host.compilation import compiled
from train.host.files.metrics_file import read_metrics
from train.host.files.run_directory import CHECKPOINTS
from train.host.program import Program


def after_the_first_checkpoint(finished: Path, directory: Path) -> None:
    """Makes `directory`: `finished`, as if it had been killed after the first of two checkpoints.

    Its record goes on to the end, for rows are written sooner than the next checkpoint.
    """
    directory.mkdir()
    for name in ("config.yaml", "metrics.jsonl"):
        shutil.copy(finished / name, directory)
    shutil.copytree(finished / CHECKPOINTS, directory / CHECKPOINTS)
    first, last = sorted(checkpoint.steps(directory / CHECKPOINTS))
    for path in (directory / CHECKPOINTS).iterdir():
        if str(last) in path.name:
            shutil.rmtree(path)
    assert checkpoint.steps(directory / CHECKPOINTS) == [first]


def timeless_rows(directory: Path) -> list[dict[str, Any]]:
    """The record but for the times."""
    times = ("seconds", "steps_per_second")
    return [{k: v for k, v in row.items() if k not in times} for row in read_metrics(directory)]


def bits(state: Any) -> list[bytes]:
    """The bytes of every leaf, typed keys included."""
    return [np.asarray(x).tobytes() for x in plain_leaves(state)]


def last_state_leaves(program: Program, directory: Path) -> list[jax.Array]:
    """The `plain_leaves` of the last state of a run."""
    config, _ = parse(program, ["--resume", str(directory)])
    starts = config.run.members.starts
    template = jax.eval_shape(compiled.init_all(program.training(config).init, starts), starts)
    return plain_leaves(checkpoint.restore(directory / CHECKPOINTS, template)[0])


def plain_leaves(state: Any) -> list[jax.Array]:
    """The leaves of a state, keys as their numbers."""
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return [jax.random.key_data(x) if is_key(x) else x for x in jax.tree.leaves(state)]
