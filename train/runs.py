"""Finished and running runs, for the commands that look at them: configuration and agents."""

import dataclasses
import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax

from jaxrl import checkpoint
from jaxrl.types import AgentState
from train import programs, records
from train.config import rebuild
from train.errors import UsageError
from train.scores import agents_of

ENTRY_POINTS = ("snake", "two_snake", "allo", "durotaxis", "vector_field")
"""Modules of `train` that start runs. Each has

PRESETS                  `{name: config}`, as `command.main` takes it
make_training(config)    a `settings.Training`; raises ValueError for what does not fit together
draw(run, games, key)    writes the pictures of a `Run` and returns their paths; those that show
                         games choose among so many, whose root of random numbers is `key`

and, where the usual evaluation does not do,

evaluation               a module with `Options`, a dataclass of the flags of `train.evaluate`, the
                         run among them, and `evaluate(run, options)`, which writes what it finds
                         and returns the table to print
"""


class Run(NamedTuple):
    """A run directory, read."""

    directory: Path
    entry: ModuleType  # the module that started it
    config: Any
    updates: int  # of the checkpoint
    agents: list[AgentState]  # one per seed

    @property
    def seeds(self) -> list[int]:
        return self.config.run.seeds


def load(directory: str | Path) -> Run:
    """The newest whole checkpoint of a run. Raises UsageError if there is none."""
    directory = Path(directory)
    saved = records.read_config(directory)
    entry = _entry(directory, saved["name"])
    if saved["preset"] not in entry.PRESETS:
        raise UsageError(f"{directory} has the preset {saved['preset']}, which is unknown here")
    config = rebuild(entry.PRESETS[saved["preset"]], saved["config"])
    try:
        training = entry.make_training(config)
        seeds = config.run.seed_array()
        like = jax.eval_shape(programs.beginning(training.init, seeds), seeds)
        state, _, updates = checkpoint.restore(directory / records.CHECKPOINTS, like)
    except (ValueError, checkpoint.CheckpointError) as error:
        raise UsageError(" ".join(str(error).split())) from error
    return Run(directory, entry, config, updates, agents_of(state.agent, config.run.num_seeds))


def entry_named(arguments: Sequence[str]) -> ModuleType | None:
    """The module that started the first run directory among a command's arguments, if any is one.

    It may have flags of its own, so that it is needed before they can be read.
    """
    for argument in arguments:
        if not argument.startswith("-") and (Path(argument) / "config.yaml").is_file():
            return _entry(Path(argument), records.read_config(argument)["name"])
    return None


def _entry(directory: Path, name: str) -> ModuleType:
    """The module `train.NAME` that started the run there."""
    if name not in ENTRY_POINTS:
        raise UsageError(f"{directory} is a run of {name}, which is unknown here")
    return importlib.import_module(f"train.{name}")


def with_evaluation(config: Any, **changes: Any) -> Any:
    """`config` with other fields of its `run`."""
    return dataclasses.replace(config, run=dataclasses.replace(config.run, **changes))
