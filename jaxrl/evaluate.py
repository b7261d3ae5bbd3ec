"""Evaluation on complete episodes, a fixed number per environment.

Of episodes played side by side the short ones finish first, so counting the first that finish would
be biased towards them. Every environment therefore plays the same number of episodes to the end.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import acting, checks, cycle_skipping
from jaxrl.acting import World
from jaxrl.checks import Count, CountOrZero, Range
from jaxrl.cycle_skipping import Anchor, make_anchor
from jaxrl.numerics.precision import in_float32, narrow
from jaxrl.types import Agent, Environment, PyTree, check_parts


class Episodes(NamedTuple):
    """G complete episodes of each of N environments."""

    return_: jax.Array  # [N, G] float32, undiscounted
    length: jax.Array  # [N, G] int32, steps
    terminated: jax.Array  # [N, G] bool
    truncated: jax.Array  # [N, G] bool
    outcome: dict[str, jax.Array]  # each [N, G]; `info["outcome"]` as `jaxrl.outcomes` reports it
    complete: jax.Array  # [N, G] bool; False where `max_steps` came first, the rest then being 0


class Sizes(NamedTuple):
    """How much is played side by side, and how much of it is watched."""

    num_envs: Count
    games_per_env: Count
    num_steps: CountOrZero = 0  # rows of the trajectory


class PlayState(NamedTuple):
    """N environments while they are evaluated."""

    world: World  # [N, ...]
    played: jax.Array  # [N] int32, episodes finished
    step: jax.Array  # int32
    anchor: Anchor | None = None  # positions that may come back


class Trajectory(NamedTuple):
    """States and actions of one environment, S steps side by side with the other environments."""

    state: PyTree  # [S, ...] before each action
    action: PyTree  # [S, ...]


class EvaluationState(NamedTuple):
    """An evaluation so far; `advance` goes on with it."""

    playing: PlayState
    episodes: Episodes  # [N, G]
    trajectory: Trajectory  # [S, ...]

    def is_over(self) -> jax.Array:
        """Whether every environment has played all of its episodes."""
        return jnp.all(self.playing.played >= self.episodes.length.shape[-1])


class Watch(NamedTuple):
    """What to see of the games; may be traced, so that one compilation serves all."""

    which: int | jax.Array  # the environment that is watched
    first: int | jax.Array  # the step, counted from the start, from which on it is
    until: int | jax.Array  # the step at which all games stop
    # Whether to leave out rounds of games that repeat themselves. Their scores stay exact: a round
    # adds to clocks, return and length what the one before it did (`jaxrl.cycle_skipping`).
    leaps: bool | jax.Array = False


def evaluate(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    agent_state: PyTree,
    key: jax.Array,
    num_envs: int,
    games_per_env: int,
    max_steps: int,
    deterministic: bool = False,
) -> Episodes:
    """Plays `games_per_env` complete episodes in each of `num_envs` environments; jittable.

    Stops when all are complete, or after `max_steps` steps of every environment. To score without
    exploration, make the agent with `greedy=True`. Say with `deterministic` that it draws no random
    numbers: then games that go round in circles end sooner (see `jaxrl.cycle_skipping`). Raises
    ValueError for a size below 1, and for what is no environment or agent.
    """
    checks.value("max_steps", Annotated[float, Range(least=1, finite=False)], max_steps)
    sizes, window = (num_envs, games_per_env, 0), Watch(0, 0, max_steps, True)
    return watch(env, env_params, agent, agent_state, key, *sizes, window, deterministic)[0]


def watch(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    agent_state: PyTree,
    key: jax.Array,
    num_envs: int,
    games_per_env: int,
    num_steps: int,
    window: Watch,
    deterministic: bool = False,
) -> tuple[Episodes, Trajectory]:
    """`evaluate`, and `num_steps` steps of one environment; jittable.

    The games depend on `num_envs` and `key` alone: whoever plays them again with another `window`
    watches another of the same games. What is watched is whole only without `window.leaps`.
    """
    game = env, env_params, agent, agent_state
    evaluation = start(*game, key, num_envs, games_per_env, num_steps, deterministic)
    evaluation = advance(*game, evaluation, window)
    return evaluation.episodes, evaluation.trajectory


@in_float32
def start(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    agent_state: PyTree,
    key: jax.Array,
    num_envs: int,
    games_per_env: int,
    num_steps: int = 0,
    deterministic: bool = False,
) -> EvaluationState:
    """The evaluation of `watch` at its start; jittable.

    Raises ValueError for bad sizes, and for what is no environment or agent.
    """
    checks.config(Sizes(num_envs, games_per_env, num_steps))
    check_parts(env, agent)
    env_params = narrow(env_params)
    playing = begin(env, env_params, agent, key, num_envs, deterministic)
    ended, state_and_action = jax.eval_shape(
        partial(_step, env, env_params, agent, agent_state), playing, 0
    )[1]
    blank = lambda shape, tree: jax.tree.map(lambda x: jnp.zeros(shape(x), x.dtype), tree)
    episodes = blank(lambda x: (num_envs, games_per_env), ended)
    return EvaluationState(
        playing, episodes, blank(lambda x: (num_steps, *x.shape), state_and_action)
    )


@in_float32
def advance(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    agent_state: PyTree,
    evaluation: EvaluationState,
    window: Watch,
) -> EvaluationState:
    """Goes on to the step `window.until`, or until all episodes are complete; jittable.

    In how many pieces games are played makes no difference to them. The trajectory holds what is
    watched from `window.first` on, as far as its rows go.
    """
    env_params = narrow(env_params)
    num_steps = len(jax.tree.leaves(evaluation.trajectory.action)[0])

    def step_and_record(evaluation: EvaluationState) -> EvaluationState:
        playing = evaluation.playing
        next_playing, (ended, state_and_action) = _step(
            env, env_params, agent, agent_state, playing, window.which
        )
        next_playing = skip_repeated_rounds(env, env_params, next_playing, window.leaps)
        episodes = record(evaluation.episodes, ended, playing.played)
        row = playing.step - window.first
        row = jnp.where(row < 0, num_steps, row)  # dropped, as all rows behind the last
        put = lambda rows, x: rows.at[row].set(x, mode="drop") if num_steps else rows
        trajectory = jax.tree.map(put, evaluation.trajectory, state_and_action)
        next_playing = next_playing._replace(played=playing.played + ended.complete)
        return EvaluationState(next_playing, episodes, trajectory)

    def is_running(evaluation: EvaluationState) -> jax.Array:
        return ~evaluation.is_over() & (evaluation.playing.step < window.until)

    return jax.lax.while_loop(is_running, step_and_record, evaluation)


def _step(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    agent_state: PyTree,
    playing: PlayState,
    which: int | jax.Array,
) -> tuple[PlayState, tuple[Episodes, Trajectory]]:
    """`play`, of the environment `which` also its state before the step and its action."""
    next_playing, (ended, action) = play(env, env_params, agent, agent_state, playing)
    select_env = lambda tree: jax.tree.map(lambda x: x[which], tree)
    return next_playing, (ended, Trajectory(select_env(playing.world.env), select_env(action)))


def states(game: Trajectory, step: Callable[[PyTree, PyTree], PyTree]) -> PyTree:
    """The states of a whole game, NumPy `[S + 1, ...]`: before each action, and after the last.

    `step(state, action) -> state` takes it once more, without the reset that followed.
    """
    last_state, last_action = jax.tree.map(lambda x: x[-1], game)
    final = jax.jit(step)(last_state, last_action)
    return jax.tree.map(lambda x, y: np.append(x, np.asarray(y)[None], 0), game.state, final)


def begin(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    key: jax.Array,
    num_envs: int,
    deterministic: bool = False,
) -> PlayState:
    """N environments before their first step, with anchors where rounds may be left out."""
    reset_key, key = jax.random.split(key)
    world = World(*acting.reset(env, env_params, agent, num_envs, reset_key), key)
    may_repeat = deterministic and cycle_skipping.takes_part(env, env_params, world.env)
    anchor = make_anchor(env, env_params, world) if may_repeat else None
    return PlayState(world, jnp.zeros(num_envs, jnp.int32), jnp.zeros((), jnp.int32), anchor)


def play(
    env: Environment, env_params: PyTree, agent: Agent, agent_state: PyTree, playing: PlayState
) -> tuple[PlayState, tuple[Episodes, PyTree]]:
    """One step of all N environments; the episodes `[N]`, complete where one just ended, and the
    actions `[N, ...]`."""
    world, (transition, totals) = acting.step(env, env_params, agent, agent_state, playing.world)
    return_, length = totals.pop("return"), totals.pop("length")
    done = transition.terminated | transition.truncated
    episodes = Episodes(return_, length, transition.terminated, transition.truncated, totals, done)
    return playing._replace(world=world, step=playing.step + 1), (episodes, transition.action)


def skip_repeated_rounds(
    env: Environment, env_params: PyTree, playing: PlayState, enabled: bool | jax.Array
) -> PlayState:
    """Leaves out the rounds of games that repeat themselves, if that is `enabled` and known."""
    if playing.anchor is None:
        return playing
    world, anchor = cycle_skipping.leap(
        env, env_params, playing.world, playing.anchor, playing.step
    )
    choose = lambda new, old: jnp.where(enabled, new, old)
    env_and_episode = lambda world: (world.env, world.episode)
    env_state, episode = jax.tree.map(
        choose, env_and_episode(world), env_and_episode(playing.world)
    )
    return playing._replace(
        world=playing.world._replace(env=env_state, episode=episode), anchor=anchor
    )


def record(episodes: Episodes, ended: Episodes, played: jax.Array) -> Episodes:
    """Writes the episodes that just ended, `[N]`, into each environment's next free column."""
    games = jnp.arange(episodes.length.shape[1])
    is_target = ended.complete[:, None] & (
        games[None, :] == played[:, None]
    )  # nowhere once all are in
    return jax.tree.map(lambda old, new: jnp.where(is_target, new[:, None], old), episodes, ended)
