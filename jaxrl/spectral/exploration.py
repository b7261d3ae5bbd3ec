"""A walk that explores numbered states, and the chain of the uniform walk estimated from it.

Node counting (Koenig, Szymanski & Liu 2001) takes an action that has never been taken in a state,
or else the one that last led to the least visited successor. So all states are visited alike, which
a random walk's visits are on average only. The actions are known, so the chain of the uniform walk
is estimated action by action: where an action always leads to one state, a single try is enough.
S states, A actions, T steps of a walk.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl import acting
from jaxrl.acting import World
from jaxrl.spectral import pairs
from jaxrl.types import Agent, Environment, PyTree


class ExplorationCounts(NamedTuple):
    """Counts of walks on S states."""

    steps: jax.Array  # int32 [S, A, S] transitions from s by a to s'
    visits: jax.Array  # int32 [S] transitions from s
    left: jax.Array  # int32 [T] transitions with 1..T left, this one included
    successor: jax.Array  # int32 [S, A], where a led from s the last time; -1 if never taken


def empty_walk(num_states: int, num_actions: int, length: int) -> ExplorationCounts:
    """Counts of 0, for walks of at most `length` transitions."""
    return ExplorationCounts(
        jnp.zeros((num_states, num_actions, num_states), jnp.int32),
        jnp.zeros(num_states, jnp.int32),
        jnp.zeros(length, jnp.int32),
        jnp.full((num_states, num_actions), -1, jnp.int32),
    )


def record(
    walk: ExplorationCounts,
    state: jax.Array,
    action: jax.Array,
    next_state: jax.Array,
    left: jax.Array,
) -> ExplorationCounts:
    """Adds transitions, int32 arrays of one shape; `left` of their walk are left, 1..T."""
    return ExplorationCounts(
        walk.steps.at[state, action, next_state].add(1),
        walk.visits.at[state].add(1),
        walk.left.at[left - 1].add(1),
        walk.successor.at[state, action].set(next_state),
    )


def least_visited(walk: ExplorationCounts, state: jax.Array, key: jax.Array) -> jax.Array:
    """The action, int32 `[]`, that node counting takes in `state`; ties are broken by `key`."""
    successor = walk.successor[state]  # [A]
    visits = jnp.where(successor >= 0, walk.visits[successor], -1)
    return jnp.argmin(visits + jax.random.uniform(key, visits.shape))


def explore(
    env: Environment, params: PyTree, world: World, walk: ExplorationCounts, num_steps: int
) -> tuple[World, ExplorationCounts]:
    """`world` and `walk` after `num_steps` steps of all its environments, which begin an episode.

    Observations are states; episodes must last T steps. What one walker records is known to all at
    their next step.
    """
    length = len(walk.left)
    act = lambda walk, memory, obs, key: (least_visited(walk, obs, key), memory, ())
    walker = Agent(lambda key, obs: walk, lambda: (), act, lambda walk, rollout, key: (walk, {}))

    def step(
        carry: tuple[World, ExplorationCounts], time: jax.Array
    ) -> tuple[tuple[World, ExplorationCounts], None]:
        world, walk = carry
        world, (transition, _) = acting.step(env, params, walker, walk, world)
        ends = (transition.obs, transition.action, transition.next_obs)
        left = jnp.full_like(transition.obs, length - time % length)
        return (world, record(walk, *ends, left)), None

    return jax.lax.scan(step, (world, walk), jnp.arange(num_steps))[0]


def chain(walk: ExplorationCounts) -> jax.Array:
    """P(s' | s) `[S, S]` of the uniform walk; actions never taken in a state are left out.

    A state without recorded transitions is absorbing.
    """
    tries = walk.steps.sum(axis=2, keepdims=True)
    by_action = jnp.where(tries > 0, walk.steps / jnp.maximum(tries, 1), 0.0).sum(axis=1)
    actions = (tries > 0).sum(axis=1)  # [S, 1]
    return jnp.where(actions > 0, by_action / jnp.maximum(actions, 1), jnp.eye(len(by_action)))


def pair_distribution(walk: ExplorationCounts, discount: float | jax.Array) -> jax.Array:
    """The distribution of pairs `[S, S]`, sum 1: they begin where transitions do and go on by P.

    How many transitions are left is taken not to depend on the state, as in a uniform walk that
    starts anywhere; while a walk explores, it does.
    """
    begins = walk.visits[:, None] * (walk.left / walk.left.sum())[None]  # [S, T]
    return pairs.chain_distribution(begins, chain(walk), discount)
