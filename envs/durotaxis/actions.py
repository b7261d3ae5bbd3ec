"""The action of a step, in one of three forms.

| form | action |
|---|---|
| `global` | float32 `[1 + P]`: the share of the nodes to delete, then the P spawn parameters |
| `ratio` | float32 `[1]`: that share alone; spawn parameters are fixed |
| `nodes` | (int32 `[C]`: 1 to delete a node, 0 to let it spawn; float32 `[P]`: spawn parameters) |

A share deletes the leftmost nodes. The P spawn parameters are γ, α, noise and, with `directed`
spawning, the angle θ.
"""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.durotaxis import rules
from envs.durotaxis.rules import Colony

Form = Literal["global", "ratio", "nodes"]
FORMS: tuple[str, ...] = get_args(Form)
Spawning = Literal["directed", "isotropic"]
SPAWNINGS: tuple[str, ...] = get_args(Spawning)
PARAMETERS = {
    "directed": ("gamma", "alpha", "noise", "theta"),
    "isotropic": ("gamma", "alpha", "noise"),
}


@struct.dataclass
class Bounds:
    """The smallest and the largest value of each number in an action."""

    delete_ratio: tuple[float, float] = (0.0, 0.7)
    """Share of the nodes; below 0.5 every colony grows."""
    gamma: tuple[float, float] = (0.5, 15.0)
    """Distance of children on very stiff ground, px."""
    alpha: tuple[float, float] = (0.5, 4.0)
    """Intensity at which that distance is half of gamma."""
    noise: tuple[float, float] = (0.05, 0.5)
    """directed: a constant that is added to the distance, px. isotropic: the deviation of what is
    added, which is normal."""
    theta: tuple[float, float] = (-0.5236, 0.5236)
    """Direction of children, radians; 0 is right."""


@struct.dataclass
class Spawn:
    """Spawn parameters, as an action gives them or as they are fixed; scalars, perhaps traced."""

    gamma: float  # px
    alpha: float
    noise: float  # px, a constant in `directed`, a deviation in `isotropic`
    theta: float = 0.0  # radians, 0 is right


FIXED = {"directed": Spawn(0.5, 2.0, 0.1, 0.0), "isotropic": Spawn(5.0, 2.0, 0.5, 0.0)}
"""Spawn parameters of the action `ratio`: `directed` from the original's first training stage, in
which no colony can reach the goal, `isotropic` from its last version."""


class Decision(NamedTuple):
    """A decoded action."""

    deleted: jax.Array  # bool [C]
    spawn: Spawn


def names(form: str, spawning: str) -> tuple[str, ...]:
    """The names of the continuous numbers of an action, in order."""
    parameters = PARAMETERS[spawning]
    return {
        "global": ("delete_ratio", *parameters),
        "ratio": ("delete_ratio",),
        "nodes": parameters,
    }[form]


def box(form: str, spawning: str, bounds: Bounds) -> tuple[jax.Array, jax.Array]:
    """`(low, high)` of those numbers, float32, one entry for each of `names`."""
    ends = [getattr(bounds, name) for name in names(form, spawning)]
    low, high = (jnp.stack([jnp.asarray(end[i], jnp.float32) for end in ends]) for i in (0, 1))
    return low, high


def space(form: str, spawning: str, bounds: Bounds, capacity: int) -> spaces.Space:
    """The actions of a form."""
    low, high = box(form, spawning, bounds)
    numbers = spaces.Box(low, high, low.shape, jnp.float32)
    return spaces.Tuple((Choices(capacity), numbers)) if form == "nodes" else numbers


class Choices(spaces.Discrete):
    """For each of C slots 1 to delete its node or 0 to let it spawn; int32 `[C]`."""

    def __init__(self, capacity: int):
        super().__init__(2)
        self.shape = (capacity,)

    def sample(self, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, self.shape, 0, 2)

    def contains(self, x: jax.Array) -> jax.Array:
        return jnp.all((x == 0) | (x == 1))


def clip_numbers(form: str, spawning: str, numbers: jax.Array, bounds: Bounds) -> jax.Array:
    """The numbers of an action, in the order of `names`, clipped to their bounds.

    NaN becomes the lower bound: in a colony it would stay, as every comparison that could delete
    its node is false.
    """
    low, high = box(form, spawning, bounds)
    return jnp.where(jnp.isnan(numbers), low, jnp.clip(numbers, low, high))


def read(
    form: str, spawning: str, action: Any, colony: Colony, bounds: Bounds, fixed: Spawn
) -> Decision:
    """The decoded action, with numbers clipped by `clip_numbers`."""
    if form == "nodes":
        choice, numbers = action
        deleted = choice == 1
    else:
        numbers = action
    numbers_by_name: dict[str, Any] = dict(
        zip(names(form, spawning), clip_numbers(form, spawning, numbers, bounds), strict=True)
    )
    if form != "nodes":
        count = rules.delete_count(numbers_by_name.pop("delete_ratio"), colony.num_nodes)
        deleted = rules.leftmost(colony.x, rules.alive(colony), count)
    return Decision(deleted, Spawn(**numbers_by_name) if numbers_by_name else fixed)
