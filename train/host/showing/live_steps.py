"""The steps of a game that somebody looks at: what the agent thinks, what comes of an action."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.types import Agent, AgentState, PyTree, Transition
from train.host.showing.live import Live


class GameState(NamedTuple):
    """A game between two steps."""

    state: PyTree
    obs: PyTree
    memory: PyTree
    agent_state: AgentState
    action: PyTree  # that the agent takes next
    explained: dict[str, jax.Array]
    thought: tuple[PyTree, PyTree]  # the agent's memory and extras after that action
    key: jax.Array


def begin(live: Live, agent_state: AgentState, key: jax.Array) -> GameState:
    """The start of a new game."""
    start_key, key = jax.random.split(key)
    obs, state = live.env.reset(start_key, live.params)
    return _think(live.agent, agent_state, live.agent.memory(), state, obs, key)


@partial(jax.jit, static_argnums=0)
def _think(
    agent: Agent, agent_state: AgentState, memory: PyTree, state: PyTree, obs: PyTree, key: Any
) -> GameState:
    """What the agent makes of an observation."""
    act_key, key = jax.random.split(key)
    explained = agent.explain(agent_state, memory, obs)
    action, after, extras = agent.act(agent_state, memory, obs, act_key)
    return GameState(state, obs, memory, agent_state, action, explained, (after, extras), key)


@partial(jax.jit, static_argnums=0)
def _move(env: Any, params: PyTree, state: PyTree, action: PyTree, key: jax.Array) -> tuple:
    """One transition, with the time limit and without a reset."""
    obs, state, reward, terminated, info = env.step_env(key, state, action, params)
    truncated = env.is_truncated(state, params)
    return obs, state, jnp.asarray(reward, jnp.float32), terminated, truncated, info


@partial(jax.jit, static_argnums=0)
def _observe(env: Any, params: PyTree, state: PyTree) -> PyTree:
    return env.get_obs(state, params)


@partial(jax.jit, static_argnums=0)
def _update(agent: Agent, agent_state: AgentState, transition: Transition, key: Any) -> AgentState:
    rollout = jax.tree.map(lambda x: jnp.asarray(x)[None, None], transition)
    return agent.update(agent_state, rollout, key)[0]


def step(live: Live, game_state: GameState, action: PyTree) -> tuple:
    """`(game_state, reward, terminated, truncated, outcome)` after an action."""
    step_key, learn_key, key = jax.random.split(game_state.key, 3)
    results = _move(live.env, live.params, game_state.state, action, step_key)
    obs, state, reward, terminated, truncated, info = results
    memory, extras = game_state.thought
    agent_state = game_state.agent_state
    if live.learns:
        transition = Transition(game_state.obs, action, reward, obs, terminated, truncated, extras)
        agent_state = _update(live.agent, agent_state, transition, learn_key)
    after = _think(live.agent, agent_state, memory, state, obs, key)
    return after, reward, bool(terminated), bool(truncated), info.get("outcome", {})


def replace_state(live: Live, game_state: GameState, state: PyTree) -> GameState:
    """The game in another state, which the agent now sees."""
    obs = _observe(live.env, live.params, state)
    return _think(live.agent, game_state.agent_state, game_state.memory, state, obs, game_state.key)
