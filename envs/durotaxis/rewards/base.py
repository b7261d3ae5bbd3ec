"""The base of the reward sets: named components, each a weight times a signal; and shaping.

Shaping adds F = γ Φ(s') - Φ(s) to the reward, which keeps optimal policies optimal if Φ is 0 in
terminal states, γ is the agent's discount and F is neither clipped nor scaled (Ng, Harada and
Russell 1999). A truncated episode is not terminal, so there Φ(s') is kept.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from envs.arguments import Range
from envs.durotaxis.marking import count, is_below, is_old_enough, quota
from envs.durotaxis.rewards.facts import Facts, Step, facts_of, total

Signal = Callable[[Any, Facts], jax.Array]
"""Maps the weights of a set, which include prices, and the facts to a float32 scalar."""

KEPT = 0.25
"""Potential, in `shaping_delete`, of a node that should be kept; others have -1."""


def shaping_signal(potential: Callable[[Facts], tuple[jax.Array, jax.Array]]) -> Signal:
    """The shaping by a potential: a function that returns Φ(s) and Φ(s'), before and after."""

    def signal(weights: "RewardSet", facts: Facts) -> jax.Array:
        before, after = potential(facts)
        return weights.shaping_discount * jnp.where(facts.terminated, 0.0, after) - before

    return signal


def marked_nodes(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Φ: -1 for every node that `marking.deletion_rule` marks, `KEPT` for every other.

    Only their number is computed, which does not need the rule itself.
    """
    step, birth = facts.step, facts.step.growth.before.birth

    def potential(nodes, number, level, time):
        candidates = (
            nodes & is_old_enough(birth, time, step.delay) & is_below(facts.intensity, level)
        )
        num_marked = quota(count(candidates), number, step.critical_nodes)
        return KEPT * (number - num_marked) - num_marked

    # children are too young to be candidates
    return (
        potential(facts.nodes, facts.num_before, facts.mean_intensity, step.time),
        potential(facts.survives, facts.num_after, facts.mean_intensity_after, step.time + 1),
    )


def distance_left(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Φ: minus the distance from the centroid to the goal, px; 0 without nodes."""
    goal = facts.step.width - 1
    return (
        jnp.where(facts.num_before > 0, facts.centroid - goal, 0.0),
        jnp.where(facts.num_after > 0, facts.centroid_after - goal, 0.0),
    )


def stiff_nodes(facts: Facts) -> tuple[jax.Array, jax.Array]:
    """Φ: the number of nodes on ground at least as stiff as `delta_intensity`: here no gain."""
    threshold = jnp.asarray(facts.step.delta_intensity)
    stiff = ~is_below(facts.intensity, threshold)
    child_stiff = ~is_below(facts.child_intensity, threshold)
    return total(facts.nodes, stiff), total(facts.survives, stiff, child_stiff)


SHAPING: dict[str, Signal] = {
    "shaping_delete": shaping_signal(marked_nodes),
    "shaping_centroid": shaping_signal(distance_left),
    "shaping_spawn": shaping_signal(stiff_nodes),
}


@struct.dataclass
class RewardSet:
    """The weights of a reward set: numbers, so that a sweep over them is one compilation.

    A component is the weight of its name times its signal, and the reward of a step is the sum of
    the components. If a component distinguishes several events, their prices are further fields,
    named after the component (for `termination`, after the endings). Penalties are negative.
    """

    TERMS: ClassVar[Mapping[str, Signal]] = SHAPING
    NAMES: ClassVar[tuple[str, ...]] = tuple(SHAPING)
    """Names of the K components, in order."""

    shaping_delete: float = 0.0
    """Shaping by the nodes that should be deleted."""
    shaping_centroid: float = 0.0
    """Shaping by the distance to the goal, per px."""
    shaping_spawn: float = 0.0
    """Shaping by the nodes on stiff ground, per node."""
    shaping_discount: Annotated[float, Range(least=0.0, most=1.0)] = 0.99
    """The discount γ of the shaping; it should be the agent's."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.NAMES = tuple(cls.TERMS)

    def components(self, step: Step) -> jax.Array:
        """Float32 `[K]`: the weighted components of one step; their sum is its reward."""
        return self.weighted_components(facts_of(step))

    def weighted_components(self, facts: Facts) -> jax.Array:
        """`components`, given the facts."""
        signals = jnp.stack([signal(self, facts) for signal in self.TERMS.values()])
        weights = jnp.stack([jnp.asarray(getattr(self, name), jnp.float32) for name in self.NAMES])
        return weights * signals


def termination(weights: Any, facts: Facts) -> jax.Array:
    """The price of the ending, if any; of a recovery its share of the price `empty`."""
    step, price = facts.step, jnp.zeros((), jnp.float32)
    for name, is_ending in step.ending._asdict().items():
        price = jnp.where(is_ending, getattr(weights, name), price)
    if isinstance(step.recovered, tuple):
        return price
    return jnp.where(step.recovered, step.recovery_price * weights.empty, price)
