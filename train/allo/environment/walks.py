"""Walks in an environment on gymnax's interface, by a random policy or one that was trained.

Axes: T steps, N environments.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces

from jaxrl import acting
from jaxrl.loop import Config as LoopConfig
from jaxrl.loop import make_loop, world_of
from jaxrl.replay.uniform import Replay
from jaxrl.spectral.learning import pair_replay
from jaxrl.types import Agent, Transition
from train.allo.maze import Maze
from train.host import abilities
from train.host.environments import environments
from train.host.environments.environments import Game, Task
from train.host.errors import UsageError
from train.host.running import saved_policies


class Walks(NamedTuple):
    """An environment, and who walks in it."""

    task: Task
    walker: Agent  # which only acts; its state is ()
    num_steps: int

    @property
    def observation(self) -> Any:
        """The shape and dtype of an observation."""
        return jax.eval_shape(self.task.env.reset, jax.random.key(0), self.task.params)[0]


def make_walks(maze: Maze) -> Walks:
    """The walks of a configuration. Raises ValueError, in one line, for what cannot walk."""
    task = environments.make(game_of(maze), learns_of_rewards=False)
    if maze.policy == "uniform" or maze.epsilon:
        check_bounds(maze, task.action)
    if maze.policy == "uniform":
        draw = uniform_actions(task)
        walker = Agent(
            lambda key, obs: (),
            lambda: (),
            lambda state, memory, obs, key: (draw(key), memory, ()),
            lambda state, rollout, key: (state, {}),
        )
    else:
        walker = trained_walker(task, maze.policy, maze.epsilon)
    return Walks(task, walker, maze.walk_steps)


def game_of(maze: Maze) -> Game:
    """The environment that a configuration names."""
    return Game(maze.id, maze.options, maze.numbers)


def uniform_actions(task: Task) -> Callable[[jax.Array], Any]:
    """`key -> action`, drawn uniformly from the space of actions."""
    return task.action.sample


def check_bounds(maze: Maze, action: Any) -> None:
    """Raises ValueError for a space that has no uniform distribution."""
    has_policy = maze.policy != "uniform"
    advice = "env.epsilon 0" if has_policy else "env.policy, a trained policy,"
    if isinstance(action, spaces.Box) and not all(
        np.isfinite(x).all() for x in (action.low, action.high)
    ):
        raise ValueError(
            f"actions of env.id {maze.id} have no bounds, so that none is drawn uniformly: give "
            f"{advice} or bounds to its action_space"
        )


def trained_walker(task: Task, source: str, epsilon: float) -> Agent:
    """A trained policy, in the share `epsilon` of its steps a uniform action instead.

    Raises ValueError for one that was not trained in this environment.
    """
    try:
        run = saved_policies.load_source(source)
        player = abilities.player_of(run)
    except UsageError as error:
        raise ValueError(f"env.policy: {error}") from error
    shows = jax.eval_shape(task.env.reset, jax.random.key(0), task.params)[0]
    sees = player.observation()
    shape = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
    if shape(shows) != shape(sees):
        raise ValueError(
            f"env.policy {source} observes {shape(sees)}, but the environment shows "
            f"{shape(shows)}: give a policy that was trained in it"
        )
    player_env: Any = player.env
    theirs = describe(player_env.action_space(player.env_params))
    ours = describe(task.action)
    if theirs != ours:
        raise ValueError(
            f"env.policy {source} takes actions of {theirs}, but the environment takes {ours}: "
            "give a policy that was trained in it"
        )
    agent, state = player.agent, player.acting_state(run.agents[0])
    draw = uniform_actions(task)

    def act(nothing: tuple, memory: Any, obs: Any, key: jax.Array):
        chance_key, act_key, draw_key = jax.random.split(key, 3)
        action, memory, _ = agent.act(state, memory, obs, act_key)
        if not epsilon:
            return action, memory, ()
        explores = jax.random.uniform(chance_key) < epsilon
        pick = lambda drawn, own: jnp.where(explores, drawn, own).astype(own.dtype)
        return jax.tree.map(pick, draw(draw_key), action), memory, ()

    return Agent(lambda key, obs: (), agent.memory, act, lambda state, rollout, key: (state, {}))


def describe(action: Any) -> str:
    """A space of actions in words, without its bounds."""
    size = getattr(action, "n", None) or getattr(action, "shape", "")
    return f"{type(action).__name__} {size}".strip()


def record(walks: Walks, num_envs: int, key: jax.Array) -> Transition:
    """A rollout `[T, N]` of walks that begin with episodes; those that end begin anew."""
    task = walks.task
    size = LoopConfig(num_envs, walks.num_steps)
    start = make_loop(task.env, task.params, walks.walker, size).init(key)

    def walk(world: acting.World, _):
        return acting.step(task.env, task.params, walks.walker, (), world)

    _, (rollout, _) = jax.lax.scan(walk, world_of(start), length=walks.num_steps)
    return rollout


def replay_of(rollout: Transition, blocks: int = 1) -> Replay:
    """The rollout as a replay that pairs are sampled from; none crosses the end of an episode."""
    steps, num_envs = rollout.terminated.shape
    example = jax.tree.map(lambda x: x[0, 0], rollout.obs)
    ring = pair_replay.init(example, steps * num_envs, num_envs, steps, blocks=blocks)
    done = rollout.terminated | rollout.truncated
    return pair_replay.add(ring, rollout.obs, rollout.next_obs, done)


def range_of(obs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`(middle, scale)` of observations `[T, N, ...]`, for `encoder.Standardise`.

    Each number of a vector then goes from -1 to 1. Of an image the mean image is subtracted, and
    one scale is that of all pixels. What never changes becomes 0.
    """
    x = obs.astype(jnp.float32).reshape(-1, *obs.shape[2:])
    if x.ndim == 2:
        low, high = x.min(axis=0), x.max(axis=0)
        middle, scale = (low + high) / 2, (high - low) / 2
    else:
        middle = x.mean(axis=0)
        scale = jnp.full(middle.shape, jnp.abs(x - middle[None]).max())
    return middle, jnp.where(scale > 0, scale, 1.0)
