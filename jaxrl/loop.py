"""Act, step, learn: one training update as a pure function. Knows no agent and no environment."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import acting, checks, outcomes
from jaxrl import blocks as in_blocks
from jaxrl.acting import EpisodeSums, World
from jaxrl.checks import Count
from jaxrl.numerics import nonfinite
from jaxrl.numerics.precision import in_float32, narrow
from jaxrl.types import Agent, Environment, PyTree, as_agent, check_parts, update_parts


@struct.dataclass
class Config:
    """The size of the rollout of one update."""

    num_envs: Count = struct.field(pytree_node=False, default=512)
    """Environments stepped side by side (N)."""
    num_steps: Count = struct.field(pytree_node=False, default=64)
    """Steps of each environment between two updates (T)."""
    blocks: Count = struct.field(pytree_node=False, default=1)
    """Equal groups of environments (K) which minibatches and replay draws are taken within, each an
    equal part of them; must divide `num_envs`. It changes what is drawn, like a seed, so choose it
    for as many devices as a run may ever have, or a multiple: they share the blocks."""

    @property
    def steps_per_update(self) -> int:
        """Environment steps of one update, N T."""
        return self.num_envs * self.num_steps


class TrainState(NamedTuple):
    """The whole state of a run; a resumed run continues bit for bit."""

    agent: PyTree
    env: PyTree  # [N, ...]
    obs: PyTree  # [N, ...] what each environment shows now
    memory: PyTree  # [N, ...]
    episode: EpisodeSums
    key: jax.Array
    updates: jax.Array  # int32; multiply on the host: steps overflow 32 bits, updates do not
    course: PyTree = ()  # of the curriculum


class LoopMetrics(NamedTuple):
    """Metrics of one update; a chunk of updates stacks them along a first axis."""

    episodes: jax.Array  # episodes finished during the rollout
    finished: dict[str, jax.Array]  # sums over them: "return", "length", the env's outcome
    agent: dict[str, jax.Array]  # metrics of `Agent.update`
    origin: Any = ()  # nonfinite.Origin in the rollout; () without one


class Loop(NamedTuple):
    """`init(key) -> TrainState` and `update(state) -> (TrainState, LoopMetrics)`, both pure.

    `update.mending` is the same for runs that go on where numbers are not finite (`make_loop`).
    """

    init: Callable[[jax.Array], TrainState]
    update: Callable[[TrainState], tuple[TrainState, LoopMetrics]]


class Curriculum(NamedTuple):
    """Environments that change while an agent learns: three pure functions of a course.

    The course is the progress through the curriculum, part of the state of a run.
    """

    init: Callable[[], PyTree]
    """`() -> course`, at the start."""
    params: Callable[[PyTree], PyTree]
    """`course -> env_params` of the next update."""
    advance: Callable[[PyTree, PyTree, LoopMetrics], tuple[PyTree, PyTree, dict[str, jax.Array]]]
    """`(course, agent_state, metrics) -> (course, agent_state, measures)` after an update. The
    measures, scalars by name, are added to the metrics of the agent."""


def constant_curriculum(env_params: PyTree) -> Curriculum:
    """The same environment at all times."""
    return Curriculum(
        init=lambda: (),
        params=lambda course: env_params,
        advance=lambda course, agent_state, metrics: (course, agent_state, {}),
    )


def make_loop(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    config: Config,
    curriculum: Curriculum | None = None,
) -> Loop:
    """Joins an environment and an agent. Jit `update`, `vmap` both over keys for many seeds.

    A `curriculum` chooses the parameters of the environment; `env_params` are then not used.
    An agent that draws is made for the same number of blocks. `update.mending` also starts
    environments anew that showed or paid numbers which are not finite, for runs that go on then;
    its caller ends the episodes of a replay there (`replay.uniform.end_episodes`), or it would join
    steps that do not follow each other.
    Raises ValueError for a rollout without steps, for blocks that are not equal or not those of the
    agent, for kinds of outcomes that are unknown, and for what is no environment, agent or
    `Config`; `init` does for a replay of other blocks, and for an agent that chooses among more or
    fewer actions than a Discrete has.
    """
    check_parts(env, agent)
    agent = as_agent(agent)
    if isinstance(env_params, type):
        raise ValueError(
            f"params are the class {env_params.__name__}, expected its numbers: "
            f"give {env_params.__name__}()"
        )
    check_config(config)
    in_blocks.check_agent(agent.blocks, config.blocks)
    outcomes.kinds(env)
    active_curriculum = curriculum or constant_curriculum(narrow(env_params))

    def make_update(mends: bool) -> Callable[[TrainState], tuple[TrainState, LoopMetrics]]:
        return in_float32(
            lambda state: _update(env, agent, config, active_curriculum, mends, state)
        )

    update = make_update(mends=False)
    update.mending = make_update(mends=True)  # pyright: ignore[reportFunctionMemberAccess]
    return Loop(in_float32(lambda key: _init(env, agent, config, active_curriculum, key)), update)


def check_config(config: Config) -> None:
    """Raises ValueError for sizes out of range, and for blocks that are not equal."""
    checks.config_of(Config, config)
    in_blocks.check(config.num_envs, config.blocks)


def _init(
    env: Environment, agent: Agent, config: Config, curriculum: Curriculum, key: jax.Array
) -> TrainState:
    env_key, agent_key, key = jax.random.split(key, 3)
    course = curriculum.init()
    env_params = curriculum.params(course)
    obs, env_state, memory, episode = acting.reset(env, env_params, agent, config.num_envs, env_key)
    first_obs, first_memory = jax.tree.map(lambda x: x[0], (obs, memory))
    agent_state = agent.init(agent_key, first_obs)
    in_blocks.check_held(agent_state, config.blocks)
    explain = lambda: agent.explain(agent_state, first_memory, first_obs)
    acting.check_num_choices(env, env_params, explain)
    return TrainState(
        agent=agent_state,
        env=env_state,
        obs=obs,
        memory=memory,
        episode=episode,
        key=key,
        updates=jnp.zeros((), jnp.int32),
        course=course,
    )


def _update(
    env: Environment,
    agent: Agent,
    config: Config,
    curriculum: Curriculum,
    mends: bool,
    state: TrainState,
) -> tuple[TrainState, LoopMetrics]:
    env_params = curriculum.params(state.course)

    # traced once, for the shapes of the sums and for the rollout
    play = jax.jit(partial(acting.step, env, env_params, agent), inline=True)

    # Of finished episodes only sums are wanted: each environment keeps its own from step to step.
    def step(carry: tuple[World, PyTree], _):
        world, sums = carry
        world, (transition, totals) = play(state.agent, world)
        done = transition.terminated | transition.truncated  # [N]
        add = lambda total, x: total + jnp.where(done, x, 0)
        return (world, jax.tree.map(add, sums, totals)), transition

    world, num_steps = world_of(state), config.num_steps
    _, (_, totals) = jax.eval_shape(play, state.agent, world)
    no_sums = jax.tree.map(lambda x: jnp.zeros(x.shape, jax.eval_shape(jnp.sum, x).dtype), totals)
    (world, sums), rollout = jax.lax.scan(step, (world, no_sums), length=num_steps)
    if mends:
        chosen = nonfinite.broken_environments(rollout)
        world = acting.restart(env, env_params, agent, world, chosen)
    key, update_key = jax.random.split(world.key)
    update_output = agent.update(state.agent, rollout, update_key)
    agent_state, agent_metrics = update_parts(update_output, state.agent)
    metrics = LoopMetrics(
        episodes=jnp.sum(rollout.terminated | rollout.truncated),
        finished=jax.tree.map(jnp.sum, sums),
        agent=agent_metrics,
        origin=nonfinite.origin(rollout, state.updates * num_steps),
    )
    course, agent_state, measures = curriculum.advance(state.course, agent_state, metrics)
    next_state = state._replace(**world._replace(key=key)._asdict())
    next_state = next_state._replace(agent=agent_state, updates=state.updates + 1, course=course)
    return next_state, metrics._replace(agent=agent_metrics | measures)


def world_of(state: TrainState) -> World:
    """The part of the state that acting changes."""
    return World(*(getattr(state, name) for name in World._fields))


def make_chunk(
    update: Callable[[TrainState], tuple[TrainState, LoopMetrics]], num_updates: int
) -> Callable[[TrainState], tuple[TrainState, LoopMetrics]]:
    """`num_updates` updates in one call; the metrics come stacked `[num_updates, ...]`."""

    def chunk(state: TrainState) -> tuple[TrainState, LoopMetrics]:
        return jax.lax.scan(lambda state, _: update(state), state, length=num_updates)

    return chunk
