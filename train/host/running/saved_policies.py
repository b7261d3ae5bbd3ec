"""Loads trained policies by name or path, as runs of one agent."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from jaxrl.numerics.precision import in_float32
from train.host import abilities
from train.host.arguments import flag_value
from train.host.errors import UsageError, in_one_line
from train.host.files import policy_files
from train.host.files.provenance import files_of
from train.host.files.run_directory import RunDirectory
from train.host.plain_config import differences, rebuild
from train.host.program import Program, Run, find
from train.host.running import saved_runs

_log = logging.getLogger(__name__)
COMPILED = ".jax"
"""Suffix of a policy that `python -m train.policies compile` has written."""


@in_float32
def as_run(name: str | Path) -> Run:
    """A policy as a run of one agent; its directory, `runs/policy-NAME`, may not exist.

    Warns of files that have changed since it was trained and of which its configuration tells.
    """
    path = policy_files.file_of(name)
    content = policy_files.read_metadata(path)
    run = _run_without_agent(path, content)
    try:
        agent = jax.eval_shape(run.program.training(run.config).init, jax.random.key(0)).agent
    except (ValueError, TypeError, UsageError) as error:
        raise UsageError(f"{path} cannot be used: {in_one_line(error)}") from error
    files, trained = files_of(run.config), content["trained"]
    saved_files = trained.get("files", files) if isinstance(trained, dict) else files
    for change in differences(saved_files, files):
        _log.warning("%s since %s was trained: it is read as it is now", change, path)
    arrays = policy_files.read_arrays(path, policy_files.parameters(agent))
    return run._replace(agents=[policy_files.with_parameters(agent, arrays)])


def as_run_without_agent(name: str | Path) -> Run:
    """The same without its parameters, for which nothing is traced."""
    path = policy_files.file_of(name)
    return _run_without_agent(path, policy_files.read_metadata(path))


def _run_without_agent(path: Path, content: dict[str, Any]) -> Run:
    """The run that the metadata of a policy tell of."""
    program = find(content["entry_point"], path)
    abilities.refuse_no_policies(program, path)
    default = program.preset_config(path, content["preset"])
    try:
        config = rebuild(default, content["config"])
    except (ValueError, TypeError, UsageError) as error:
        raise UsageError(f"{path} cannot be used: {in_one_line(error)}") from error
    directory = Path("runs", f"policy-{path.stem}")
    return Run(directory, program, config, content["updates"], [], preset=content["preset"])


def load_run_or_policy(run: str | None, policy: str | None, best: bool = False) -> Run:
    """A run, or a policy as a run. Raises UsageError unless exactly one of them is given.

    `best` takes the policies of the run that were best while it trained.
    """
    if run is not None and policy is None:
        return saved_runs.load(run, best)
    if policy is not None and best:
        raise UsageError("--best is for runs: leave it out, or give a run directory")
    if policy is not None and run is None:
        return as_run(policy)
    if run is None:
        raise UsageError("expected a run directory, or --policy NAME: give one of them")
    raise UsageError("expected a run directory or --policy NAME, not both: leave one of them out")


def load_source(source: str | Path, best: bool = False) -> Run:
    """A run, where `source` is the directory of one; else the policy of that path or name."""
    if RunDirectory(Path(source)).has_config:
        return saved_runs.load(source, best)
    if Path(source).is_dir() and not policy_files.path_of(source).is_file():
        return saved_runs.load(source)  # which says what a run directory has
    if best:
        raise UsageError(f"{source} is no run directory: only a run has a best policy")
    _refuse_no_policy(source)
    return as_run(source)


def load_source_without_agents(source: str | Path) -> Run:
    """The same without agents, for which nothing is traced; a run may have no checkpoint yet."""
    is_policy = policy_files.path_of(source).is_file()
    if RunDirectory(Path(source)).has_config or (Path(source).is_dir() and not is_policy):
        return saved_runs.load_without_checkpoint(source)
    _refuse_no_policy(source)
    return as_run_without_agent(source)


def _refuse_no_policy(source: str | Path) -> None:
    """Raises UsageError, which tells of runs too, unless `source` names a policy."""
    if Path(source).suffix == COMPILED:
        raise UsageError(
            f"{source} is a compiled program: jax.export reads it (docs/policies.md); expected a "
            "run directory, a .safetensors file or the name of a policy"
        )
    try:
        policy_files.file_of(source)
    except UsageError as error:
        raise UsageError(f"{error}, or a run directory") from error


def one_seed(run: Run, seed: int | None, flag: str = "--seed") -> int:
    """The seed that is given, or a run's only one. Raises UsageError if that is not clear."""
    seeds, seed_list = run.seeds, ", ".join(map(str, run.seeds))
    if seed is None and len(seeds) == 1:
        return seeds[0]
    if seed is None:
        raise UsageError(f"{run.directory} has several seeds: choose one, {flag} {seed_list}")
    if seed not in seeds:
        raise UsageError(f"{run.directory} has no seed {seed}: choose {flag} among {seed_list}")
    return seed


def name_of(run: str | None, policy: str | None) -> str:
    """What a run or a policy is called: its folder's name, or its file's without the suffix."""
    if policy is not None:
        return policy_files.path_of(policy).stem
    return Path(run or "").resolve().name


def program_of(arguments: Sequence[str]) -> Program | None:
    """The program of the policy that a command's arguments name; None without one."""
    name = flag_value(arguments, "--policy")
    if name is None:
        return None
    path = policy_files.file_of(name)
    return find(policy_files.read_metadata(path)["entry_point"], path)
