"""Selecting slots and compacting the selected ones, without sorting or scattering.

Counting is nearly all of it. XLA for CPU adds up a short row one element at a time, so rows are
added up in slices, and sets of slots are packed into words, where counting is one instruction.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

T = TypeVar("T")
LANES = 16
WORD = 32
SENTINEL = np.uint32(2**32 - 1)  # above the key of every candidate


def leftmost(x: jax.Array, candidates: jax.Array, count: jax.Array) -> jax.Array:
    """The `count` candidates of smallest (x, slot): bool `[C]`; all of them if there are fewer.

    `x` is float32 `[C]` without NaN, `candidates` bool `[C]`, `count` an int32 scalar; -0.0 equals
    0.0. None is chosen for a count below 1.
    """
    return _smallest(_sort_keys(x), candidates, count)


def rightmost(x: jax.Array, candidates: jax.Array, count: jax.Array) -> jax.Array:
    """The `count` candidates of largest x, among equals those of lowest slot; see `leftmost`."""
    return _smallest(~_sort_keys(x), candidates, count)


def compact(values: T, keep: jax.Array) -> T:
    """Every array `[C]` of a pytree with the slots of `keep`, bool `[C]`, first; zeros follow.

    The kept ones stay in their order.
    """
    slot = jnp.arange(keep.size, dtype=jnp.int32)
    source, is_kept = nth(keep, slot), slot < size(keep)
    return jax.tree.map(lambda v: jnp.where(is_kept, v[source], jnp.zeros_like(v)), values)


def size(members: jax.Array) -> jax.Array:
    """How many of bool `[C]` are true, an int32 scalar."""
    ones = jnp.pad(members.astype(jnp.int32), (0, -members.size % LANES))
    return jnp.sum(sum(ones[i : i + LANES] for i in range(0, ones.size, LANES)))


def rank(members: jax.Array) -> jax.Array:
    """How many members of the set bool `[C]` lie in lower slots: int32 `[C]`, for every slot."""
    words = _pack_words(members)
    sizes = _population(words)
    lower = (jnp.uint32(1) << jnp.arange(WORD, dtype=jnp.uint32)) - 1
    in_word = _population(words[:, None] & lower[None, :])
    before = jnp.cumsum(sizes) - sizes
    return (before[:, None] + in_word).reshape(-1)[: members.size]


def nth(members: jax.Array, ranks: jax.Array) -> jax.Array:
    """The slots of the members of these ranks, int32 `[R]`; an arbitrary slot if there is none.

    `members` is bool `[C]`, `ranks` int32 `[R]` from 0 up: the inverse of `rank`.
    """
    word, word_ranks = jnp.zeros(ranks.shape, jnp.uint32), ranks
    slot, before = jnp.zeros(ranks.shape, jnp.int32), jnp.int32(0)
    for w, candidate in enumerate(_pack_words(members)):
        here = ranks >= before
        word = jnp.where(here, candidate, word)
        slot = jnp.where(here, w * WORD, slot)
        word_ranks = jnp.where(here, ranks - before, word_ranks)
        before = before + _population(candidate)
    for width in (16, 8, 4, 2, 1):  # halve the word until one bit is left
        low = word & jnp.uint32((1 << width) - 1)
        upper = word_ranks >= _population(low)
        word_ranks = jnp.where(upper, word_ranks - _population(low), word_ranks)
        word = jnp.where(upper, word >> width, low)
        slot = jnp.where(upper, slot + width, slot)
    return jnp.minimum(slot, members.size - 1)


def _smallest(keys: jax.Array, candidates: jax.Array, count: jax.Array) -> jax.Array:
    """The `count` candidates of smallest (key, slot), for keys uint32 `[C]` below `SENTINEL`."""
    keys = jnp.where(candidates, keys, SENTINEL)
    smallest = jax.lax.platform_dependent(keys, count, cpu=_bisect, default=_count_smaller)
    return candidates & smallest


def _count_smaller(keys: jax.Array, count: jax.Array) -> jax.Array:
    """Bool `[C]`: of fewer than `count` others (key, slot) is smaller. O(C²) work in one go."""
    slot, (own, other) = jnp.arange(keys.size), (keys[:, None], keys[None])
    is_smaller = (other < own) | ((other == own) & (slot[None] < slot[:, None]))
    return jnp.sum(is_smaller, axis=1, dtype=jnp.int32) < count


def _bisect(keys: jax.Array, count: jax.Array) -> jax.Array:
    """`_count_smaller` by bisection, bit by bit, for the key of the last one chosen.

    That is the largest threshold with fewer than `count` keys below it.
    """
    padded = jnp.pad(keys, (0, -keys.size % LANES), constant_values=SENTINEL)

    def settle_bit(i: jax.Array, threshold: jax.Array) -> jax.Array:
        higher = threshold | jnp.uint32(1) << (31 - i).astype(jnp.uint32)
        return jnp.where(size(padded < higher) < count, higher, threshold)

    threshold = jax.lax.fori_loop(0, 32, settle_bit, jnp.uint32(0))
    below, tied = keys < threshold, keys == threshold
    return below | (tied & (rank(tied) < count - size(below)))


def _sort_keys(x: jax.Array) -> jax.Array:
    """Uint32 in the order of float32: all bits of negative numbers flipped, else the sign bit."""
    bits = jax.lax.bitcast_convert_type(jnp.where(x == 0, 0.0, x), jnp.uint32)
    sign = jnp.uint32(1 << 31)
    return jnp.where(bits >= sign, ~bits, bits | sign)


def _pack_words(members: jax.Array) -> jax.Array:
    """Bool `[C]` as bits of uint32 words, low slots first."""
    bits = jnp.pad(members, (0, -members.size % WORD)).reshape(-1, WORD).astype(jnp.uint32)
    return jnp.sum(bits << jnp.arange(WORD, dtype=jnp.uint32)[None, :], axis=1, dtype=jnp.uint32)


def _population(words: jax.Array) -> jax.Array:
    return jax.lax.population_count(words).astype(jnp.int32)
