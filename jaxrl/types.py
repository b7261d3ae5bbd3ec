"""The contracts: what an environment, a transition and an agent are. Imports nothing of ours.

Axis letters used everywhere: T time, N environments, B batch, L window, A actions, D features.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

PyTree = Any
Observation = PyTree
Action = PyTree
Memory = PyTree
AgentState = PyTree
Metrics = dict[str, jax.Array]


class Environment(Protocol):
    """An environment with the step signature of gymnax 1.0, for one instance; `vmap` makes many.

    `step` resets by itself: where `terminated | truncated`, the returned observation and state are
    the first ones of the next episode, and `info["final_observation"]` holds the observation that
    really followed. It holds that on every step, so that the structure of `info` never changes.
    `info["outcome"]`, where an environment has it, is a flat dict of scalars that describe the
    episode so far (a score, say); the loop averages them over finished episodes.
    `info["components"]`, where an environment has it, is the reward in K parts, `[K]`; their sum is
    the reward.
    """

    def reset(self, key: jax.Array, params: PyTree) -> tuple[Observation, PyTree]: ...

    def step(
        self, key: jax.Array, state: PyTree, action: Action, params: PyTree
    ) -> tuple[Observation, PyTree, jax.Array, jax.Array, jax.Array, dict[str, Any]]: ...


class Transition(NamedTuple):
    """One step of one environment; `[T, N]` from a rollout, `[L, B]` from replay."""

    obs: Observation
    action: Action
    reward: jax.Array  # float32; with a last axis K where the environment tells its components
    next_obs: Observation  # what really followed `action`, never the reset observation
    terminated: jax.Array  # bool; the episode ended for good: the future is worth nothing
    truncated: jax.Array  # bool; the clock ended it: the future is worth V(next_obs)
    extras: Any  # what `Agent.act` wants `Agent.update` to see: log-probabilities, values


class Agent(NamedTuple):
    """An algorithm: four pure functions, the first three for one environment.

    Off-policy agents keep replay inside their state, so one loop serves them all.
    """

    init: Callable[[jax.Array, Observation], AgentState]
    """`(key, obs) -> state`: parameters, optimiser, replay; `obs` is one observation."""
    memory: Callable[[], Memory]
    """`() -> memory`: what an acting agent remembers within one episode, at its start."""
    act: Callable[[AgentState, Memory, Observation, jax.Array], tuple[Action, Memory, Any]]
    """`(state, memory, obs, key) -> (action, memory, extras)`."""
    update: Callable[[AgentState, Transition, jax.Array], tuple[AgentState, Metrics]]
    """`(state, rollout [T, N], key) -> (state, metrics)`: learn from the newest rollout."""


def where_tree(condition: jax.Array, on_true: PyTree, on_false: PyTree) -> PyTree:
    """`jnp.where` leaf by leaf, `condition [N]` broadcast over each leaf's trailing axes."""

    def choose(a, b):
        shape = condition.shape + (1,) * (max(a.ndim, b.ndim) - condition.ndim)
        return jax.numpy.where(condition.reshape(shape), a, b)

    return jax.tree.map(choose, on_true, on_false)


def fresh_memory(agent: Agent, num_envs: int) -> PyTree:
    """The memory of `num_envs` episodes that have not begun: `[N, ...]`."""
    return jax.tree.map(
        lambda x: jax.numpy.broadcast_to(x, (num_envs, *jax.numpy.shape(x))), agent.memory()
    )
