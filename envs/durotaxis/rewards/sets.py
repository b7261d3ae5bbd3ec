"""The reward sets `normal`, `distance`, `combined` and `three_part`, which need no marks."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from envs.arguments import Range
from envs.durotaxis.marking import deletion_rule
from envs.durotaxis.rewards import signals
from envs.durotaxis.rewards.base import SHAPING, RewardSet, Signal, termination
from envs.durotaxis.rewards.facts import Facts, advance, total
from envs.durotaxis.rewards.prices import (
    BoundedEndings,
    Children,
    Deletions,
    Endings,
    Walls,
    bounded_termination,
)


@struct.dataclass
class Normal(Deletions, Children, Walls, Endings):
    """The full set: one component for each property of a step.

    "After" means the survivors and the children; d is a node's distance from the nearer horizontal
    wall, divided by the height. A component that distinguishes several events is a factor, and the
    fields named after it are the price of each event; those that sets share are in `prices`.

    Two rewards of the original are left out: one for movement, since nodes never move, and one for
    being alive, which outweighed all others.
    """

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "connectivity": signals.connectivity,
        "growth": signals.growth,
        "company": signals.company,
        "action_count": signals.action_count,
        "centroid": signals.centroid,
        "spawn": signals.spawn,
        "boundary": signals.boundary,
        "delete": signals.delete,
        "efficiency": signals.efficiency,
        "edge": signals.edge,
        "intensity": signals.intensity,
        "hull": signals.hull,
        "left_edge": signals.left_edge,
        "zones": signals.zones,
        "centre": signals.centre,
        "above_average": signals.above_average,
        "survival": signals.survival,
        "milestone": signals.milestone,
        "termination": termination,
        **SHAPING,
    }

    connectivity: float = -5.0
    """Fewer than two nodes after."""
    growth: float = -3.0
    """More nodes after than the critical number: times the ratio of the two."""
    company: float = 0.1
    """At least two nodes after, and no more than the critical number."""
    action_count: float = 0.01
    """Per node before: each of them spawns or is deleted."""
    centroid: float = 5.0
    """Per px that the centroid moves to the right."""
    spawn: float = 1.0
    """Factor of the prices of children, spawn_*."""
    boundary: float = 1.0
    """Factor of the prices of children near a horizontal wall, boundary_*."""
    delete: float = 1.0
    """Factor of the prices of deletions, delete_*; for the rule see `marking.deletion_rule`."""
    efficiency: float = 1.0
    """Factor of the prices of deleting old nodes, efficiency_*."""
    efficiency_age: float = 0.05
    """Per deleted node and step of its age beyond 50; a node has age 1 in its first state."""
    efficiency_stagnation: float = 0.1
    """Per deleted node and step of its stagnation beyond 20; stagnation is age less 1."""
    edge: float = 1.0
    """Factor of the prices of edges after, from parent to child, edge_*."""
    edge_rightward: float = 0.5
    """Per edge that goes right by more than 0.01 px."""
    edge_leftward: float = -0.05
    """Per edge that goes left by more than 0.01 px."""
    intensity: float = 0.3
    """Per unit of intensity under each node after, up to 1e6 units per node."""
    hull: float = 0.1
    """Per vertex of the convex hull after."""
    left_edge: float = -0.2
    """Per node after in the leftmost tenth of the ground."""
    zones: float = 1.0
    """Factor of the prices of nodes near a horizontal wall, zones_*."""
    zones_near: float = -0.5
    """Per node after with 0.08 ≤ d < 0.15."""
    zones_danger: float = -2.0
    """Per node after with 0.03 ≤ d < 0.08."""
    zones_critical: float = -5.0
    """Per node after with d < 0.03."""
    centre: float = 0.05
    """Per node after in the middle 30 % of the height."""
    above_average: float = 1.0
    """Factor of the prices of survivors that existed `delay` + 1 steps ago, above_average_*."""
    above_average_below: float = -0.3
    """Per such survivor on less than the mean intensity after."""
    above_average_above: float = 1.5
    """Per other such survivor."""
    survival: float = 1.0
    """Factor of survival_*; in step t = 1, 2, ... times 1 + min(1, t / 80 % of the time limit)."""
    survival_step: float = 0.01
    """Every step."""
    survival_late: float = 0.02
    """Every step from the hundredth on, in addition."""
    milestone: float = 1.0
    """Factor of the prices of milestones, milestone_*, each paid once an episode."""
    milestone_25: float = 50.0
    """First node at 25 % of the width."""
    milestone_50: float = 150.0
    """First node at 50 % of the width."""
    milestone_75: float = 300.0
    """First node at 75 % of the width."""
    milestone_90: float = 500.0
    """First node at 90 % of the width."""
    termination: float = 1.0
    """Factor of the prices of endings: crowded, empty, retreated, arrived."""


def relative_advance(weights: Any, facts: Facts) -> jax.Array:
    """The displacement of the centroid to the right over W - 1, the way to the last column, px."""
    return advance(facts) / (facts.step.width - 1)


def every_step(weights: Any, facts: Facts) -> jax.Array:
    """1 in every step."""
    return jnp.ones((), jnp.float32)


@struct.dataclass
class Distance(BoundedEndings):
    """The displacement of the centroid, and the ending."""

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "distance": relative_advance,
        "step": every_step,
        "termination": bounded_termination,
        **SHAPING,
    }

    distance: float = 5.0
    """Per ground width less 1 px that the centroid moves to the right, from the first step on."""
    step: float = 0.0
    """Every step; a negative value is a cost of time."""


def wrong_deletions(weights: Any, facts: Facts) -> jax.Array:
    """The sum of the prices of deletions if it is negative, else 0."""
    return jnp.minimum(signals.delete(weights, facts), 0.0)


@struct.dataclass
class Combined(Deletions, Children, Walls, BoundedEndings):
    """The parts that the first version could reward alone or together, and the ending.

    Its modes are weights: only deletion (`distance` and `spawn` 0), only spawning (`distance`,
    `growth` and `delete` 0), or distance and deletion, as here; without the ending `termination` 0.
    """

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "distance": relative_advance,
        "growth": signals.growth,
        "delete": wrong_deletions,
        "spawn": signals.spawn,
        "boundary": signals.boundary,
        "termination": bounded_termination,
        **SHAPING,
    }

    distance: float = 5.0
    """Per ground width less 1 px that the centroid moves to the right."""
    growth: float = -3.0
    """More nodes after than the critical number: times the ratio of the two."""
    delete: float = 1.0
    """Factor of the sum of the prices of deletions, delete_*, where that is negative."""
    spawn: float = 0.0
    """Factor of the prices of children, spawn_*."""
    boundary: float = 0.0
    """Factor of the prices of children near a horizontal wall, boundary_*."""


def agreement(weights: Any, facts: Facts) -> jax.Array:
    """The mean over the nodes before: 1 if deleted or kept as `deletion_rule` says, else -1."""
    step = facts.step
    is_marked = deletion_rule(
        step.growth.before, facts.intensity, step.time, step.critical_nodes, step.delay
    )
    score = total(facts.nodes, jnp.where(is_marked == facts.deleted, 1.0, -1.0))
    return score / jnp.maximum(facts.num_before, 1)


def saturated_advance(weights: "ThreePart", facts: Facts) -> jax.Array:
    """tanh(d / `distance_scale`), d px being the displacement of the centroid to the right.

    The original multiplies d by the slope of the ground and divides it by a scale that contains the
    same slope, which therefore cancels.
    """
    return jnp.tanh(advance(facts) / weights.distance_scale)


@struct.dataclass
class ThreePart(RewardSet):
    """Deletion, displacement and ending, each between -1 and 1."""

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "delete": agreement,
        "distance": saturated_advance,
        "termination": termination,
        **SHAPING,
    }

    delete: float = 1.0
    """Agreement of the deletions with `marking.deletion_rule`."""
    distance: float = 1.0
    """Displacement of the centroid to the right, saturated by tanh."""
    distance_scale: Annotated[float, Range(above=0.0)] = 0.05 / 1.4722
    """px; 0.05 px to the right are worth 0.9. Increase it for colonies that move farther a step."""
    termination: float = 1.0
    """Factor of the prices of endings: crowded, empty, retreated, arrived."""
    crowded: float = -1.0
    """Price of an ending with too many nodes."""
    empty: float = -1.0
    """Price of an ending without nodes."""
    retreated: float = -1.0
    """Price of an ending after too many steps to the left in a row."""
    arrived: float = 1.0
    """Price of an ending with a node at the goal."""
