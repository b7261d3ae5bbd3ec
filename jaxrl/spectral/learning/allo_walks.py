"""The recorded walks of the agent `allo`, and the expectations over their pairs of states.

An exact expectation needs counts alone, from which the law of all pairs follows. A sampled one
draws pairs and states from a replay of whole rollouts. S numbered states, T steps of a rollout.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.spectral import directed, exploration, pairs, reweighted
from jaxrl.spectral.learning import objectives, pair_replay
from jaxrl.spectral.learning.allo_config import Config
from jaxrl.spectral.learning.allo_state import State
from jaxrl.types import PyTree, Transition


class Law(NamedTuple):
    """The distribution of pairs, as the loss needs it."""

    graph: jax.Array  # [S, S], from objectives.graph_of
    weight: jax.Array  # [S] ρ


def first_walk(
    config: Config, obs: PyTree, num_states: int, num_actions: int, num_envs: int, num_steps: int
) -> tuple[Any, Any]:
    """`(walk, law)` of a `State` before anything was recorded; `obs` is of one environment."""
    if config.expectation == "exact":
        zeros = jnp.zeros((num_states, num_states))
        return _empty_counts(config, num_states, num_actions, num_steps), law_of(config, zeros)
    sizes = (config.capacity, num_envs, num_steps)
    ring = pair_replay.init(obs, *sizes, config.importance, config.blocks)
    return ring, jnp.zeros((num_states, num_steps)) if config.importance else ()


def record_rollout(config: Config, state: State, rollout: Transition) -> State:
    """`state` after remembering a rollout `[T, N]`; nothing is learned yet."""
    if config.expectation == "exact":
        return with_counts(config, state, _record(config, state.walk, rollout))
    transitions = _transitions(config, rollout)
    walk = pair_replay.add(state.walk, *transitions)
    if config.importance:
        return state._replace(walk=walk, law=pair_replay.visit_ratio(walk, *state.law.shape))
    return state._replace(walk=walk)


def with_counts(config: Config, state: State, walk: Any) -> State:
    """`state` with the counts of these walks, for an exact expectation, and the law of pairs."""
    return state._replace(walk=walk, law=law_of(config, _pair_distribution(config, walk)))


def law_of(config: Config, law: jax.Array) -> Law:
    """The `Law` that follows from the distribution of pairs of states `[S, S]`."""
    return Law(*objectives.graph_of(directed.bipartite_law(law) if config.directed else law))


def pair_law(config: Config, state: State) -> jax.Array:
    """The distribution of pairs `[S, S]` that the agent learns from, on S numbered states."""
    if config.expectation == "exact":
        return _pair_distribution(config, state.walk)
    return pair_replay.law(state.walk, config.discount, len(state.inputs))


def visits(config: Config, state: State) -> jax.Array:
    """How many recorded transitions start in each of S numbered states, int32 `[S]`."""
    if config.expectation == "exact":
        if config.estimate != "chain" or config.importance:
            return state.walk.visits.reshape(len(state.inputs), -1).sum(axis=1)
        return state.walk.steps.sum(axis=1)
    return pair_replay.visits(state.walk, len(state.inputs))


def sampled_pairs(
    config: Config, state: State, key: jax.Array, size: int
) -> tuple[PyTree, PyTree, Any]:
    """`(s, s', weight)` of recorded pairs, each `[size, ...]`; () where all weigh the same."""
    sample = (state.walk, key, size, config.discount)
    if config.importance:
        return pair_replay.weighted_pairs(*sample, state.law)
    return (*pair_replay.sample_pairs(*sample), ())


def sampled_states(config: Config, state: State, key: jax.Array, size: int) -> tuple[PyTree, Any]:
    """`(s, weight)` of recorded states, `[size, ...]`; () where all weigh the same."""
    sample = (state.walk, key, size)
    if config.importance:
        return pair_replay.weighted_states(*sample, state.law)
    return pair_replay.sample_states(*sample), ()


def _empty_counts(config: Config, num_states: int, num_actions: int, num_steps: int) -> Any:
    """Counts of nothing, for an exact expectation."""
    if config.estimate == "pairs":
        return pairs.empty_counts(num_states)
    if config.estimate == "actions":
        return exploration.empty_walk(num_states, num_actions, num_steps)
    module = reweighted if config.importance else pairs
    return module.empty_walk(num_states, num_steps)


def _transitions(config: Config, rollout: Transition) -> tuple[PyTree, ...]:
    """States, successors and endings of a rollout, and ratios of weighted walks."""
    done = rollout.terminated | rollout.truncated
    ratios = (rollout.extras,) if config.importance else ()
    return (rollout.obs, rollout.next_obs, done, *ratios)


def _record(config: Config, walk: Any, rollout: Transition) -> Any:
    """`walk`, the counts of an exact expectation, with a rollout."""
    transitions = _transitions(config, rollout)
    if config.importance:
        return reweighted.record(walk, *transitions)
    if config.estimate == "actions":
        state, next_state, done = transitions
        left = pairs.transitions_left(done)
        return exploration.record(walk, state, rollout.action, next_state, left)
    if config.estimate == "pairs":
        return pairs.add_counts(walk, *transitions, discount=config.discount)
    return pairs.record(walk, *transitions)


def _pair_distribution(config: Config, walk: Any) -> jax.Array:
    """The distribution of pairs `[S, S]` of a recorded walk."""
    if config.estimate == "pairs":
        return walk.table / walk.table.sum()
    if config.estimate == "actions":
        return exploration.pair_distribution(walk, config.discount)
    return (reweighted if config.importance else pairs).pair_distribution(walk, config.discount)
