"""Before a run: refuses what does not fit, reads the initial policy, traces the programs."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl import checkpoint
from train.host import compiled, policy_files, records
from train.host.config import differences, plain
from train.host.errors import UsageError
from train.host.records import CHECKPOINTS
from train.host.settings import MAY_CHANGE, Config, Training


def refuse_other_config(training: Training, config: Any, name: str) -> None:
    """Raises UsageError, naming each field, if the run to resume has another configuration."""
    directory = config.run.resume
    saved = records.read_config(directory)
    if saved["name"] != name:
        raise UsageError(f"{directory} is a run of {saved['name']}, not of {name}")
    if checkpoint.steps(Path(directory) / CHECKPOINTS):  # the file may have been edited since
        try:
            saved = checkpoint.read_meta(Path(directory) / CHECKPOINTS)
        except checkpoint.CheckpointError as error:
            raise UsageError(f"{error}: delete that folder to start over") from None
    fixed = {"run.total_steps"} if training.budget_shapes_learning else set()
    changed = differences(saved["config"], plain(config), MAY_CHANGE - fixed)
    if changed:
        raise UsageError(
            f"{directory} has another configuration ({'; '.join(changed)}): "
            "resume it without these fields, or start a new run"
        )


def policy_for(training: Training, settings: Config, name: str) -> dict[str, np.ndarray] | None:
    """The parameters that a new run starts from; None: random ones, or the run is resumed.

    Raises UsageError unless the policy is of this program and has the same network.
    """
    has_begun = settings.resume and checkpoint.steps(Path(settings.resume) / CHECKPOINTS)
    if not settings.initial_policy or has_begun:
        return None
    path = policy_files.file_of(settings.initial_policy)
    trained_by = policy_files.read_metadata(path)["entry_point"]
    if trained_by != name:
        raise UsageError(f"{path} is a policy of {trained_by}, not of {name}")
    agent = jax.eval_shape(training.init, jax.random.key(0)).agent
    return policy_files.read_arrays(path, policy_files.parameters(agent))


def trace(training: Training, settings: Config) -> compiled.Traced:
    """Traces the programs. Raises UsageError for sizes that do not fit together."""
    try:
        traced = compiled.trace(
            training.init,
            training.update,
            settings.seed_array(),
            settings.chunk_updates(training.steps_per_update),
            skip=settings.on_nonfinite == "skip",
        )
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from error
    refuse_other_score(training.score, traced.chunk.out_info[1])
    return traced


def refuse_other_score(score: str, report: compiled.Report) -> None:
    """Raises UsageError unless `report` has a measure `score` that is a single number."""
    measures = report.metrics.agent | report.metrics.finished
    per_update = len(report.finite.shape)
    numbers = sorted(name for name, x in measures.items() if len(x.shape) == per_update)
    if score not in numbers:
        names = ", ".join(numbers)
        raise UsageError(f"there is no number {score!r} to score: choose one of {names}")
