"""The reward set that follows nodes from being marked to being deleted in time.

Its caller keeps a `Marks` for the colony: `marking.marked` before the colony acts, the result in
`Step.marks`, and `marking.inherit` once it has grown.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from envs.durotaxis.marking import DELETE, NONE, Marks, gain
from envs.durotaxis.reward_set import SHAPING, RewardSet, Signal, termination
from envs.durotaxis.reward_step import Facts, total

JUDGED = ("growth", "unmarked", "marking", "deletion", "deadline")
"""The components that are clipped together."""


def marks_of(facts: Facts) -> Marks:
    """The marks; raises ValueError where the step has none."""
    if not isinstance(facts.step.marks, Marks):
        raise ValueError("the step has no marks; state_machine needs those of marking.marked")
    return facts.step.marks


def growth(weights: Any, facts: Facts) -> jax.Array:
    """exp(-(N - Nc)²/800), above 0 up to the critical number Nc and below 0 beyond it."""
    excess = facts.num_before - facts.step.critical_nodes
    return jnp.where(excess > 0, -1.0, 1.0) * jnp.exp(-(excess**2) / 800)


def unmarked(weights: Any, facts: Facts) -> jax.Array:
    """Nodes without a mark, over the critical number."""
    none = total(facts.nodes, marks_of(facts).mark == NONE)
    return none / jnp.maximum(facts.step.critical_nodes, 1)


def marking(weights: Any, facts: Facts) -> jax.Array:
    """The share of the nodes that got a mark when marking began, in that step only."""
    share = total(facts.nodes, marks_of(facts).mark != NONE) / jnp.maximum(facts.num_before, 1)
    return jnp.where(marks_of(facts).is_first, share, 0.0)


def lateness(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Steps `[C]` past the deadline of each mark, and the steps around it that are in time."""
    late = facts.step.time - marks_of(facts).marked_at - facts.step.delay
    window = jnp.maximum(1.0, jnp.round(3 * facts.step.delay / 10))
    return late, window


def deletion(weights: Any, facts: Facts) -> jax.Array:
    """Per deleted node exp(-D²/2s²), D steps before or after its deadline; within ±2 together.

    s is 2/3 of the window around the deadline. Out of the window, or without a deadline, -1.
    """
    late, window = lateness(facts)
    timely = (marks_of(facts).mark == DELETE) & (jnp.abs(late) <= window)
    praise = jnp.exp(-((late * 1.5 / window) ** 2) / 2)
    return jnp.clip(total(facts.deleted, jnp.where(timely, praise, -1.0)), -2, 2)


def deadline(weights: Any, facts: Facts) -> jax.Array:
    """Whether a node survives the last step in which it could have been deleted in time."""
    late, window = lateness(facts)
    missed = facts.survives & (marks_of(facts).mark == DELETE) & (late == window)
    return jnp.any(missed).astype(jnp.float32)


def distance(weights: Any, facts: Facts) -> jax.Array:
    """tanh((ΔI - 5)/12.5) + 0.3 exp(-(goal - x)²/1000), of mean intensity I and centroid x after.

    0 where there was or is no colony.
    """
    left = facts.step.width - 1 - facts.centroid_after
    climb = jnp.tanh((gain(facts.level_after, facts.level) - 5) / 12.5)
    value = climb + 0.3 * jnp.exp(-0.001 * left**2)
    return jnp.where(facts.is_colony, value, 0.0)


@struct.dataclass
class StateMachine(RewardSet):
    """Marking in time, deleting in time, going up the gradient, and the ending."""

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "growth": growth,
        "unmarked": unmarked,
        "marking": marking,
        "deletion": deletion,
        "deadline": deadline,
        "distance": distance,
        "termination": termination,
        **SHAPING,
    }

    growth: float = 0.5
    """How near the number of nodes before is to the critical one, negative beyond it."""
    unmarked: float = -0.5
    """Nodes without a mark, over the critical number."""
    marking: float = 0.5
    """The share of nodes marked when the colony first outgrows the critical number."""
    deletion: float = 0.5
    """Per deleted node: up to 1 for one to be deleted, by how near its deadline is; -1 for any
    other, or out of time. Within ±2 together."""
    deadline: float = -0.5
    """A node to be deleted that has outlived its time."""
    bound: float = 1.0
    """The five above are scaled down together where their sum exceeds ± this."""
    distance: float = 0.2
    """The gain of mean intensity, and being near the goal."""
    termination: float = 0.1
    """The end of an episode, the price of:"""
    crowded: float = -1.0
    """too many nodes;"""
    empty: float = -1.0
    """no nodes;"""
    retreated: float = -1.0
    """too many steps to the left in a row;"""
    arrived: float = 1.0
    """a node at the goal."""

    def weighted(self, facts: Facts) -> jax.Array:
        """Float32 `[K]`. Scaled down and not clipped, so that the parts still add up to the sum."""
        parts = super().weighted(facts)
        judged = jnp.sum(parts[: len(JUDGED)])
        excess = jnp.maximum(jnp.abs(judged), self.bound)
        share = jnp.where(excess > 0, self.bound / jnp.where(excess > 0, excess, 1.0), 0.0)
        return jnp.concatenate([parts[: len(JUDGED)] * share, parts[len(JUDGED) :]])
