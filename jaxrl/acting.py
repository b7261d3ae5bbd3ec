"""Acting: one step of N environments side by side, for training and for evaluation alike."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl import outcomes
from jaxrl.types import Agent, Environment, PyTree, Transition, fresh_memory, where_tree

RESTART = 2**31 - 1  # folded into a key for resets, so that other draws from it stay independent


class EpisodeTotals(NamedTuple):
    """Sums over the running episode of each environment."""

    reward: jax.Array  # [N] float32
    length: jax.Array  # [N] int32
    outcome: dict[str, jax.Array]  # [N] float32 each, of the entries that add up


class World(NamedTuple):
    """N environments in the middle of their episodes, and the agent's memory for each."""

    obs: PyTree  # [N, ...] what each environment shows now
    env: PyTree  # [N, ...]
    memory: PyTree  # [N, ...]
    episode: EpisodeTotals
    key: jax.Array


def reset(
    env: Environment, env_params: PyTree, agent: Agent, num_envs: int, key: jax.Array
) -> tuple[PyTree, PyTree, PyTree, EpisodeTotals]:
    """`obs`, `env`, `memory` and `episode` of a `World` at the start. Consumes `key`."""
    obs, env_state = jax.vmap(env.reset, in_axes=(0, None))(
        jax.random.split(key, num_envs), env_params
    )
    sums = outcomes.begin(env, num_envs)
    episode = EpisodeTotals(jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32), sums)
    return obs, env_state, fresh_memory(agent, num_envs), episode


def restart(
    env: Environment, env_params: PyTree, agent: Agent, world: World, chosen: jax.Array
) -> World:
    """The world with new episodes in those of N environments that are `chosen`, bool `[N]`.

    Its key goes on as without.
    """

    def restart_chosen() -> World:
        key = jax.random.fold_in(world.key, RESTART)
        fresh_parts = reset(env, env_params, agent, len(chosen), key)
        old = (world.obs, world.env, world.memory, world.episode)
        obs, env_state, memory, episode = where_tree(chosen, fresh_parts, old)
        return World(obs, env_state, memory, episode, world.key)

    return jax.lax.cond(jnp.any(chosen), restart_chosen, lambda: world)


def step(
    env: Environment, env_params: PyTree, agent: Agent, agent_state: PyTree, world: World
) -> tuple[World, tuple[Transition, dict[str, jax.Array]]]:
    """One step of all N environments: the world after it, the transitions and episode totals.

    The totals (return, length, outcome) are those of a whole episode where one ended with this
    step; there the world after it has fresh memory and sums of 0.
    """
    num_envs = world.episode.length.shape[0]
    key, act_key, env_key = jax.random.split(world.key, 3)
    # All agents act, then all environments step.
    action, memory, extras = jax.vmap(agent.act, in_axes=(None, 0, 0, 0))(
        agent_state, world.memory, world.obs, jax.random.split(act_key, num_envs)
    )
    obs, env_state, reward, terminated, truncated, info = jax.vmap(
        env.step, in_axes=(0, 0, 0, None)
    )(jax.random.split(env_key, num_envs), world.env, action, env_params)
    reward = jnp.asarray(reward, jnp.float32)
    reward_parts = info.get("components", reward)  # [N, K], or [N]
    transition = Transition(
        world.obs, action, reward_parts, info["final_observation"], terminated, truncated, extras
    )
    # The sums of each episode, and its totals where it ended with this step.
    done = terminated | truncated
    outcome = info.get("outcome", {})
    outcomes.check(env, outcome)
    episode = EpisodeTotals(
        reward=world.episode.reward + reward,
        length=world.episode.length + 1,
        outcome=outcomes.add(world.episode.outcome, outcome),
    )
    episode_totals: dict[str, Any] = {
        "return": episode.reward,
        "length": episode.length,
        **outcomes.totals(env, episode.outcome, episode.length, outcome),
    }
    next_world = World(
        obs=obs,
        env=env_state,
        memory=where_tree(done, fresh_memory(agent, num_envs), memory),
        episode=where_tree(done, jax.tree.map(jnp.zeros_like, episode), episode),
        key=key,
    )
    return next_world, (transition, episode_totals)
