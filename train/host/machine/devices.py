"""The devices of a run: a mesh of members, which never talk, and of blocks of one member.

Devices are given to members first; what is left splits the blocks of each (see `jaxrl.sharding`).
"""

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh

from jaxrl import sharding
from jaxrl.types import AgentState, PyTree, RunState, below_params
from train.host.errors import UsageError, in_one_line
from train.host.machine import control_groups
from train.host.numbers import quantity

GATHERED = 2**26
"""Bytes of an array up to which processes exchange all of it."""
ASKING = ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS")
"""Variables that ask for devices."""
AXES = (sharding.MEMBER, sharding.BLOCK)


def one_per_core() -> None:
    """Makes each core of this process a device of JAX, unless it has been told how many.

    Call it before anything computes; later it does nothing.
    """
    is_set = jax.config.jax_num_cpu_devices >= 0  # pyright: ignore[reportAttributeAccessIssue]
    if is_set or "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    with contextlib.suppress(RuntimeError):  # JAX has begun to compute
        jax.config.update("jax_num_cpu_devices", core_count())


def core_count() -> int:
    """The cores that this process may run on, or fewer if its container pays for fewer."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    quota = control_groups.cores()
    return cores if quota is None else min(cores, quota)


def refuse_none() -> None:
    """Raises UsageError, with JAX's reason, where no device is as it was asked for."""
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # the latter for a plugin that is missing
        reason = in_one_line(error) or "there is none, or no plugin for it is installed"
        variables = [f"{name}={os.environ[name]}" for name in ASKING if os.environ.get(name)]
        cause = f" with {' '.join(variables)}" if variables else ""
        advice = "change or unset that" if variables else "JAX_PLATFORMS=cpu does without"
        raise UsageError(f"JAX has no device{cause} ({reason}): {advice}") from error


def refuse_missing(count: int) -> None:
    """Raises UsageError if there are fewer devices than `count`."""
    present = len(jax.devices())
    if count > present:
        raise UsageError(
            f"--devices {count}: JAX has only {quantity(present, 'devices')}; "
            f"give {present}, or all"
        )


def refuse_part(request: str) -> None:
    """Raises UsageError if several processes are to use some of their devices only."""
    count = len(jax.devices())
    if request not in ("auto", "all", str(count)):
        raise UsageError(
            f"--devices {request}: the processes of --distributed use all {count} that they have: "
            "give --devices all"
        )


def mesh_of(
    request: str, members: int, blocks: int, flags: Sequence[str] = ("--run.num-seeds",)
) -> Mesh | None:
    """The mesh for the requested devices, "auto", "all" or a number; None for one device.

    "all" are as many as can share the work equally; "auto" is one, or as many cores of a CPU as can
    share the members. Several processes use all they have. Raises UsageError if there are fewer
    than requested, more in several processes, or the number does not divide the work; `flags`
    are those that say how many members and blocks there are.
    """
    devices, is_alone = jax.devices(), jax.process_count() == 1
    if not is_alone:  # or a process would have none
        refuse_part(request)
        request = "all"
    if request == "auto":
        is_cpu = devices[0].platform == "cpu"
        request = str(mesh_shape(len(devices), members, 1)[0] if is_cpu else 1)
    count = len(devices) if request == "all" else int(request)
    refuse_missing(count)
    shape = mesh_shape(count, members, blocks)
    size = shape[0] * shape[1]
    if size != count and (request != "all" or not is_alone):
        subject = f"--devices {count}" if is_alone else f"{count} devices of all processes"
        fewer = f"give {quantity(size, 'devices')}, or" if is_alone else "give"
        raise UsageError(
            f"{subject} cannot share {quantity(members, 'seeds')} of "
            f"{quantity(blocks, 'blocks')} equally: {fewer} another {' or '.join(flags)}"
        )
    if size == 1:
        return None
    grid = np.array(devices[:size]).reshape(shape)
    return Mesh(grid, AXES, axis_types=(AxisType.Auto,) * 2)


def mesh_shape(count: int, members: int, blocks: int) -> tuple[int, int]:
    """`(m, b)`, m devices along members and b along blocks: as many of `count` as divide both."""
    shapes = [
        (m, b)
        for m in range(1, count + 1)
        for b in range(1, count // m + 1)
        if members % m == 0 and blocks % b == 0
    ]
    return max(shapes, key=lambda shape: (shape[0] * shape[1], shape[0]))


def members_of_one(request: str, members: int, blocks: int) -> int:
    """Members that share the memory of a device, of the devices that are requested as in `mesh_of`.

    CPUs share that of the machine, and so do all members.
    """
    is_one = request == "auto" and jax.process_count() == 1
    if is_one or jax.default_backend() == "cpu":
        return members
    count = len(jax.devices())
    count = min(count, int(request)) if request.isdecimal() else count
    return members // mesh_shape(count, members, blocks)[0]


def count_of(state: RunState) -> int:
    """The devices that share a run, given its state or the shapes of it."""
    return len(state.key.sharding.device_set)


def count_of_process(state: RunState) -> int:
    """How many of them are of this process."""
    return len(state.key.sharding.addressable_devices)


def layout(mesh: Mesh | None, state: PyTree, members: bool) -> Any:
    """Where the leaves of a state go; None without a mesh."""
    return None if mesh is None else sharding.shardings(mesh, state, members)


def move_to_one_device(agent: AgentState) -> AgentState:
    """An agent on the first device of this process, for what is not split: evaluations, pictures.

    Where it is spread over processes, all of them must ask; a replay is then left out, as zeros.
    """

    def move_leaf(path: tuple, x: Any) -> Any:
        if not isinstance(x, jax.Array) or len(x.sharding.device_set) == 1:
            return x
        if x.is_fully_addressable:
            return jax.device_put(x, jax.local_devices()[0])
        if x.nbytes > GATHERED and not below_params(path):
            return np.broadcast_to(np.zeros((), x.dtype), x.shape)
        return gather_array(x)

    return jax.tree_util.tree_map_with_path(move_leaf, agent)


def gather_array(x: jax.Array) -> Any:
    """An array or a typed key that is spread over processes; all must ask."""
    if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return multihost_utils.process_allgather(x, tiled=True)
    numbers = multihost_utils.process_allgather(jax.random.key_data(x), tiled=True)
    return jax.random.wrap_key_data(jnp.asarray(numbers), impl=jax.random.key_impl(x))


def place_like(tree: PyTree, shapes: PyTree) -> PyTree:
    """A tree of arrays on the devices of `shapes`, where it is not there yet."""
    return jax.tree.map(lambda x, y: jax.device_put(x, y.sharding), tree, shapes)
