"""The reward set `state_machine`: nodes are marked for deletion and should be deleted on time.

The caller keeps the `Marks` of the colony: it calls `marking.update_marks` before the colony
acts, puts the result into `Step.marks`, and calls `marking.inherit` after the colony has grown.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from envs.arguments import Range
from envs.durotaxis.marking import DELETE, NONE, Marks, gain
from envs.durotaxis.rewards.base import SHAPING, RewardSet, Signal, termination
from envs.durotaxis.rewards.facts import Facts, total

BOUNDED = ("growth", "unmarked", "marking", "deletion", "deadline")
"""The components whose sum is bounded."""


def marks_of(facts: Facts) -> Marks:
    """The marks of the step; raises ValueError if it has none."""
    if not isinstance(facts.step.marks, Marks):
        raise ValueError("the step has no marks; state_machine needs those of marking.update_marks")
    return facts.step.marks


def growth(weights: Any, facts: Facts) -> jax.Array:
    """±exp(-(N - Nc)²/800): positive up to the critical number Nc of nodes, negative beyond it."""
    excess = facts.num_before - facts.step.critical_nodes
    return jnp.where(excess > 0, -1.0, 1.0) * jnp.exp(-(excess**2) / 800)


def unmarked_ratio(weights: Any, facts: Facts) -> jax.Array:
    """The number of nodes without a mark, divided by the critical number."""
    none = total(facts.nodes, marks_of(facts).mark == NONE)
    return none / jnp.maximum(facts.step.critical_nodes, 1)


def marking(weights: Any, facts: Facts) -> jax.Array:
    """The share of nodes marked in the step in which marking begins; 0 in all other steps."""
    share = total(facts.nodes, marks_of(facts).mark != NONE) / jnp.maximum(facts.num_before, 1)
    return jnp.where(marks_of(facts).is_first, share, 0.0)


def lateness(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Steps `[C]` past each node's deadline, and how many before or after it are on time."""
    late = facts.step.time - marks_of(facts).marked_at - facts.step.delay
    window = jnp.maximum(1.0, jnp.round(3 * facts.step.delay / 10))
    return late, window


def deletion(weights: Any, facts: Facts) -> jax.Array:
    """The sum over deleted nodes of exp(-D²/(2 s²)), D steps from the deadline, clipped to ±2.

    s is 2/3 of the window around the deadline. Outside the window, or without a deadline, -1.
    """
    late, window = lateness(facts)
    timely = (marks_of(facts).mark == DELETE) & (jnp.abs(late) <= window)
    score = jnp.exp(-((late * 1.5 / window) ** 2) / 2)
    return jnp.clip(total(facts.deleted, jnp.where(timely, score, -1.0)), -2, 2)


def deadline(weights: Any, facts: Facts) -> jax.Array:
    """1 if a node to be deleted survives the last step in which that would have been on time."""
    late, window = lateness(facts)
    is_last = (late <= window) & (late + 1 > window)  # a delay may have a fraction
    missed = facts.survives & (marks_of(facts).mark == DELETE) & is_last
    return jnp.any(missed).astype(jnp.float32)


def distance(weights: Any, facts: Facts) -> jax.Array:
    """tanh((ΔI - 5)/12.5) + 0.3 exp(-(goal - x)²/1000); 0 without a colony before or after.

    I is the mean intensity, x the centroid after the step.
    """
    remaining = facts.step.width - 1 - facts.centroid_after
    climb = jnp.tanh((gain(facts.mean_intensity_after, facts.mean_intensity) - 5) / 12.5)
    value = climb + 0.3 * jnp.exp(-0.001 * remaining**2)
    return jnp.where(facts.is_colony, value, 0.0)


@struct.dataclass
class StateMachine(RewardSet):
    """Marking and deleting nodes on time, moving up the gradient, and the ending."""

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "growth": growth,
        "unmarked": unmarked_ratio,
        "marking": marking,
        "deletion": deletion,
        "deadline": deadline,
        "distance": distance,
        "termination": termination,
        **SHAPING,
    }

    growth: float = 0.5
    """Closeness of the number of nodes to the critical number; negative beyond it."""
    unmarked: float = -0.5
    """Number of nodes without a mark, divided by the critical number."""
    marking: float = 0.5
    """Share of nodes marked when the colony first exceeds the critical number."""
    deletion: float = 0.5
    """Per deleted node: up to 1 if it was to be deleted and its deadline is near, else -1; the sum
    is clipped to ±2."""
    deadline: float = -0.5
    """If a node to be deleted survives its deadline and the window after it."""
    bound: Annotated[float, Range(least=0.0)] = 1.0
    """The components growth to deadline are scaled down together if their sum exceeds ± this."""
    distance: float = 0.2
    """Gain of mean intensity, and closeness to the goal."""
    termination: float = 0.1
    """Factor of the prices of endings: crowded, empty, retreated, arrived."""
    crowded: float = -1.0
    """Price of an ending with too many nodes."""
    empty: float = -1.0
    """Price of an ending without nodes."""
    retreated: float = -1.0
    """Price of an ending after too many steps to the left in a row."""
    arrived: float = 1.0
    """Price of an ending with a node at the goal."""

    def weighted_components(self, facts: Facts) -> jax.Array:
        """Float32 `[K]`; scaled, not clipped, so that the components still add up to the sum."""
        parts = super().weighted_components(facts)
        bounded_sum = jnp.sum(parts[: len(BOUNDED)])
        excess = jnp.maximum(jnp.abs(bounded_sum), self.bound)
        share = jnp.where(excess > 0, self.bound / jnp.where(excess > 0, excess, 1.0), 0.0)
        return jnp.concatenate([parts[: len(BOUNDED)] * share, parts[len(BOUNDED) :]])
