"""Resets and steps of one environment and of N, compiled; none of these steps resets by itself.

Each environment has a key of its own. Every call splits it in three, for what follows, for a step
and for a reset, so that resetting all N and choosing gives the same as resetting one.
"""

import os
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnax.environments.environment import Environment

WORDS = 2**32
PROCESS = os.getpid()  # gymnax computes when it is imported


class Episode(NamedTuple):
    """An environment in the middle of an episode; with a first axis N if there are N."""

    key: jax.Array  # uint32, the data of a key, so that those of some of N may be replaced
    obs: Any  # what it shows now
    state: Any
    ended: jax.Array  # bool


class StepOutput(NamedTuple):
    """What a step shows."""

    obs: Any
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    info: dict[str, Any]


def check_process() -> None:
    """Raises RuntimeError in a process that was forked from the one that began to compute.

    JAX's threads are not there, so most of what it is asked for would never end.
    """
    if os.getpid() != PROCESS:
        raise RuntimeError(
            "this process was forked after JAX had started, and would hang: start it by spawn, as "
            "with context='spawn' of AsyncVectorEnv"
        )


def check_env(env: Any) -> None:
    """Raises ValueError for what has no `step_env`, such as gymnax's wrappers."""
    if not isinstance(env, Environment):
        raise ValueError(
            f"env is a {type(env).__name__}; expected an environment, as envs.make(id)[0]"
        )


def word_of(seed: Any) -> np.uint32:
    """The seed of a key. Raises ValueError for anything but an integer of at least 0."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed is {seed!r}; expected an integer of at least 0")
    return np.uint32(int(seed) % WORDS)


@jax.jit
def key_of(word: Any) -> jax.Array:
    """The data of the key of a seed."""
    return jax.random.key_data(jax.random.key(word))


@partial(jax.jit, static_argnames="env")
def start(env: Environment, params: Any, key: jax.Array) -> Episode:
    """The beginning of an episode."""
    key, _, reset_key = _split(key)
    obs, state = _strengthen_types(env.reset(reset_key, params))
    return Episode(key, obs, state, jnp.bool_(False))


@partial(jax.jit, static_argnames="env")
def step(
    env: Environment, params: Any, episode: Episode, action: Any
) -> tuple[Episode, StepOutput]:
    """One step of one environment."""
    key, step_key, _ = _split(episode.key)
    return _step_env(env, params, episode._replace(key=key), step_key, action)


@partial(jax.jit, static_argnames="env")
def start_all(env: Environment, params: Any, key: jax.Array) -> Episode:
    """`start` for the data of N keys."""
    return jax.vmap(partial(start, env, params))(key)


@partial(jax.jit, static_argnames="env")
def restart(env: Environment, params: Any, episode: Episode, chosen: jax.Array) -> Episode:
    """Begins new episodes in those of N environments that are `chosen`, bool `[N]`."""
    key, _, reset_key = jax.vmap(_split)(episode.key)
    next_episode = episode._replace(key=jnp.where(chosen[:, None], key, episode.key))
    return _reset_chosen(env, params, next_episode, reset_key, chosen)


@partial(jax.jit, static_argnames=("env", "mode"))
def step_all(
    env: Environment, mode: AutoresetMode, params: Any, episode: Episode, action: Any
) -> tuple[Episode, StepOutput]:
    """One step of N environments, except where `NEXT_STEP` starts an episode instead."""
    key, step_key, reset_key = jax.vmap(_split)(episode.key)
    step_envs = jax.vmap(partial(_step_env, env, params))
    next_episode, output = step_envs(episode._replace(key=key), step_key, action)
    if mode is AutoresetMode.SAME_STEP:
        next_episode = restart(env, params, next_episode, next_episode.ended)
    if mode is AutoresetMode.NEXT_STEP:
        is_new = episode.ended
        next_episode = _reset_chosen(env, params, next_episode, reset_key, is_new)
        output = output._replace(
            obs=next_episode.obs,
            reward=jnp.where(is_new, 0, output.reward),
            terminated=output.terminated & ~is_new,
            truncated=output.truncated & ~is_new,
        )
    return next_episode, output


def _step_env(
    env: Environment, params: Any, episode: Episode, step_key: jax.Array, action: Any
) -> tuple[Episode, StepOutput]:
    obs, state, reward, terminated, info = env.step_env(step_key, episode.state, action, params)
    obs, state = _strengthen_types((obs, state))
    truncated = jnp.asarray(env.is_truncated(state, params))
    next_episode = Episode(episode.key, obs, state, terminated | truncated)
    return next_episode, StepOutput(obs, reward, terminated, truncated, info)


def _reset_chosen(
    env: Environment, params: Any, episode: Episode, reset_key: jax.Array, chosen: jax.Array
) -> Episode:
    """Resets nothing, rather than all and choosing, where none is chosen."""

    def reset_and_choose() -> Episode:
        obs, state = _strengthen_types(jax.vmap(env.reset, in_axes=(0, None))(reset_key, params))
        expand = lambda x: chosen.reshape(-1, *[1] * (x.ndim - 1))
        choose = lambda new, old: jnp.where(expand(new), new, old)
        obs, state = jax.tree.map(choose, (obs, state), (episode.obs, episode.state))
        return Episode(episode.key, obs, state, episode.ended & ~chosen)

    return jax.lax.cond(jnp.any(chosen), reset_and_choose, lambda: episode)


def _split(key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The data of the next key, and the keys of a step and of a reset."""
    key, step_key, reset_key = jax.random.split(jax.random.wrap_key_data(key), 3)
    return jax.random.key_data(key), step_key, reset_key


def _strengthen_types(tree: Any) -> Any:
    """Removes weak types: a first state of gymnax has some, and would compile the step again."""
    is_weak = lambda x: getattr(jax.typeof(x), "weak_type", False)
    return jax.tree.map(lambda x: x.astype(x.dtype) if is_weak(x) else x, tree)
