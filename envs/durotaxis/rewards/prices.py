"""Prices of events that several reward sets share, as bases of these sets."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
from flax import struct

from envs.arguments import Range
from envs.durotaxis.rewards.base import RewardSet, termination
from envs.durotaxis.rewards.facts import Facts


@struct.dataclass
class Deletions(RewardSet):
    """Prices of deletions, by the rule `marking.deletion_rule`."""

    delete_marked: float = 2.0
    """Per deleted node that should be deleted by the rule."""
    delete_missed: float = -2.0
    """Per kept node that should be deleted by the rule."""
    delete_unmarked: float = -2.0
    """Per deleted node that should be kept by the rule."""


@struct.dataclass
class Children(RewardSet):
    """Prices of children, by the ground they are on."""

    spawn_success: float = 2.5
    """Per child on ground stiffer than its parent's by `delta_intensity` or more."""
    spawn_failure: float = -1.0
    """Per child on any other ground."""


@struct.dataclass
class Walls(RewardSet):
    """Prices of children near a horizontal wall."""

    boundary_near: float = -3.0
    """Per child at 8 to 15 % of the height from the wall."""
    boundary_danger: float = -8.0
    """Per child nearer than that."""


@struct.dataclass
class Endings(RewardSet):
    """Prices of endings."""

    crowded: float = -15.0
    """Price of an ending with too many nodes."""
    empty: float = -100.0
    """Price of an ending without nodes."""
    retreated: float = -50.0
    """Price of an ending after too many steps to the left in a row."""
    arrived: float = 500.0
    """Price of an ending with a node at the goal."""


@struct.dataclass
class BoundedEndings(Endings):
    """Prices of endings, scaled and clipped, see `bounded_termination`."""

    termination: float = 1.0
    """Factor of the prices of endings, scaled and clipped: crowded, empty, retreated, arrived."""
    termination_scale: float = 0.02
    """The price of an ending is multiplied by this first."""
    termination_bound: Annotated[float, Range(least=0.0)] = 10.0
    """The scaled price is clipped to ± this."""


def bounded_termination(weights: Any, facts: Facts) -> jax.Array:
    """The price of the ending, scaled and clipped."""
    price = weights.termination_scale * termination(weights, facts)
    return jnp.clip(price, -weights.termination_bound, weights.termination_bound)
