"""Searches that learn from results: which members are replaced, and by what. Pure functions.

A search has M slots that always train. A slot holds a candidate: a state, its age in updates, its
seed and its numbers. A rule looks at the scores of all slots and says which candidates make way.
Axes: **M** slots, **C** candidates of a slot, **R** rungs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from train.sweep.plan import Interval

Ranges = Mapping[str, Interval]
"""The numbers that a search varies, by dotted name, and from where they are drawn."""
Numbers = dict[str, jax.Array]  # [M] by dotted name

PART = 5
"""The best and the worst 1 / PART of a population take part in an exchange."""
FACTORS = (0.8, 1.25)
"""What population-based training multiplies a number with."""
RESAMPLED = 0.25
"""How often it draws a number anew instead."""


class Slots(NamedTuple):
    """What a search knows of its slots; all of it is part of their states."""

    numbers: Numbers  # [M] of the candidate in the slot
    candidate: jax.Array  # [M] int32; slot m holds candidate m, later m + M, m + 2 M, ...
    parent: jax.Array  # [M] int32, of which candidate it is a copy; -1: of none
    key: jax.Array  # [M]
    scores: jax.Array  # [M, C, R] of the slot's candidates at each rung; NaN: not reached


class Replacement(NamedTuple):
    """What each slot holds next. A slot that keeps its candidate is its own source."""

    source: jax.Array  # [M] int32, the slot whose state it takes
    fresh: jax.Array  # [M] bool; it takes a new state instead
    numbers: Numbers  # [M]
    seeds: jax.Array  # [M] int32


Rule = Callable[[Slots, jax.Array, jax.Array], tuple[Slots, Replacement]]
"""`(slots, scores [M], ages [M]) -> (slots, replacement)`. Higher scores are better. NaN: a
candidate without a score yet, which is not judged; -inf: one that is not finite and makes way."""


def begin(
    numbers: Mapping[str, Sequence[float]], candidates: int, rungs: int, key: jax.Array
) -> Slots:
    """The slots of a search with their first candidates; C and R are `candidates` and `rungs`."""
    first = {name: jnp.asarray(x, jnp.float32) for name, x in numbers.items()}
    count = len(next(iter(first.values())))
    own = jnp.arange(count, dtype=jnp.int32)
    blank = jnp.full((count, candidates, rungs), jnp.nan, jnp.float32)
    return Slots(first, own, jnp.full_like(own, -1), jax.random.split(key, count), blank)


def halving(ranges: Ranges, rungs: Sequence[int], reduction: int, seed: int) -> Rule:
    """Successive halving as in Li et al. 2020 (arXiv:1810.05934, algorithm 2), in lockstep.

    At each rung, an age in `rungs`, a candidate goes on if it is among the best 1 / `reduction` of
    all that have reached the rung so far, and in any case if it is the best; of equal ones that of
    the lower number is better. Otherwise, and at the last rung, where it is trained to the end, its
    slot gets a fresh candidate. Unlike there none waits to be promoted later. Candidate i has the
    seed `seed` + i.
    """
    steps = jnp.asarray(rungs, jnp.int32)

    def rule(slots: Slots, scores: jax.Array, ages: jax.Array) -> tuple[Slots, Replacement]:
        slots = record_scores(slots, scores, ages, steps)
        ranks, counts = standings(slots)
        allowed = jnp.maximum(counts // reduction, 1)
        reached = (ages[:, None] == steps[None]) & jnp.isfinite(scores)[:, None]  # [M, R]
        beaten = reached & (ranks >= allowed[None])
        fresh = jnp.isneginf(scores) | (ages >= steps[-1]) | jnp.any(beaten, axis=1)
        keys, chance = split(slots.key)
        new_numbers = jax.vmap(lambda key: draw(ranges, key))(chance)
        source = jnp.arange(len(scores), dtype=jnp.int32)
        return apply_replacement(slots._replace(key=keys), source, fresh, new_numbers, seed)

    return rule


def population(ranges: Ranges, period: int, budget: int, seed: int) -> Rule:
    """Population-based training (Jaderberg et al. 2017, arXiv:1711.09846): truncation, perturbing.

    Whenever its age is a multiple of `period`, but for the end at `budget`, a member among the
    worst fifth copies one drawn from the best fifth; each fifth is at least one member. Copied
    numbers are multiplied with one of `FACTORS` or, with probability `RESAMPLED`, drawn anew, and
    stay within their ranges. A member that is not finite copies in the same way, at any age; it
    begins anew if there is none to copy. Candidate i has the seed `seed` + i.
    """

    def rule(slots: Slots, scores: jax.Array, ages: jax.Array) -> tuple[Slots, Replacement]:
        slots = record_scores(slots, scores, ages, jnp.asarray([budget], jnp.int32))
        is_finite, broken = jnp.isfinite(scores), jnp.isneginf(scores)
        count = jnp.sum(is_finite, dtype=jnp.int32)
        order = jnp.argsort(jnp.where(is_finite, -scores, jnp.inf), stable=True).astype(jnp.int32)
        part = jnp.minimum(jnp.maximum(count // PART, 1), count // 2)
        is_worst = is_finite & (jnp.argsort(order) >= count - part)
        is_due = (ages % period == 0) & (ages < budget)
        copies = ((is_worst & is_due) | broken) & (count > 0)
        keys, chance = split(slots.key)
        choice, change = split(chance)
        chosen = jax.vmap(lambda key: jax.random.randint(key, (), 0, jnp.maximum(part, 1)))(choice)
        own = jnp.arange(len(scores), dtype=jnp.int32)
        source = jnp.where(copies, order[chosen], own)
        copied = {name: x[source] for name, x in slots.numbers.items()}
        changed = jax.vmap(lambda key, x: perturb(ranges, key, x))(change, copied)
        return apply_replacement(
            slots._replace(key=keys), source, broken & (count == 0), changed, seed
        )

    return rule


def record_scores(slots: Slots, scores: jax.Array, ages: jax.Array, rungs: jax.Array) -> Slots:
    """Writes down the scores `[M]` of the candidates at a rung; `rungs [R]` are ages."""
    slot = jnp.arange(len(scores))
    place = slots.candidate // len(scores)
    previous_scores = slots.scores[slot, place]  # [M, R]
    reached = (ages[:, None] == rungs[None]) & jnp.isfinite(scores)[:, None]
    table = slots.scores.at[slot, place].set(jnp.where(reached, scores[:, None], previous_scores))
    return slots._replace(scores=table)


def standings(slots: Slots) -> tuple[jax.Array, jax.Array]:
    """`(ranks [M, R], counts [R])`: how many are better than the candidate of each slot, of all
    that have reached a rung, and how many those are."""
    count, most, rungs = slots.scores.shape
    by_candidate = slots.scores.transpose(2, 1, 0).reshape(rungs, most * count)  # m + M c
    order = jnp.argsort(-by_candidate, axis=1, stable=True)  # NaN is last
    ranks = jnp.argsort(order, axis=1)
    return ranks[:, slots.candidate].T, jnp.sum(jnp.isfinite(by_candidate), axis=1)


def apply_replacement(
    slots: Slots, source: jax.Array, fresh: jax.Array, numbers: Numbers, seed: int
) -> tuple[Slots, Replacement]:
    """The slots after a replacement, whose new candidates have `numbers`; others keep their own."""
    own = jnp.arange(len(source), dtype=jnp.int32)
    is_new = fresh | (source != own)
    candidate = slots.candidate + jnp.where(is_new, len(own), 0)
    parent = jnp.where(fresh, -1, slots.candidate[source])
    slot_numbers = {name: jnp.where(is_new, numbers[name], x) for name, x in slots.numbers.items()}
    slots = slots._replace(
        numbers=slot_numbers, candidate=candidate, parent=jnp.where(is_new, parent, slots.parent)
    )
    return slots, Replacement(source, fresh, slot_numbers, candidate + seed)


def split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Each key `[M]` in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]


def draw(ranges: Ranges, key: jax.Array) -> Numbers:
    """A number from each range, uniform or with a uniform logarithm; within the range."""
    numbers = {}
    for part, (name, (low, high, log)) in zip(
        jax.random.split(key, len(ranges)), ranges.items(), strict=True
    ):
        share = jax.random.uniform(part)
        even = low + share * (high - low)
        numbers[name] = jnp.clip(low * (high / low) ** share if log else even, low, high)
    return numbers


def perturb(ranges: Ranges, key: jax.Array, numbers: Numbers) -> Numbers:
    """Numbers of a copy, each multiplied or drawn anew; within their ranges."""
    draw_key, anew_key, factor_key = jax.random.split(key, 3)
    fresh_numbers = draw(ranges, draw_key)
    is_resampled = jax.random.bernoulli(anew_key, RESAMPLED, (len(ranges),))
    is_raised = jax.random.bernoulli(factor_key, 0.5, (len(ranges),))
    new_numbers = {}
    for i, (name, (low, high, _)) in enumerate(ranges.items()):
        moved = jnp.clip(numbers[name] * jnp.where(is_raised[i], FACTORS[1], FACTORS[0]), low, high)
        new_numbers[name] = jnp.where(is_resampled[i], fresh_numbers[name], moved)
    return new_numbers
