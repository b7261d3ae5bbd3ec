"""What features are good for: tabular learners that have to find goals in a maze.

Many learners of many goals learn at once, inside one `jit`. Axes: G goals, R learners of each, C
checkpoints, S states, O options.
"""

import dataclasses
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs.grid.env import Grid, Params
from jaxrl import loop
from jaxrl.agents import q_learning
from jaxrl.evaluate import evaluate
from jaxrl.loop import Config as LoopConfig
from jaxrl.options import Options
from jaxrl.types import Agent, Environment, PyTree


@struct.dataclass
class Config:
    """How long to learn, and when to look."""

    num_steps: int = struct.field(pytree_node=False, default=20_000)
    """Environment steps of one learner."""
    evaluate_every: int = struct.field(pytree_node=False, default=1_000)
    """Environment steps between two checkpoints; divides `num_steps`."""
    games: int = struct.field(pytree_node=False, default=16)
    """Greedy episodes played at each checkpoint."""
    max_steps: int = 250
    """Steps after which an episode is given up."""
    min_distance: int = 8
    """Episodes start at least so many moves away from the goal."""
    level: float = 0.9
    """The share of successes whose first time is reported."""


class Progress(NamedTuple):
    """How one learner did; `learn_goals` puts the axes `[G, R]` in front."""

    steps: jax.Array  # [C] int32, environment steps learned from
    success: jax.Array  # [C] share of greedy episodes that arrived
    length: jax.Array  # [C] their mean steps, `max_steps` for those that did not
    area: jax.Array  # [] mean of `success` over the checkpoints
    first: jax.Array  # [] steps at the first checkpoint with `success >= level`, infinite if none


@partial(jax.jit, static_argnames="env")
def learn_goals(
    env: Grid,
    env_params: Params,
    goals: jax.Array,
    keys: jax.Array,
    config: Config,
    agent_config: q_learning.Config,
    potential: jax.Array | None = None,
    options: Options | None = None,
) -> Progress:
    """Every goal learned from nothing with every seed, `[G, R]` of them.

    Arms of an experiment that differ in numbers alone share one compilation, and with the same
    keys also the luck.

    Args:
      env: shows the index of its state.
      env_params: its numbers; goals, starts and time limit are replaced by those of `task`.
      goals: int32 `[G]`, states, each with a start, unchecked; `draw_goals` finds some.
      keys: `[R]`, one per learner; the same for every goal.
      config: numbers and sizes of the experiment.
      agent_config: of the learners.
      potential: `[G, R, S]`, a table for each goal and learner.
      options: `[R, O, S]`, the same ones for all goals.

    Raises:
      ValueError: `evaluate_every` does not divide `num_steps`, or a shape is wrong.
    """
    if goals.ndim != 1 or keys.ndim != 1:
        raise ValueError(
            f"goals and keys have shapes {goals.shape} and {keys.shape}, expected [G] and [R]"
        )
    expected = (*goals.shape, *keys.shape, env.num_states)
    table = jnp.zeros(expected) if potential is None else potential
    if table.shape != expected:
        raise ValueError(
            f"potential has shape {table.shape}, expected [G, R, S] = {expected}: a table for each "
            "goal and learner"
        )

    def one(goal: jax.Array, potential: jax.Array, options: Options | None, key: jax.Array):
        make = partial(q_learning.make, agent_config, env.num_states, env.num_actions)
        learner, player = (make(potential, options, greedy=greedy) for greedy in (False, True))
        return learn(env, task(env_params, goal, config), learner, player, key, config)

    learners = jax.vmap(one, in_axes=(None, 0, 0, 0))
    return jax.vmap(learners, in_axes=(0, 0, None, None))(goals, table, options, keys)


def learn(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    greedy: Agent,
    key: jax.Array,
    config: Config,
) -> Progress:
    """One learner, which updates after every step; an episode that terminates is a success.

    `greedy` plays with the state of `agent`. Consumes `key`. Raises ValueError if
    `evaluate_every` does not divide `num_steps`.
    """
    checkpoints, rest = divmod(config.num_steps, config.evaluate_every)
    if rest or checkpoints < 1 or config.games < 1:
        raise ValueError(
            f"num_steps {config.num_steps}, evaluate_every {config.evaluate_every} and games "
            f"{config.games} do not fit: num_steps must be a multiple of evaluate_every, games at "
            "least 1"
        )
    learner = loop.make_loop(env, env_params, agent, LoopConfig(num_envs=1, num_steps=1))
    chunk = loop.make_chunk(learner.update, config.evaluate_every)

    def checkpoint(carry: tuple[loop.TrainState, jax.Array], _):
        state, key = carry
        key, games_key = jax.random.split(key)
        state, _ = chunk(state)
        games = evaluate(
            env, env_params, greedy, state.agent, games_key, config.games, 1, config.max_steps
        )
        length = jnp.where(games.terminated, games.length, config.max_steps)
        return (state, key), (jnp.mean(games.terminated, dtype=float), jnp.mean(length * 1.0))

    init_key, key = jax.random.split(key)
    start = (learner.init(init_key), key)
    _, (success, length) = jax.lax.scan(checkpoint, start, length=checkpoints)
    steps = config.evaluate_every * jnp.arange(1, checkpoints + 1)
    first = jnp.min(jnp.where(success >= config.level, steps, jnp.inf))
    return Progress(steps, success, length, jnp.mean(success), first)


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
    """The fewest moves that can lead from each state to the goal, `[S]`; infinite if none do."""
    states = len(env_params.successor)
    reached = env_params.probability > 0  # [S, A, K]

    def shorten(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        steps, _ = carry
        after = jnp.where(reached, steps[env_params.successor], jnp.inf)
        shorter = jnp.minimum(steps, 1 + jnp.min(after, axis=(1, 2)))
        return shorter, jnp.any(shorter < steps)

    start = jnp.where(jnp.arange(states) == goal, 0.0, jnp.inf)
    return jax.lax.while_loop(lambda carry: carry[1], shorten, (start, jnp.array(True)))[0]


def ways(env_params: Params) -> np.ndarray:
    """`steps_to` every goal, `[S, S]`: goal, then state. Host code."""
    goals = jnp.arange(len(env_params.successor))
    one_by_one = jax.jit(lambda goals: jax.lax.map(partial(steps_to, env_params), goals))
    return np.asarray(one_by_one(goals))


def draw_goals(env_params: Params, count: int, seed: int, config: Config) -> np.ndarray:
    """Different random goals, int32 `[count]`, each with at least one start. Host code.

    Raises ValueError if the maze has fewer of them.
    """
    order = np.random.default_rng(seed).permutation(len(env_params.successor))
    starts = jax.jit(lambda goal: task(env_params, goal, config).num_starts)
    found = list(islice((goal for goal in order if int(starts(goal)) > 0), count))
    if len(found) < count:
        raise ValueError(
            f"{count} goals were asked for, but only {len(found)} states have a start "
            f"{config.min_distance} moves away: ask for fewer, or for a smaller distance"
        )
    return np.array(found, np.int32)
