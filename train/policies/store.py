"""Trained policies by name or path, opened as runs of one agent."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from train.host import policy_files, runs
from train.host.config import plain, rebuild
from train.host.errors import UsageError
from train.host.program import Program, Run, find


def as_run(name: str | Path) -> Run:
    """A policy as a run of one agent, in whose directory, `runs/policy-NAME`, nothing need be."""
    path = policy_files.file_of(name)
    content = policy_files.read_metadata(path)
    program = find(content["entry_point"], path)
    if content["preset"] not in program.presets:
        raise UsageError(f"{path} has the preset {content['preset']}, which is unknown here")
    default = program.presets[content["preset"]]
    try:
        config = rebuild(default, completed(content["config"], plain(default)))
        agent = jax.eval_shape(program.training(config).init, jax.random.key(0)).agent
    except (ValueError, TypeError, UsageError) as error:
        raise UsageError(f"{path} cannot be used: {' '.join(str(error).split())}") from error
    arrays = policy_files.read_arrays(path, policy_files.parameters(agent))
    agents = [policy_files.with_parameters(agent, arrays)]
    return Run(Path("runs", f"policy-{path.stem}"), program, config, content["updates"], agents)


def completed(saved: Any, default: Any) -> Any:
    """`saved` with the fields that its version did not have yet as in `default`, plain data both.

    A run must not go on with numbers that were never said; a policy only acts, and whether it does
    so by the same network is checked by names and shapes.
    """
    if not (isinstance(saved, dict) and isinstance(default, dict)):
        return saved
    return default | {name: completed(x, default.get(name)) for name, x in saved.items()}


def opened(run: str | None, policy: str | None) -> Run:
    """The run of a directory, or a policy as one; UsageError unless just one of them is given."""
    if run is not None and policy is None:
        return runs.load(run)
    if policy is not None and run is None:
        return as_run(policy)
    raise UsageError("expected a run directory or --policy NAME: give one of them, and not both")


def program_of(arguments: Sequence[str]) -> Program | None:
    """The program of the policy that a command's arguments name, if they name one."""
    for flag, value in itertools.pairwise([*arguments, ""]):
        name = value if flag == "--policy" else flag.removeprefix("--policy=")
        if name and name != flag:
            path = policy_files.file_of(name)
            return find(policy_files.read_metadata(path)["entry_point"], path)
    return None
