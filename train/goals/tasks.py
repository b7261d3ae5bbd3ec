"""Tasks that test features: tabular learners that have to find goals in a maze.

Written for one learner of one goal; `vmap` makes many. Axes: C checkpoints, S states.
"""

import dataclasses
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs.grid.env import Params
from jaxrl import loop
from jaxrl.checks import Count, CountOrZero, Share
from jaxrl.evaluate import evaluate
from jaxrl.loop import Config as LoopConfig
from jaxrl.types import Agent, Environment, PyTree


@struct.dataclass
class Config:
    """Checkpoints, evaluation episodes and tasks."""

    evaluate_every: Count = struct.field(pytree_node=False, default=1_000)
    """Environment steps between two checkpoints."""
    games: Count = struct.field(pytree_node=False, default=16)
    """Greedy episodes played at each checkpoint."""
    max_steps: Count = 250
    """Steps after which an episode is truncated."""
    min_distance: CountOrZero = 8
    """Episodes start at least so many moves away from the goal."""
    level: Share = 0.9
    """Success rate whose first time is reported."""


class Learner(NamedTuple):
    """One learner in training."""

    train: loop.TrainState
    key: jax.Array  # for its evaluation episodes


class Progress(NamedTuple):
    """Results of learners, on the host."""

    steps: np.ndarray  # [C] int32, environment steps of training
    success: np.ndarray  # [..., C] share of greedy episodes that arrived
    length: np.ndarray  # [..., C] mean steps of an episode, `max_steps` for one that did not arrive
    area: np.ndarray  # [...] mean of `success` over the checkpoints
    first: np.ndarray  # [...] steps at the first checkpoint with `success >= level`, or infinite


def begin(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    greedy: Agent,
    key: jax.Array,
    config: Config,
) -> Learner:
    """A learner before its first step; has the signature of `checkpoint`. Consumes `key`."""
    del greedy, config
    init_key, key = jax.random.split(key)
    return Learner(_loop(env, env_params, agent).init(init_key), key)


def checkpoint(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    greedy: Agent,
    learner: Learner,
    config: Config,
) -> tuple[Learner, jax.Array, jax.Array]:
    """Makes `evaluate_every` steps with an update after each; returns success and mean length.

    `greedy` plays the evaluation episodes with the state of `agent`. An episode that terminates is
    a success; the length of one that does not is `max_steps`.
    """
    key, games_key = jax.random.split(learner.key)
    chunk = loop.make_chunk(_loop(env, env_params, agent).update, config.evaluate_every)
    state, _ = chunk(learner.train)
    games = evaluate(
        env, env_params, greedy, state.agent, games_key, config.games, 1, config.max_steps
    )
    length = jnp.where(games.terminated, games.length, config.max_steps)
    success = jnp.mean(games.terminated, dtype=float)
    return Learner(state, key), success, jnp.mean(length * 1.0)


def _loop(env: Environment, env_params: PyTree, agent: Agent) -> loop.Loop:
    return loop.make_loop(env, env_params, agent, LoopConfig(num_envs=1, num_steps=1))


def progress(success: np.ndarray, length: np.ndarray, config: Config) -> Progress:
    """The summary of success and length `[..., C]` at all checkpoints."""
    steps = config.evaluate_every * np.arange(1, success.shape[-1] + 1)
    first = np.min(np.where(success >= config.level, steps, np.inf), axis=-1)
    return Progress(steps, success, length, success.mean(axis=-1), first)


def task(env_params: Params, goal: jax.Array | int, config: Config) -> Params:
    """The same maze with one goal, and with starts at least `min_distance` moves away from it."""
    steps = steps_to(env_params, goal)
    is_start = (steps >= jnp.maximum(config.min_distance, 1)) & jnp.isfinite(steps)
    return dataclasses.replace(
        env_params,
        goal=jnp.arange(len(steps)) == goal,
        starts=jnp.argsort(~is_start, stable=True).astype(jnp.int32),
        num_starts=jnp.sum(is_start).astype(jnp.uint32),
        max_steps_in_episode=config.max_steps,
    )


def steps_to(env_params: Params, goal: jax.Array | int) -> jax.Array:
    """The least number of moves from each state to the goal, `[S]`; infinite if unreachable.

    Where wind or doors leave a move to chance, it is the number with the best luck.
    """
    states = len(env_params.successor)
    reached = env_params.probability > 0  # [S, A, K]

    def shorten(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        steps, _ = carry
        after = jnp.where(reached, steps[env_params.successor], jnp.inf)
        shorter = jnp.minimum(steps, 1 + jnp.min(after, axis=(1, 2)))
        return shorter, jnp.any(shorter < steps)

    start = jnp.where(jnp.arange(states) == goal, 0.0, jnp.inf)
    return jax.lax.while_loop(lambda carry: carry[1], shorten, (start, jnp.array(True)))[0]


def goal_distances(env_params: Params) -> np.ndarray:
    """`steps_to` every goal, `[S, S]`: goal, then state. Host code."""
    goals = jnp.arange(len(env_params.successor))
    one_by_one = jax.jit(lambda goals: jax.lax.map(partial(steps_to, env_params), goals))
    return np.asarray(one_by_one(goals))


def draw_goals(env_params: Params, count: int, seed: int, config: Config) -> np.ndarray:
    """Different random goals, int32 `[count]`, each with at least one start. Host code.

    Raises ValueError if the maze has fewer.
    """
    order = np.random.default_rng(seed).permutation(len(env_params.successor))
    starts = jax.jit(lambda goal: task(env_params, goal, config).num_starts)
    goals = list(islice((goal for goal in order if int(starts(goal)) > 0), count))
    if len(goals) < count:
        raise ValueError(
            f"{count} goals were asked for, but only {len(goals)} states have a start "
            f"{config.min_distance} moves away: ask for fewer, or for a smaller distance"
        )
    return np.array(goals, np.int32)
