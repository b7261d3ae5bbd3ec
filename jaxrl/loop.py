"""Act, step, learn: one training update as a pure function. Knows no agent and no environment."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl.types import Agent, Environment, PyTree, Transition, fresh_memory, where_tree


@struct.dataclass
class Config:
    """How the experience of one update is gathered."""

    num_envs: int = struct.field(pytree_node=False, default=512)
    """Environments stepped side by side (N)."""
    num_steps: int = struct.field(pytree_node=False, default=64)
    """Steps of each environment between two updates (T)."""


class EpisodeTotals(NamedTuple):
    """Sums over the running episode of each environment."""

    reward: jax.Array  # [N] float32
    length: jax.Array  # [N] int32


class TrainState(NamedTuple):
    """Everything a run is. Saved and loaded, it goes on bit for bit."""

    agent: PyTree
    env: PyTree  # [N, ...]
    obs: PyTree  # [N, ...] what each environment shows now
    memory: PyTree  # [N, ...]
    episode: EpisodeTotals
    key: jax.Array
    updates: jax.Array  # int32; multiply on the host: steps overflow 32 bits, updates do not


class Metrics(NamedTuple):
    """What one update reports; a chunk stacks them along a first axis."""

    episodes: jax.Array  # episodes finished during the rollout
    finished: dict[str, jax.Array]  # sums over them: "return", "length" and the env's outcome
    agent: dict[str, jax.Array]  # what the agent measured while learning


class Loop(NamedTuple):
    """`init(key) -> TrainState` and `update(state) -> (TrainState, Metrics)`, both pure."""

    init: Callable[[jax.Array], TrainState]
    update: Callable[[TrainState], tuple[TrainState, Metrics]]


def make_loop(env: Environment, env_params: PyTree, agent: Agent, config: Config) -> Loop:
    """Joins an environment and an agent. Jit `update`, `vmap` both over keys for many seeds."""
    num_envs = config.num_envs

    def init(key: jax.Array) -> TrainState:
        env_key, agent_key, key = jax.random.split(key, 3)
        obs, env_state = jax.vmap(env.reset, in_axes=(0, None))(
            jax.random.split(env_key, num_envs), env_params
        )
        return TrainState(
            agent=agent.init(agent_key, jax.tree.map(lambda x: x[0], obs)),
            env=env_state,
            obs=obs,
            memory=fresh_memory(agent, num_envs),
            episode=EpisodeTotals(jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32)),
            key=key,
            updates=jnp.zeros((), jnp.int32),
        )

    def step(state: TrainState, _):
        return environment_step(env, env_params, agent, state)

    def update(state: TrainState) -> tuple[TrainState, Metrics]:
        state, (rollout, ended) = jax.lax.scan(step, state, length=config.num_steps)
        key, update_key = jax.random.split(state.key)
        agent_state, agent_metrics = agent.update(state.agent, rollout, update_key)
        done = rollout.terminated | rollout.truncated  # [T, N]
        metrics = Metrics(
            episodes=jnp.sum(done),
            finished=jax.tree.map(lambda x: jnp.sum(jnp.where(done, x, 0)), ended),
            agent=agent_metrics,
        )
        return state._replace(agent=agent_state, key=key, updates=state.updates + 1), metrics

    return Loop(init, update)


def environment_step(
    env: Environment, env_params: PyTree, agent: Agent, state: TrainState
) -> tuple[TrainState, tuple[Transition, dict[str, jax.Array]]]:
    """One step of all N environments, and what the episodes that end with it amount to."""
    num_envs = state.episode.length.shape[0]
    key, act_key, env_key = jax.random.split(state.key, 3)
    action, memory, extras = jax.vmap(agent.act, in_axes=(None, 0, 0, 0))(
        state.agent, state.memory, state.obs, jax.random.split(act_key, num_envs)
    )
    obs, env_state, reward, terminated, truncated, info = jax.vmap(
        env.step, in_axes=(0, 0, 0, None)
    )(jax.random.split(env_key, num_envs), state.env, action, env_params)
    reward = jnp.asarray(reward, jnp.float32)
    earned = info.get("components", reward)  # [N, K], or [N]
    transition = Transition(
        state.obs, action, earned, info["final_observation"], terminated, truncated, extras
    )
    done = terminated | truncated
    episode = EpisodeTotals(state.episode.reward + reward, state.episode.length + 1)
    ended: dict[str, Any] = {
        "return": episode.reward,
        "length": episode.length,
        **info.get("outcome", {}),
    }
    state = state._replace(
        env=env_state,
        obs=obs,
        memory=where_tree(done, fresh_memory(agent, num_envs), memory),
        episode=where_tree(done, jax.tree.map(jnp.zeros_like, episode), episode),
        key=key,
    )
    return state, (transition, ended)


def make_chunk(
    update: Callable[[TrainState], tuple[TrainState, Metrics]], num_updates: int
) -> Callable[[TrainState], tuple[TrainState, Metrics]]:
    """`num_updates` updates in one call; the metrics come stacked `[num_updates, ...]`."""

    def chunk(state: TrainState) -> tuple[TrainState, Metrics]:
        return jax.lax.scan(lambda state, _: update(state), state, length=num_updates)

    return chunk
