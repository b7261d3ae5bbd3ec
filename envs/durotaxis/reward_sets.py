"""The reward sets that need nothing but the step: the full one and two that look at progress."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from envs.durotaxis import reward_signals as signals
from envs.durotaxis.marking import lab_marks
from envs.durotaxis.reward_set import SHAPING, RewardSet, Signal, termination
from envs.durotaxis.reward_step import Facts, advance, total


@struct.dataclass
class Normal(RewardSet):
    """Everything that a step may be worth, each on its own.

    Movement is left out, since nodes never move; so is a pay for every step of training that the
    first version added, which drowned all the rest. "After" means the survivors and the children.
    Of a node, d is the distance from the nearer horizontal wall over the height.
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
    """More nodes after than the critical number: times their ratio."""
    company: float = 0.1
    """Two nodes at least and no more than the critical number."""
    action_count: float = 0.01
    """Per node before: each of them spawns or is deleted."""
    centroid: float = 5.0
    """Per px that the centroid goes to the right."""
    spawn: float = 1.0
    """Per child, the price of:"""
    spawn_success: float = 2.5
    """one on ground stiffer than its parent's by `delta_intensity` or more;"""
    spawn_failure: float = -1.0
    """any other."""
    boundary: float = 1.0
    """Per child, the price of:"""
    boundary_near: float = -3.0
    """one with d < 0.15;"""
    boundary_danger: float = -8.0
    """one with d < 0.08, instead."""
    delete: float = 1.0
    """Per node before, the price of:"""
    delete_marked: float = 2.0
    """deleting one that the laboratory's rule marks;"""
    delete_missed: float = -2.0
    """keeping one that it marks;"""
    delete_unmarked: float = -2.0
    """deleting one that it does not mark."""
    efficiency: float = 1.0
    """Per deleted node, the price of:"""
    efficiency_age: float = 0.05
    """each step of its age beyond 50, where a node is 1 in its first state;"""
    efficiency_stagnation: float = 0.1
    """each step of its stagnation, which is its age less 1, beyond 20."""
    edge: float = 1.0
    """Per edge after, from parent to child, the price of:"""
    edge_rightward: float = 0.5
    """one that goes right by more than 0.01 px;"""
    edge_leftward: float = -0.05
    """one that goes left by more than 0.01 px."""
    intensity: float = 0.3
    """Per unit of intensity under each node after, each counted for 1e6 at most."""
    hull: float = 0.1
    """Per vertex of the convex hull after."""
    left_edge: float = -0.2
    """Per node after in the leftmost tenth."""
    zones: float = 1.0
    """Per node after, the price of:"""
    zones_near: float = -0.5
    """d < 0.15;"""
    zones_danger: float = -2.0
    """d < 0.08, instead;"""
    zones_critical: float = -5.0
    """d < 0.03, instead."""
    centre: float = 0.05
    """Per node after in the middle 30 % of the height."""
    above_average: float = 1.0
    """Per survivor that was there `delay` + 1 steps before the state after, the price of:"""
    above_average_below: float = -0.3
    """standing on less than the mean intensity after;"""
    above_average_above: float = 1.5
    """any other."""
    survival: float = 1.0
    """Per step t = 1, 2, ..., times 1 + min(1, t / 80 % of the time limit):"""
    survival_step: float = 0.01
    """any step;"""
    survival_late: float = 0.02
    """steps from the hundredth on, besides."""
    milestone: float = 1.0
    """Once an episode each, the price of the first node to have come:"""
    milestone_25: float = 50.0
    """25 % of the width;"""
    milestone_50: float = 150.0
    """50 %;"""
    milestone_75: float = 300.0
    """75 %;"""
    milestone_90: float = 500.0
    """90 %."""
    termination: float = 1.0
    """The end of an episode, the price of:"""
    crowded: float = -15.0
    """too many nodes;"""
    empty: float = -100.0
    """no nodes;"""
    retreated: float = -50.0
    """too many steps to the left in a row;"""
    arrived: float = 500.0
    """a node at the goal."""


def relative_advance(weights: Any, facts: Facts) -> jax.Array:
    """The way of the centroid to the right, as a share of the way across."""
    return advance(facts) / (facts.step.width - 1)


def every_step(weights: Any, facts: Facts) -> jax.Array:
    """1, whatever happened."""
    return jnp.ones((), jnp.float32)


def bounded_termination(weights: "Distance", facts: Facts) -> jax.Array:
    """The price of the ending, scaled and clipped."""
    price = weights.termination_scale * termination(weights, facts)
    return jnp.clip(price, -weights.termination_bound, weights.termination_bound)


@struct.dataclass
class Distance(RewardSet):
    """How far the centroid went, and how the episode ended."""

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "distance": relative_advance,
        "step": every_step,
        "termination": bounded_termination,
        **SHAPING,
    }

    distance: float = 5.0
    """Per width that the centroid goes to the right; paid from the first step on."""
    step: float = 0.0
    """Every step; below 0 it is a cost of time."""
    termination: float = 1.0
    """The end of an episode, the price of which is scaled and clipped."""
    termination_scale: float = 0.02
    termination_bound: float = 10.0
    crowded: float = -15.0
    """The price of too many nodes,"""
    empty: float = -100.0
    """of no nodes,"""
    retreated: float = -50.0
    """of too many steps to the left in a row,"""
    arrived: float = 500.0
    """of a node at the goal."""


def agreement(weights: Any, facts: Facts) -> jax.Array:
    """The mean over the nodes before of 1 for deleting the marked or keeping the rest, else -1."""
    step = facts.step
    marked = lab_marks(
        step.growth.before, facts.intensity, step.time, step.critical_nodes, step.delay
    )
    score = total(facts.nodes, jnp.where(marked == facts.deleted, 1.0, -1.0))
    return score / jnp.maximum(facts.num_before, 1)


def saturated_advance(weights: "ThreePart", facts: Facts) -> jax.Array:
    """The way of the centroid to the right, within -1 and 1.

    The first version weighed the way by the slope of the ground and divided it by a scale that
    holds the same slope as a factor: the slope cancels, on every ground, and is not computed.
    """
    return jnp.tanh(advance(facts) / weights.distance_scale)


@struct.dataclass
class ThreePart(RewardSet):
    """Deletion, distance and ending, each within -1 and 1."""

    TERMS: ClassVar[Mapping[str, Signal]] = {
        "delete": agreement,
        "distance": saturated_advance,
        "termination": termination,
        **SHAPING,
    }

    delete: float = 1.0
    """How far what was deleted agrees with what the laboratory's rule marks."""
    distance: float = 1.0
    """How far the centroid went to the right."""
    distance_scale: float = 0.05 / 1.4722
    """px; 0.05 px to the right are worth 0.9. Colonies often go farther: enlarge it for them."""
    termination: float = 1.0
    """The end of an episode, the price of:"""
    crowded: float = -1.0
    """too many nodes;"""
    empty: float = -1.0
    """no nodes;"""
    retreated: float = -1.0
    """too many steps to the left in a row;"""
    arrived: float = 1.0
    """a node at the goal."""
