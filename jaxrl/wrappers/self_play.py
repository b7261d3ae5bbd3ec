"""Self-play: an agent that also moves its opponent, with a pool of its own past parameters.

The environment has two players, or M. Its observation is a dict of "own", the learner's view;
"other", the opponent's view, or those of several `[M - 1, ...]`; and "rival", an unsigned integer
that is constant within an episode and selects the member of the pool that plays them, modulo the
members so far: a snapshot that joins or replaces one in mid-episode may change who plays. An action
is `[2]`, the learner's and the opponent's, or `[M]` where `respond` and `guest` answer with those
of several. The learner learns from its own side alone. Where the observation has "guest", that says
whether a fixed policy plays instead, of whatever network.

Against its newest self only, an agent may cycle through strategies and forget old ones; a pool of
past selves prevents that (fictitious self-play: Heinrich et al. 2015).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count
from jaxrl.types import (
    Action,
    Agent,
    AgentState,
    Memory,
    Metrics,
    Observation,
    PyTree,
    Transition,
    as_agent,
)

LEARNER = 0


@struct.dataclass
class Config:
    """The pool of opponents."""

    snapshot_updates: Count = 50
    """Updates between two snapshots of the learner."""
    pool_size: Count = struct.field(pytree_node=False, default=4)
    """P, members of the pool; all are evaluated at every step, so keep it small."""


class State(NamedTuple):
    """The learner and its opponents."""

    learner: AgentState
    pool: PyTree  # [P, ...] parameters of the learner, in a ring; () without rivals
    taken: jax.Array  # int32, snapshots so far; the first is the untrained learner
    updates: jax.Array  # int32
    is_frozen: jax.Array  # bool; no more snapshots. Set by whoever owns the state


Respond = Callable[[PyTree, Observation, jax.Array], Action]
Guest = Callable[[Observation, jax.Array], Action]


def make(
    agent: Agent, respond: Respond | None, config: Config, guest: Guest | None = None
) -> Agent:
    """`agent` playing both sides of the game.

    `respond(params, obs, key) -> action` is the policy of a member of the pool, given `params` of
    the agent's state; None: no rival is ever met, and there is no pool. `guest(obs, key) -> action`
    is the policy of the guest, where one is met. Raises ValueError for a pool without members, for
    what is no agent, and if there is no opponent.
    """
    checks.config_of(Config, config)
    agent = as_agent(agent)
    if respond is None and guest is None:
        raise ValueError("self-play without an opponent: give `respond`, `guest` or both")

    def init(key: jax.Array, obs: Observation) -> State:
        learner = agent.init(key, obs["own"])
        zero = jnp.zeros((), jnp.int32)
        if respond is None:
            return State(learner, (), zero, zero, jnp.bool_(False))
        pool = jax.tree.map(
            lambda x: jnp.zeros((config.pool_size, *jnp.shape(x)), jnp.result_type(x)),
            learner.params,
        )
        return snapshot(State(learner, pool, zero, zero, jnp.bool_(False)))

    def act(state: State, memory: Memory, obs: Observation, key: jax.Array):
        own_key, other_key = jax.random.split(key)
        own_action, memory, extras = agent.act(state.learner, memory, obs["own"], own_key)
        others_action = answer(respond, guest, state, obs, other_key)
        if others_action.ndim > own_action.ndim:  # of several opponents
            return jnp.concatenate([own_action[None], others_action]), memory, extras
        return jnp.stack([own_action, others_action]), memory, extras

    def explain(state: State, memory: Memory, obs: Observation) -> Metrics:
        return agent.explain(state.learner, memory, obs["own"])

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        learner, metrics = agent.update(state.learner, own_side(rollout), key)
        state = state._replace(learner=learner, updates=state.updates + 1)
        is_due = ~state.is_frozen & (state.updates % config.snapshot_updates == 0)
        state = jax.lax.cond(is_due, snapshot, lambda state: state, state)
        return state, metrics | {"snapshots": state.taken.astype(jnp.float32)}

    return Agent(init, agent.memory, act, update, explain, agent.blocks)


def answer(
    respond: Respond | None, guest: Guest | None, state: State, obs: Observation, key: jax.Array
) -> Action:
    """What the opponent does, a member of the pool or the guest. Consumes `key`."""
    if respond is None:
        assert guest is not None  # or it had been refused
        return guest(obs["other"], key)
    # The pool is shared by all environments, so this is one matrix product per member; indexing
    # the parameters of the one that plays would copy them for every environment.
    answers = jax.vmap(respond, in_axes=(0, None, None))(state.pool, obs["other"], key)
    rival_action = answers[member(state, obs["rival"])]
    if guest is None:
        return rival_action
    guest_action = guest(obs["other"], jax.random.clone(key))  # only one of both is played
    return jnp.where(obs["guest"], guest_action, rival_action)


def snapshot(state: State) -> State:
    """Adds the learner to the pool, if there is one; a full pool loses its oldest member."""
    if not jax.tree.leaves(state.pool):
        return state
    place = state.taken % pool_size(state)
    pool = jax.tree.map(
        lambda ring, x: jax.lax.dynamic_update_index_in_dim(ring, x, place, 0),
        state.pool,
        state.learner.params,
    )
    return state._replace(pool=pool, taken=state.taken + 1)


def member(state: State, number: jax.Array) -> jax.Array:
    """The member of the pool, int32, that an unsigned number selects, modulo the members so far.

    The same number may select another one once a snapshot has joined a pool that was not full.
    """
    filled = jnp.minimum(state.taken, pool_size(state))
    return (number % filled.astype(jnp.uint32)).astype(jnp.int32)


def pool_size(state: State) -> int:
    """P."""
    return jax.tree.leaves(state.pool)[0].shape[0]


def own_side(rollout: Transition) -> Transition:
    """The rollout as the learner saw it, with its own actions only."""
    return rollout._replace(
        obs=rollout.obs["own"],
        next_obs=rollout.next_obs["own"],
        action=rollout.action[..., LEARNER],
    )
