"""Loads finished and running runs for other commands: configuration and agents."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from jaxrl import checkpoint
from train.host import compiled, records
from train.host.config import rebuild
from train.host.errors import UsageError, in_one_line
from train.host.program import Program, Run, find
from train.host.scores import agents_of


def load(directory: str | Path) -> Run:
    """The newest whole checkpoint of a run. Raises UsageError if there is none."""
    directory = Path(directory)
    saved = records.read_config(directory)
    program = find(saved["name"], directory)
    config = rebuild(program.preset_of(directory, saved["preset"]), saved["config"])
    try:
        training = program.training(config)
        seeds = config.run.seed_array()
        like = jax.eval_shape(compiled.init_all(training.init, seeds), seeds)
        state, _, updates = checkpoint.restore(directory / records.CHECKPOINTS, like)
    except (ValueError, checkpoint.CheckpointError) as error:
        raise UsageError(in_one_line(error)) from error
    agents = agents_of(state.agent, config.run.num_seeds)
    return Run(directory, program, config, updates, agents, state)


def program_of(arguments: Sequence[str]) -> Program | None:
    """The program of the first run directory among a command's arguments; None without one.

    A program may have flags of its own, so it must be known before the flags are parsed.
    """
    for argument in arguments:
        if not argument.startswith("-") and (Path(argument) / "config.yaml").is_file():
            return find(records.read_config(argument)["name"], argument)
    return None


def with_evaluation(config: Any, **changes: Any) -> Any:
    """`config` with changed fields of its `run`."""
    return dataclasses.replace(config, run=dataclasses.replace(config.run, **changes))
