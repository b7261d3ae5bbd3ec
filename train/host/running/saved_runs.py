"""Loads finished and running runs for other commands: configuration and agents."""

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from jaxrl import checkpoint
from jaxrl.numerics.precision import in_float32
from train.host.compilation import compiled
from train.host.errors import UsageError, in_one_line
from train.host.files import policy_files
from train.host.files.provenance import changed_files, files_of
from train.host.files.run_directory import RunDirectory, resume_flag, shell_word
from train.host.plain_config import differences, rebuild
from train.host.program import Program, Run, find
from train.host.scoring import best as best_policies
from train.host.scoring.scores import agents_of
from train.host.training import PlayConfig

_log = logging.getLogger(__name__)


@in_float32
def load(directory: str | Path, best: bool = False) -> Run:
    """The newest whole checkpoint of a run. Raises UsageError if there is none.

    Warns of files that have changed since then and of which its configuration tells.

    With `best`, a run in `best/` of the directory, of the policies that were best while training.
    """
    run = load_without_checkpoint(directory)
    run_directory, program, config = RunDirectory(run.directory), run.program, run.config
    if best and not isinstance(config.run, PlayConfig):
        raise UsageError(
            f"{directory} has no best policies, as {program.name} plays no games while it trains: "
            "leave out --best"
        )
    if not checkpoint.steps(run_directory.checkpoints):
        raise UsageError(
            f"{run.directory} has no checkpoint: a run saves one every --run.checkpoint-every "
            f"chunks and at its end, so wait for one, or go on with {resume_flag(run.directory)}; "
            "the curves before that are shown by python -m train.report "
            f"{shell_word(run.directory)} --live"
        )
    try:
        training = program.training(config)
        starts = config.run.members.starts
        like = jax.eval_shape(compiled.init_all(training.init, starts), starts)
        state, meta, updates = checkpoint.restore(run_directory.checkpoints, like)
    except (ValueError, checkpoint.CheckpointError) as error:
        changes = changed_files(run_directory.checkpoints, files_of(config))
        raise UsageError(in_one_line(error) + changes) from error
    files = files_of(config)
    for change in differences(meta.get("files", files), files):
        _log.warning("%s since %s was saved: it is read as it is now", change, run.directory)
    agents = agents_of(state.agent, config.run.num_seeds)
    if not best:
        return run._replace(updates=updates, agents=agents, state=state)
    saved_policies = best_policies.read(run_directory.best, state.agent, config.run.members)
    seed_arrays = lambda s: {name: x[s] for name, x in saved_policies.arrays.items()}
    best_agents = [policy_files.with_parameters(x, seed_arrays(s)) for s, x in enumerate(agents)]
    updates = max(saved_policies.updates)
    return Run(run_directory.best, program, config, updates, best_agents, preset=run.preset)


def updates_of(run: Run, seed: int, best: bool) -> int:
    """The updates that the policy of a seed has learned from; `run` is as `load` returns it.

    With `best` each seed has its own, of which `run.updates` are the most.
    """
    if not best:
        return run.updates
    return checkpoint.read_meta(run.directory)["updates"][run.seeds.index(seed)]


def load_without_checkpoint(directory: str | Path) -> Run:
    """A run that may not have a checkpoint yet: its program and configuration, without agents."""
    directory = Path(directory)
    saved = RunDirectory.open(directory).config()
    program = find(saved["name"], directory)
    config = rebuild(program.preset_config(directory, saved["preset"]), saved["config"])
    return Run(directory, program, config, 0, [], preset=saved["preset"])


def program_of(arguments: Sequence[str]) -> Program | None:
    """The program of the first run directory among a command's arguments; None without one.

    A program may have flags of its own, so it must be known before the flags are parsed.
    """
    for argument in arguments:
        directory = RunDirectory(Path(argument))
        if not argument.startswith("-") and directory.has_config:
            return find(directory.config()["name"], argument)
    return None


def with_run_fields(config: Any, **changes: Any) -> Any:
    """`config` with changed fields of its `run`."""
    return dataclasses.replace(config, run=dataclasses.replace(config.run, **changes))
