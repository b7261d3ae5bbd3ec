"""The devices of a run: a mesh of members, which never talk, and of blocks of one member.

Devices are given to members first; what is left splits the blocks of each (see `jaxrl.sharding`).
"""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from jaxrl import sharding
from jaxrl.types import PyTree
from train.host.errors import UsageError

AXES = (sharding.MEMBER, sharding.BLOCK)


def mesh_of(wanted: str, members: int, blocks: int) -> Mesh | None:
    """The mesh for `wanted` devices, "all" or a number; None for one device.

    "all" are as many as can share the work equally. Raises UsageError if there are fewer than
    wanted, or the number does not divide the work.
    """
    found = jax.devices()
    count = len(found) if wanted == "all" else int(wanted)
    if count > len(found):
        raise UsageError(f"--devices {count}: there are {len(found)}; give that, or all")
    shape = shared(count, members, blocks)
    used = shape[0] * shape[1]
    if wanted != "all" and used != count:
        raise UsageError(
            f"--devices {count} cannot share {members} seeds of {blocks} blocks equally: give "
            f"{used} devices, or another --loop.blocks or --run.num-seeds"
        )
    if used == 1:
        return None
    grid = np.array(found[:used]).reshape(shape)
    return Mesh(grid, AXES, axis_types=(AxisType.Auto,) * 2)


def shared(count: int, members: int, blocks: int) -> tuple[int, int]:
    """`(m, b)`, m devices along members and b along blocks: as many of `count` as divide both."""
    ways = [
        (m, b)
        for m in range(1, count + 1)
        for b in range(1, count // m + 1)
        if members % m == 0 and blocks % b == 0
    ]
    return max(ways, key=lambda way: (way[0] * way[1], way[0]))


def layout(mesh: Mesh | None, state: PyTree, members: bool) -> Any:
    """Where the leaves of a state go; None without a mesh."""
    return None if mesh is None else sharding.shardings(mesh, state, members)


def on_one(tree: PyTree) -> PyTree:
    """A tree of arrays on the first device, for what is not split: evaluations, pictures."""
    first = jax.devices()[0]

    def moved(x: Any) -> Any:
        whole = isinstance(x, jax.Array) and len(x.sharding.device_set) > 1
        return jax.device_put(x, first) if whole else x

    return jax.tree.map(moved, tree)


def like(tree: PyTree, shapes: PyTree) -> PyTree:
    """A tree of arrays on the devices of `shapes`, where it is not there yet."""
    return jax.tree.map(lambda x, y: jax.device_put(x, y.sharding), tree, shapes)
