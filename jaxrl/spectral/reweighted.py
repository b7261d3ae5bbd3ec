"""Pairs of states of one random walk, recorded by another: importance weights.

A behaviour policy b took the actions, π is the policy whose walk is wanted. `ratio` is log π(a|s) -
log b(a|s) of each recorded transition. Weights are self-normalised (Owen 2013, §9.2): they are
divided by their sum over whatever they weigh.

Two estimates of the law of pairs of the walk of π:

* `pair_distribution`: of the chain whose transitions are the recorded ones, each weighted by its
  own ratio. Starts of trajectories are as recorded, all later visits follow from the chain.
* `pair_weights`, for recorded pairs of times: the product of the ratios between them, times how
  much more often π is in the first state, with as many transitions left (`visit_ratio`; Liu et al.
  2018 call it the stationary ratio). Products over many transitions vary much: see
  `effective_share`.

Both need trajectories whose length does not depend on their path, and b above 0 where π is.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.numerics.linalg import matmul
from jaxrl.spectral import pairs


class WeightedCounts(NamedTuple):
    """Counts of trajectories on S states."""

    steps: jax.Array  # float32 [S, S] ratios of all transitions from s to s', added up
    visits: jax.Array  # int32 [S, T] transitions from s with 1..T left, this one included
    starts: jax.Array  # int32 [S, T] trajectories of 1..T transitions that begin in s


def empty_walk(num_states: int, length: int) -> WeightedCounts:
    """Counts of 0, for trajectories of at most `length` transitions."""
    empty = jnp.zeros((num_states, length), jnp.int32)
    return WeightedCounts(jnp.zeros((num_states, num_states)), empty, empty)


def record(
    walk: WeightedCounts, state: jax.Array, next_state: jax.Array, done: jax.Array, ratio: jax.Array
) -> WeightedCounts:
    """Adds a rollout, all `[T, N]`; every one of its columns begins a trajectory."""
    left = pairs.transitions_left(done)
    is_first = jnp.concatenate([jnp.ones_like(done[:1]), done[:-1]])
    return WeightedCounts(
        walk.steps.at[state, next_state].add(jnp.exp(ratio)),
        walk.visits.at[state, left - 1].add(1),
        walk.starts.at[state, left - 1].add(is_first.astype(jnp.int32)),
    )


def chain(walk: WeightedCounts) -> jax.Array:
    """P(s' | s) of the walk of π, `[S, S]`; a state without transitions is absorbing."""
    total = walk.steps.sum(axis=1, keepdims=True)
    return jnp.where(total > 0, walk.steps / jnp.where(total > 0, total, 1.0), jnp.eye(len(total)))


def expected_visits(walk: WeightedCounts) -> jax.Array:
    """Expected visits of the walk of π, `[S, T]`: to s with 1..T transitions left."""
    move = chain(walk)

    def step(visits: jax.Array, starts: jax.Array) -> tuple[jax.Array, jax.Array]:
        visits = starts + matmul(visits[None], move)[0]
        return visits, visits

    starts = walk.starts.astype(jnp.float32).T  # [T, S], the longest last
    _, all_visits = jax.lax.scan(step, jnp.zeros(len(move)), starts, reverse=True)
    return all_visits.T


def pair_distribution(walk: WeightedCounts, discount: float | jax.Array) -> jax.Array:
    """The distribution of pairs of the walk of π, M `[S, S]` with sum 1."""
    return pairs.chain_distribution(expected_visits(walk), chain(walk), discount)


def visit_ratio(walk: WeightedCounts) -> jax.Array:
    """How many times more often π than b is in s with 1..T transitions left, `[S, T]`."""
    return jnp.where(walk.visits > 0, expected_visits(walk) / jnp.maximum(walk.visits, 1), 0.0)


def cumulative_ratio(done: jax.Array, ratio: jax.Array) -> jax.Array:
    """Sum of `ratio` from the start of the trajectory to each transition, included: `[T, N]`."""

    def step(
        previous_total: jax.Array, transition: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        is_end, own = transition
        total = previous_total + own
        return jnp.where(is_end, 0.0, total), total

    return jax.lax.scan(step, jnp.zeros(ratio.shape[1:]), (done, ratio))[1]


def pair_weights(first: jax.Array, last: jax.Array, own: jax.Array, visit: jax.Array) -> jax.Array:
    """Weights `[B]` of pairs from the transition i to the transition j of a trajectory, i <= j.

    `first` and `last` are `cumulative_ratio` at i and j, `own` the ratio of i, `visit` the
    `visit_ratio` at i.
    """
    return visit * jnp.exp(last - first + own)


def effective_share(weight: jax.Array) -> jax.Array:
    """(Σ w)² / (B Σ w²), 0 to 1: the share of B weighted samples that equal ones would replace."""
    square = jnp.sum(weight**2)
    return jnp.sum(weight) ** 2 / jnp.maximum(len(weight) * square, jnp.finfo(jnp.float32).tiny)
