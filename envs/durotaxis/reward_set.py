"""The base of the reward sets: named components, each a weight times a signal; and shaping.

Shaping adds F = γ Φ(s') - Φ(s) to the reward, which keeps optimal policies optimal if Φ is 0 in
terminal states, γ is the agent's discount and F is neither clipped nor scaled (Ng, Harada and
Russell 1999). A truncated episode is not terminal, so there Φ(s') is kept.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from envs.durotaxis.marking import below, count, existed, quota
from envs.durotaxis.reward_step import Facts, Step, facts_of, total

Signal = Callable[[Any, Facts], jax.Array]
"""From the weights of a set, of which it reads prices, and the facts to a float32 scalar."""

KEPT = 0.25
"""What the potential `shaping_delete` counts for a node that is not marked; a marked one is -1."""


def shaped(potential: Callable[[Facts], tuple[jax.Array, jax.Array]]) -> Signal:
    """The shaping by a potential, which is given as its values before and after the step."""

    def signal(weights: "RewardSet", facts: Facts) -> jax.Array:
        before, after = potential(facts)
        return weights.shaping_discount * jnp.where(facts.terminated, 0.0, after) - before

    return signal


def marked_nodes(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Φ: -1 for every node that the laboratory's rule marks, `KEPT` for every other.

    How many are marked is known without finding out which.
    """
    step, birth = facts.step, facts.step.growth.before.birth

    def potential(nodes, number, level, time):
        candidates = nodes & existed(birth, time, step.delay) & below(facts.intensity, level)
        marked = quota(count(candidates), number, step.critical_nodes)
        return KEPT * (number - marked) - marked

    # children are too young to be candidates
    return (
        potential(facts.nodes, facts.num_before, facts.level, step.time),
        potential(facts.survives, facts.num_after, facts.level_after, step.time + 1),
    )


def distance_left(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Φ: minus the way from the centroid to the goal, px; 0 without nodes."""
    goal = facts.step.width - 1
    return (
        jnp.where(facts.num_before > 0, facts.centroid - goal, 0.0),
        jnp.where(facts.num_after > 0, facts.centroid_after - goal, 0.0),
    )


def stiff_nodes(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Φ: the number of nodes on ground at least as stiff as `delta_intensity`."""
    threshold = facts.step.delta_intensity
    stiff, child_stiff = facts.intensity >= threshold, facts.child_intensity >= threshold
    return total(facts.nodes, stiff), total(facts.survives, stiff, child_stiff)


SHAPING: dict[str, Signal] = {
    "shaping_delete": shaped(marked_nodes),
    "shaping_centroid": shaped(distance_left),
    "shaping_spawn": shaped(stiff_nodes),
}


@struct.dataclass
class RewardSet:
    """The weights of a reward set: numbers, so that a sweep over them is one compilation.

    A component is the weight of its name times its signal, and the reward of a step is the sum of
    the components. Where a component prices several events, the prices are further fields, whose
    names begin like the component's (of `termination`: like the endings'). Penalties are negative.
    """

    TERMS: ClassVar[Mapping[str, Signal]] = SHAPING
    NAMES: ClassVar[tuple[str, ...]] = tuple(SHAPING)
    """Of the K components, in order."""

    shaping_delete: float = 0.0
    """Shaping by which nodes ought to be deleted."""
    shaping_centroid: float = 0.0
    """Shaping by the way to the goal, per px."""
    shaping_spawn: float = 0.0
    """Shaping by the nodes on stiff ground, per node."""
    shaping_discount: float = 0.99
    """The discount γ of the shaping; make it the agent's."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.NAMES = tuple(cls.TERMS)

    def components(self, step: Step) -> jax.Array:
        """Float32 `[K]`: the weighted components of one step; their sum is its reward."""
        return self.weighted(facts_of(step))

    def weighted(self, facts: Facts) -> jax.Array:
        """`components`, given the facts."""
        signals = jnp.stack([signal(self, facts) for signal in self.TERMS.values()])
        weights = jnp.stack([jnp.asarray(getattr(self, name), jnp.float32) for name in self.NAMES])
        return weights * signals


def termination(weights: Any, facts: Facts) -> jax.Array:
    """The price of the ending, if any."""
    price = jnp.zeros((), jnp.float32)
    for name, is_ending in facts.step.ending._asdict().items():
        price = jnp.where(is_ending, getattr(weights, name), price)
    return price
