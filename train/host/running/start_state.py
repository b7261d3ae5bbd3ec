"""The state that a session goes on from: a new one, or that of the newest checkpoint."""

import logging
from typing import Any

import jax
import numpy as np

from jaxrl import checkpoint
from jaxrl.types import RunState
from train.host.compilation import compiled
from train.host.files import policy_files
from train.host.files.provenance import changed_files
from train.host.files.rows import Counters
from train.host.files.run_directory import RunDirectory
from train.host.machine import devices, jax_settings
from train.host.machine.members import Members
from train.host.plain_config import differences

SOURCES = ("versions", "device", "devices", "settings", "files")
"""Entries of `meta` that the exact numbers depend on."""

FOLD_IN_EACH = jax.vmap(jax.random.fold_in, in_axes=(0, None))
_log = logging.getLogger(__name__)


def initial_state(
    programs: compiled.Programs, members: Members, policy: dict[str, np.ndarray] | None
) -> tuple[RunState, Counters]:
    """The state of a new run, with the parameters `policy` if there are any."""
    zeros = [0] * len(members.seeds)
    state = programs.init(members.starts)
    if policy is not None:
        state = state._replace(agent=policy_files.warm_start(state.agent, policy))
        state = devices.place_like(state, programs.like)
    return state, Counters(0, episodes=zeros, skipped=zeros, restores=0, seconds=0.0, rows=0)


def restored_state(
    directory: RunDirectory, like: RunState, meta: dict[str, Any]
) -> tuple[RunState, Counters]:
    """The state of the newest checkpoint, placed as `like`; says what has changed since in `meta`.

    Raises CheckpointError if none can be read.
    """
    state, old_meta = _restore(directory, like, meta)
    jax_settings.refuse_other_draws(directory.path, old_meta)
    current = {name: meta[name] for name in SOURCES}
    old = {name: old_meta.get(name, current[name]) for name in current}
    for change in differences(old, current):
        _log.warning("%s since the run was saved: it may not continue bit for bit", change)
    return state, Counters(**old_meta["counters"])


def _restore(
    directory: RunDirectory, like: RunState, meta: dict[str, Any]
) -> tuple[RunState, dict[str, Any]]:
    """The state and the meta of the newest checkpoint. Raises CheckpointError."""
    try:
        return checkpoint.restore(directory.checkpoints, like)[:2]
    except checkpoint.CheckpointError as error:
        changes = changed_files(directory.checkpoints, meta["files"])
        raise checkpoint.CheckpointError(f"{error}{changes}") from error


def with_other_draws(state: RunState, attempt: int, like: RunState) -> RunState:
    """A state whose random numbers are others from here on, other ones at each `attempt`."""
    fold_in = FOLD_IN_EACH if state.key.ndim else jax.random.fold_in
    return devices.place_like(state._replace(key=fold_in(state.key, attempt)), like)
