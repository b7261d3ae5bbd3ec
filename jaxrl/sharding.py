"""How the state of a run lies on a mesh of devices with the axes `("member", "block")`.

Everything with an axis of N environments is split over `block`: what the environments are and show,
memories, the columns of a replay and of its priorities. Agents are whole on every device; there the
compiler adds up their gradients. Members, the runs side by side, never talk and are split over
`member`. A program is jitted with these shardings and knows nothing of devices itself:

    mesh = jax.make_mesh((1, 4), ("member", "block"), axis_types=(AxisType.Auto,) * 2)
    placed = sharding.shardings(mesh, jax.eval_shape(init, key))
    state = jax.jit(init, out_shardings=placed)(key)
    chunk = jax.jit(chunk, in_shardings=(placed,), out_shardings=(placed, None), donate_argnums=0)

As many devices as divide the number of blocks (`loop.Config.blocks`) exchange sums alone, with any
other number also experience. The layout goes by types, never by sizes: an agent whose state has an
axis of environments outside of these types has to be added here.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxrl import acting
from jaxrl.loop import TrainState
from jaxrl.replay.prioritised import Priorities
from jaxrl.replay.uniform import Replay
from jaxrl.types import PyTree
from jaxrl.wrappers import normalisation

MEMBER, BLOCK = "member", "block"
SPLIT: dict[type, dict[str, int]] = {
    TrainState: {"env": 0, "obs": 0, "memory": 0, "episode": 0},
    acting.World: {"env": 0, "obs": 0, "memory": 0, "episode": 0},
    Replay: {"data": 1},
    Priorities: {"mass": 1},
    normalisation.State: {"return_": 0},
}
"""Of each type the fields with an axis of N environments, and which axis that is."""


def layout(state: PyTree, members: bool = False) -> PyTree:
    """The PartitionSpec of every leaf of a state, by the types in it.

    `state` holds arrays or their shapes. With `members` every leaf has a first axis of M members.
    """
    first = (MEMBER,) if members else ()
    return _layout(state, lambda axis: P(*first, *[None] * axis, BLOCK), P(*first))


def shardings(mesh: Mesh, state: PyTree, members: bool = False) -> PyTree:
    """The NamedSharding of every leaf on a mesh with the axes `member` and `block`.

    Raises ValueError for a mesh with other axes.
    """
    if set(mesh.axis_names) != {MEMBER, BLOCK}:
        raise ValueError(
            f"the axes of the mesh are {mesh.axis_names}, expected ('{MEMBER}', '{BLOCK}'): "
            "give jax.make_mesh these names"
        )
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), layout(state, members))


def _layout(state: Any, split: Callable[[int], P], replicated: P) -> Any:
    """Goes down to the nodes whose type is known, and into their other fields."""

    def node_layout(x: Any) -> Any:
        if not is_known(x):
            return replicated
        axes = SPLIT[type(x)]
        fields, node = jax.tree.flatten_with_path(x, is_leaf=lambda y: y is not x)
        specs = [
            jax.tree.map(lambda _, axis=axes[path[0].name]: split(axis), value)
            if path[0].name in axes
            else _layout(value, split, replicated)
            for path, value in fields
        ]
        return jax.tree.unflatten(node, specs)

    is_known = lambda x: type(x) in SPLIT
    return jax.tree.map(node_layout, state, is_leaf=is_known)
