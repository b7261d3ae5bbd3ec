"""Acting: one step of N environments side by side, for training and for evaluation alike."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl import outcomes
from jaxrl.types import (
    Agent,
    Environment,
    PyTree,
    Transition,
    act_parts,
    fresh_memory,
    step_parts,
    where_tree,
)

RESTART = 2**31 - 1  # folded into a key for resets, so that other draws from it stay independent


class EpisodeSums(NamedTuple):
    """Sums over the running episode of each environment."""

    reward: jax.Array  # [N] float32
    length: jax.Array  # [N] int32
    outcome: dict[str, jax.Array]  # [N] float32 each, of the entries that add up


class World(NamedTuple):
    """N environments in the middle of their episodes, and the agent's memory for each."""

    obs: PyTree  # [N, ...] what each environment shows now
    env: PyTree  # [N, ...]
    memory: PyTree  # [N, ...]
    episode: EpisodeSums
    key: jax.Array


def reset(
    env: Environment, env_params: PyTree, agent: Agent, num_envs: int, key: jax.Array
) -> tuple[PyTree, PyTree, PyTree, EpisodeSums]:
    """`obs`, `env`, `memory` and `episode` of a `World` at the start. Consumes `key`."""
    obs, env_state = jax.vmap(env.reset, in_axes=(0, None))(
        jax.random.split(key, num_envs), env_params
    )
    sums = outcomes.begin(env, num_envs)
    episode = EpisodeSums(jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32), sums)
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
    step; there the world after it has fresh memory and sums of 0. Raises ValueError, when traced,
    for actions of another shape or kind than the environment takes, for another memory than `act`
    was given, for a step that breaks the contract of environments (`types.step_parts`), and for
    outcomes that cannot be reported (`outcomes.check`).
    """
    num_envs = world.episode.length.shape[0]
    key, act_key, env_key = jax.random.split(world.key, 3)
    # All agents act, then all environments step.
    act_output = jax.vmap(agent.act, in_axes=(None, 0, 0, 0))(
        agent_state, world.memory, world.obs, jax.random.split(act_key, num_envs)
    )
    action, memory, extras = act_parts(act_output, world.memory)
    check_action(env, env_params, jax.tree.map(lambda x: x[0], action))
    step_output = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
        jax.random.split(env_key, num_envs), world.env, action, env_params
    )
    obs, env_state, reward, terminated, truncated, info = step_parts(
        step_output, world.obs, world.env
    )
    reward = jnp.asarray(reward, jnp.float32)
    reward_parts = jnp.asarray(info.get("components", reward), jnp.float32)  # [N, K], or [N]
    transition = Transition(
        world.obs, action, reward_parts, info["final_observation"], terminated, truncated, extras
    )
    # The sums of each episode, and its totals where it ended with this step.
    done = terminated | truncated
    outcome = info.get("outcome", {})
    outcomes.check(env, outcome)
    episode = EpisodeSums(
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


def check_action(env: Environment, env_params: PyTree, action: PyTree) -> None:
    """Raises ValueError unless an action has the shape and kind of a Discrete or a Box."""
    space = action_space(env, env_params)
    if not (taken := description(space)):
        return
    leaves = jax.tree.leaves(action)
    fits = len(leaves) == 1 and jnp.shape(leaves[0]) == _shape(space)
    if fits and has_dtype(space):
        is_real = lambda x: jnp.issubdtype(x, jnp.inexact)
        fits = is_real(jnp.result_type(leaves[0])) == is_real(space.dtype)
    if not fits:
        names = ", ".join(f"{jnp.result_type(x)}{list(jnp.shape(x))}" for x in leaves)
        raise ValueError(f"act returns the action {names}, the environment takes {taken}")


def check_num_choices(
    env: Environment, env_params: PyTree, explain: Callable[[], dict[str, jax.Array]]
) -> None:
    """Raises ValueError for an agent that chooses among more or fewer actions than a Discrete has.

    How many it chooses among is the length of `q` or `probabilities` in `explain`, which is traced.
    Agents without these are not checked.
    """
    space = action_space(env, env_params)
    if not hasattr(space, "n"):
        return
    try:
        explained = jax.eval_shape(explain)
    except Exception:  # it is for people, and no training needs it
        return
    for name in explained.keys() & {"q", "probabilities"}:
        shape = explained[name].shape
        if len(shape) == 1 and shape[0] != space.n:
            raise ValueError(
                f"the agent chooses among {shape[0]} actions, the environment takes "
                f"{description(space)}: make the network with {space.n} actions"
            )


def action_space(env: Environment, env_params: PyTree) -> Any:
    """The space of actions, gymnax's and no part of our contract; None without one.

    gymnax's base class has the function, which an environment may leave as it is.
    """
    space_of = getattr(env, "action_space", None)
    try:
        return space_of(env_params) if callable(space_of) else None
    except NotImplementedError:
        return None


def description(space: Any) -> str:
    """The actions of a Discrete or a Box in words; empty for other spaces, and for none."""
    shape = list(_shape(space))
    if hasattr(space, "n"):
        return f"an integer from 0 to {space.n - 1}" + (f", {shape} of them" if shape else "")
    if not hasattr(space, "low"):
        return ""
    return f"an array {shape}" + (f" of {jnp.dtype(space.dtype)}" if has_dtype(space) else "")


def has_dtype(space: Any) -> bool:
    """Whether a space says of which dtype its numbers are."""
    return getattr(space, "dtype", None) is not None


def _shape(space: Any) -> tuple[int, ...]:
    return tuple(getattr(space, "shape", None) or ())
