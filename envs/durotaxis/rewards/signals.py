"""The signals of the full reward set: float32 scalars, from its weights and the facts of a step.

`envs.durotaxis.rewards.sets.Normal` documents each of them and its prices.
"""

from typing import Any

import jax
import jax.numpy as jnp

from envs.durotaxis.graph import hull as convex
from envs.durotaxis.marking import deletion_rule, gains, is_below, is_old_enough
from envs.durotaxis.rewards.facts import Facts, advance, milestones_reached, total

LARGEST_INTENSITY = 1e6
"""Largest intensity that is paid for: steep exponential ground reaches 1e38, where the sum over a
few nodes overflows, and far smaller values already outweigh all other components."""
OLD_AGE, LONG_STAGNATION = 50, 20  # steps
SURVIVAL_MATURES = 100  # steps


def connectivity(weights: Any, facts: Facts) -> jax.Array:
    return (facts.num_after < 2).astype(jnp.float32)


def growth(weights: Any, facts: Facts) -> jax.Array:
    return jnp.where(is_large(facts), facts.num_after / critical(facts), 0.0)


def company(weights: Any, facts: Facts) -> jax.Array:
    return ((facts.num_after >= 2) & ~is_large(facts)).astype(jnp.float32)


def is_large(facts: Facts) -> jax.Array:
    """Whether more nodes are left than are critical, two at least; bool."""
    return (facts.num_after >= 2) & (facts.num_after > facts.step.critical_nodes)


def critical(facts: Facts) -> jax.Array:
    """The critical number of nodes, at least 1, to divide by."""
    return jnp.maximum(facts.step.critical_nodes, 1)


def action_count(weights: Any, facts: Facts) -> jax.Array:
    return facts.num_before


def centroid(weights: Any, facts: Facts) -> jax.Array:
    return advance(facts)


def spawn(weights: Any, facts: Facts) -> jax.Array:
    success = gains(facts.child_intensity, facts.intensity, facts.step.delta_intensity)
    price = jnp.where(success, weights.spawn_success, weights.spawn_failure)
    return total(facts.survives, price)


def wall_distance(facts: Facts, y: jax.Array) -> jax.Array:
    """How far nodes at y `[C]` (px) are from the nearer horizontal wall, over the height."""
    return jnp.minimum(y, facts.step.height - y) / facts.step.height


def boundary(weights: Any, facts: Facts) -> jax.Array:
    distance = wall_distance(facts, facts.step.growth.child_y)
    near = jnp.where(distance < 0.15, weights.boundary_near, 0.0)
    return total(facts.survives, jnp.where(distance < 0.08, weights.boundary_danger, near))


def delete(weights: Any, facts: Facts) -> jax.Array:
    step = facts.step
    is_marked = deletion_rule(
        step.growth.before, facts.intensity, step.time, step.critical_nodes, step.delay
    )
    deleted_price = jnp.where(is_marked, weights.delete_marked, weights.delete_unmarked)
    kept_price = jnp.where(is_marked, weights.delete_missed, 0.0)
    return total(facts.nodes, jnp.where(facts.deleted, deleted_price, kept_price))


def efficiency(weights: Any, facts: Facts) -> jax.Array:
    # nodes never move, so a node stagnates from the second state it is in
    age = facts.step.time + 1 - facts.step.growth.before.birth
    stagnation = age - 1
    too_old = weights.efficiency_age * jnp.maximum(age - OLD_AGE, 0)
    too_still = weights.efficiency_stagnation * jnp.maximum(stagnation - LONG_STAGNATION, 0)
    return total(facts.deleted, too_old, too_still)


def edge(weights: Any, facts: Facts) -> jax.Array:
    step, before = facts.step.growth, facts.step.growth.before

    def price(dx):
        leftward = jnp.where(dx < -0.01, weights.edge_leftward, 0.0)
        return jnp.where(dx > 0.01, weights.edge_rightward, leftward)

    linked = facts.survives & (step.new_parent >= 0)
    old = total(linked, price(before.x - before.x[jnp.maximum(step.new_parent, 0)]))
    return old + total(facts.survives, price(step.child_x - before.x))


def intensity(weights: Any, facts: Facts) -> jax.Array:
    capped = (
        jnp.clip(values, -LARGEST_INTENSITY, LARGEST_INTENSITY)
        for values in (facts.intensity, facts.child_intensity)
    )
    return total(facts.survives, *capped)


def hull(weights: Any, facts: Facts) -> jax.Array:
    step = facts.step.growth
    x = jnp.concatenate([step.before.x, step.child_x])
    y = jnp.concatenate([step.before.y, step.child_y])
    is_vertex = convex.vertices(x, y, jnp.concatenate([facts.survives, facts.survives]))
    return jnp.sum(is_vertex, dtype=jnp.float32)


def left_edge(weights: Any, facts: Facts) -> jax.Array:
    step, limit = facts.step.growth, 0.1 * facts.step.width
    return total(facts.survives, step.before.x < limit, step.child_x < limit)


def zones(weights: Any, facts: Facts) -> jax.Array:
    def price(y):
        distance = wall_distance(facts, y)
        near = jnp.where(distance < 0.15, weights.zones_near, 0.0)
        near = jnp.where(distance < 0.08, weights.zones_danger, near)
        return jnp.where(distance < 0.03, weights.zones_critical, near)

    step = facts.step.growth
    return total(facts.survives, price(step.before.y), price(step.child_y))


def centre(weights: Any, facts: Facts) -> jax.Array:
    step, middle = facts.step.growth, facts.step.height / 2
    is_central = (jnp.abs(y - middle) < 0.3 * middle for y in (step.before.y, step.child_y))
    return total(facts.survives, *is_central)


def above_average(weights: Any, facts: Facts) -> jax.Array:
    # children are too young to be judged
    step = facts.step
    old = facts.survives & is_old_enough(step.growth.before.birth, step.time + 1, step.delay)
    is_below_average = is_below(facts.intensity, facts.mean_intensity_after)
    return total(
        old, jnp.where(is_below_average, weights.above_average_below, weights.above_average_above)
    )


def survival(weights: Any, facts: Facts) -> jax.Array:
    time = facts.step.time + 1
    bonus = jnp.where(time >= SURVIVAL_MATURES, weights.survival_late, 0.0)
    progress = jnp.minimum(time / (0.8 * facts.step.max_steps), 1)
    return (weights.survival_step + bonus) * (1 + progress)


def milestone(weights: Any, facts: Facts) -> jax.Array:
    newly_reached = milestones_reached(facts.step.growth, facts.step.width) & ~facts.step.milestones
    prices = (
        weights.milestone_25,
        weights.milestone_50,
        weights.milestone_75,
        weights.milestone_90,
    )
    return total(newly_reached, jnp.stack([jnp.asarray(price, jnp.float32) for price in prices]))
