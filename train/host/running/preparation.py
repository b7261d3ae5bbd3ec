"""Before a run: refuses what does not fit, reads the initial policy, traces the programs."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl import checkpoint, checks, dependent_fields
from jaxrl.types import check_metrics
from train.host.compilation import compiled, memory
from train.host.errors import UsageError, in_one_line
from train.host.files import log, policy_files
from train.host.files.metrics_file import count_rows
from train.host.files.rows import Counters
from train.host.files.run_directory import CHECKPOINTS, METRICS, RunDirectory
from train.host.files.whole_files import refuse_unwritable
from train.host.machine import devices, distributed, jax_settings
from train.host.machine.members import Members
from train.host.numbers import quantity
from train.host.plain_config import differences, flag, flatten, plain, rebuild
from train.host.program import Program
from train.host.running import agreement
from train.host.training import MAY_CHANGE, Config, Training


def complete(program: Program, config: Any) -> tuple[Any, Training]:
    """The configuration with what its data say of it, and its training.

    Raises UsageError where the run cannot be written, or processes have other configurations,
    before a long look at data; ValueError for what does not fit together.
    """
    with distributed.refused_together():
        checks.config(config)
        refuse_place(config.run)
    agreement.refuse_other_config(config)
    with distributed.refused_together():
        config = program.complete(config)
        return config, program.training(config)


def prepare(
    training: Training, config: Any, name: str
) -> tuple[compiled.TracedPrograms, dict[str, np.ndarray] | None]:
    """The traced programs of a run, and the parameters that it starts from, as of `policy_for`.

    Writes nothing. Raises UsageError for what does not fit.
    """
    settings: Config = config.run
    if settings.resume:
        refuse_other_config(training, config, name)
        refuse_lost_checkpoints(config)
    log.refuse_missing(settings.log)
    refuse_place(settings)
    policy = policy_file_for(settings, name)  # of a wrong one nothing need be traced
    return trace(training, config), read_policy(training, policy)


def refuse_place(settings: Config) -> None:
    """Raises UsageError if the first process, which writes a run, cannot write it."""
    if not distributed.is_first():
        return
    if settings.resume:
        refuse_unwritable(Path(settings.resume), "resume a copy in a folder that can")
    else:
        RunDirectory.refuse_unusable(settings.directory)


def refuse_other_config(training: Training, config: Any, name: str) -> None:
    """Raises UsageError, naming each field, if the run to resume has another configuration."""
    directory = RunDirectory.open(config.run.resume)
    saved = directory.config()
    if saved["name"] != name:
        raise UsageError(f"{directory} is a run of {saved['name']}, not of {name}")
    if checkpoint.steps(directory.checkpoints):  # the file may have been edited since
        try:
            saved = checkpoint.read_meta(directory.checkpoints)
        except checkpoint.CheckpointError as error:
            raise UsageError(f"{error}: delete that folder to start over") from None
        if saved["counters"].keys() != set(Counters._fields):
            raise UsageError(f"{directory} was written by another version: start a new run")
        jax_settings.refuse_other_draws(directory.path, saved)
    fixed_fields = {"run.total_steps"} if training.budget_shapes_learning else set()
    saved_config = plain(rebuild(config, saved["config"]))  # with fields that were added since
    path = config.run.directory
    if path and Path(path).resolve() not in places(directory.path, saved_config):
        raise UsageError(
            f"a run stays where it is: leave out --run.directory {path}, or copy {directory} there "
            "and resume the copy"
        )
    changes = differences(saved_config, plain(config), MAY_CHANGE - fixed_fields)
    if changes:
        raise UsageError(
            f"{directory} has another configuration ({'; '.join(changes)}): "
            "resume it without these fields, or start a new run"
        )


def places(directory: Path, saved: dict[str, Any]) -> set[Path]:
    """Where a run is, and where its configuration says that it is: it may have been moved."""
    return {Path(x).resolve() for x in (directory, saved["run"]["directory"]) if x}


def refuse_lost_checkpoints(config: Any) -> None:
    """Raises UsageError if a run to resume had checkpoints, as far as can be told, and has none.

    It had if its record has more rows than there are before the first one, or its agents a score.
    """
    directory = RunDirectory.open(config.run.resume)
    if checkpoint.steps(directory.checkpoints):
        return
    settings = rebuild(config, directory.config()["config"]).run  # as it was before these flags
    rows = count_rows(directory.path)
    is_scored = rows > 0 and directory.evaluation.is_file()
    if is_scored or rows > settings.checkpoint_every * settings.num_seeds:
        raise UsageError(
            f"{directory} has {quantity(rows, 'rows')} in {METRICS} but no checkpoint: put "
            f"{CHECKPOINTS}/ back, or delete {METRICS} to start over"
        )


def policy_file_for(settings: Config, name: str) -> Path | None:
    """The policy that a new run starts from; None: there is none, or the run is resumed.

    Raises UsageError, before anything is traced, unless it is there and of this program.
    """
    directory = RunDirectory(Path(settings.resume))
    has_begun = settings.resume and checkpoint.steps(directory.checkpoints)
    if not settings.initial_policy or has_begun:
        return None
    path = policy_files.file_of(settings.initial_policy)
    trained_by = policy_files.read_metadata(path)["entry_point"]
    if trained_by != name:
        raise UsageError(f"{path} is a policy of {trained_by}, not of {name}")
    return path


def policy_for(training: Training, settings: Config, name: str) -> dict[str, np.ndarray] | None:
    """The parameters that a new run starts from; None: random ones, or the run is resumed.

    Raises UsageError unless the policy is of this program and has the same network.
    """
    return read_policy(training, policy_file_for(settings, name))


def read_policy(training: Training, path: Path | None) -> dict[str, np.ndarray] | None:
    """The parameters in the file of a policy, if there is one. Raises UsageError if they do not fit
    the network."""
    if path is None:
        return None
    agent = jax.eval_shape(training.init, jax.random.key(0)).agent
    return policy_files.read_arrays(path, policy_files.parameters(agent))


def trace(
    training: Training, config: Any, members: Members | None = None
) -> compiled.TracedPrograms:
    """Traces the programs of the seeds of a configuration, or of other members.

    Raises UsageError for sizes that do not fit together, or into memory.
    """
    settings: Config = config.run
    members = members or settings.members
    sizes = len(members.seeds), training.blocks
    mesh = devices.mesh_of(settings.devices, *sizes, flags_of_sizes(config))
    length = settings.chunk_updates(training.steps_per_update)
    if settings.total_updates(training.steps_per_update) > checks.INT32:
        raise UsageError(
            f"--run.total-steps {settings.total_steps:,} are more than {checks.INT32:,} updates of "
            f"{training.steps_per_update:,} steps: choose fewer, or larger updates"
        )
    try:
        with jax_settings.network_precision(settings.precision):
            start = compiled.trace_init(training.init, members.starts, mesh)
            count = 1 if mesh is None else mesh.size
            memory.refuse_state(start.out_info, config, count)
            memory.refuse_program(start.out_info, start.jaxpr.jaxpr, config, count)
            skip = settings.on_nonfinite == "skip"
            traced = compiled.trace(start, training.update, length, skip, mesh, training.work)
    except (ValueError, OverflowError) as error:
        raise UsageError(in_one_line(error)) from error
    memory.refuse_program(start.out_info, traced.chunk.jaxpr.jaxpr, config, count)
    refuse_other_measures(training.score.name, traced.chunk.out_info[1])
    return traced


def flags_of_sizes(config: Any) -> list[str]:
    """The flags that say how many blocks and members a run has."""
    names, idle = flatten(plain(config)), dependent_fields.idle_fields(config)
    blocks = [x for x in names if x.rpartition(".")[2] == "blocks" and x not in idle]
    return [flag(x, config) for x in (*blocks, "run.num_seeds")]


def compile_within_memory(traced: compiled.TracedPrograms, config: Any) -> compiled.Programs:
    """Compiles. Raises UsageError if the compiled program needs more memory than there is."""
    programs = traced.compile()
    memory.return_free_memory()
    own_devices = devices.count_of_process(traced.like)
    memory.refuse_compiled(programs.chunk, traced.chunk.jaxpr.jaxpr, config, own_devices)
    return programs


def refuse_other_measures(score: str, report: compiled.Report) -> None:
    """Raises UsageError unless measures are arrays, and `score` one that is a single number."""
    try:
        check_metrics(report.metrics.agent)
    except ValueError as error:
        raise UsageError(str(error)) from None
    measures = report.metrics.agent | report.metrics.finished
    per_update = len(report.finite.shape)
    numbers = sorted(name for name, x in measures.items() if len(x.shape) == per_update)
    if score not in numbers:
        names = ", ".join(numbers)
        raise UsageError(f"there is no number {score!r} to score: choose one of {names}")
