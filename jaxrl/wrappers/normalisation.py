"""Observations and rewards on a common scale, for any agent that learns from its newest rollout.

`make(agent, config)` is that agent behind running statistics over the steps of all environments
(of observations: Andrychowicz et al. 2021, "What matters for on-policy deep actor-critic methods?",
choices C64 and C65). Only `update` changes them: they stand still within a rollout, so that an
agent learns from what it saw when it acted, and in evaluation. They are part of the state of the
agent; those of the observations are below `params`, so that a policy keeps them.

An agent with a replay would remember observations and rewards as they were scaled long ago, those
of the first rollout as they came: it is refused.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Positive, Share, Span
from jaxrl.dependent_fields import needs
from jaxrl.numerics.recurrence import linear_recurrence
from jaxrl.replay.uniform import Replay
from jaxrl.types import (
    Agent,
    AgentState,
    Memory,
    Metrics,
    Observation,
    PyTree,
    Transition,
    as_agent,
)


@struct.dataclass
class Config:
    """What is normalised, and how far it may reach."""

    observations: bool = struct.field(pytree_node=False, default=False)
    """Shift and scale every number of an observation to mean 0 and deviation 1; categories stay,
    but for those that are one-hot among other numbers."""
    observation_clip: Annotated[Span, needs("observations")] = 10.0
    """Largest size of a normalised observation; inf: any."""
    rewards: bool = struct.field(pytree_node=False, default=False)
    """Divide rewards by the deviation of the discounted return, without shifting them."""
    reward_clip: Annotated[Span, needs("rewards")] = float("inf")
    """Largest size of a scaled reward; inf: any."""
    discount: Share = 0.99
    """γ of that return, per environment step."""
    epsilon: Annotated[Positive, needs("observations") | needs("rewards")] = 1e-8
    """Added to variances before the root is taken."""


class Statistics(NamedTuple):
    """Statistics of a stream of numbers, side by side for each entry."""

    count: jax.Array  # float32; the numbers so far
    mean: PyTree
    variance: PyTree


class State(NamedTuple):
    """The state of the agent and of what it is normalised by."""

    params: Statistics  # of the observations
    agent: AgentState
    returns: Statistics  # of `return_`, over all steps
    return_: jax.Array  # [N] discounted rewards since each episode began


def make(
    agent: Agent,
    config: Config,
    num_envs: int = 1,
    integers: bool = False,
    chosen: PyTree | None = None,
) -> Agent:
    """`agent` with observations and rewards normalised.

    `num_envs` is the N of the rollouts to come. Integers are normalised only on request: they may
    be counts or grey values, or categories, whose networks expect them as they are. `chosen`, bool
    in the shapes of one observation, says which numbers are normalised; None: all. Raises
    ValueError for out-of-range numbers, for what is no agent and, in `init`, for one with a replay.
    """
    checks.config_of(Config, config)
    agent = as_agent(agent)

    # What the agent is shown of an observation.
    def normalise_obs(statistics: Statistics, obs: Observation) -> Observation:
        if not config.observations:
            return obs
        scaled = normalise(statistics, obs, config, integers)
        if chosen is None:
            return scaled
        choose = lambda is_chosen, x, y: jnp.where(jnp.broadcast_to(is_chosen, x.shape), x, y)
        return jax.tree.map(choose, chosen, scaled, obs)

    def init(key: jax.Array, obs: Observation) -> State:
        agent_state = agent.init(key, obs)
        check_memory(config, agent_state)
        # nothing known of any number: of mean 0 and variance 1
        blank = Statistics(jnp.zeros(()), jnp.zeros(()), jnp.ones(()))
        fill_obs = lambda fill: jax.tree.map(lambda x: fill(jnp.shape(x), jnp.float32), obs)
        statistics = Statistics(jnp.zeros(()), fill_obs(jnp.zeros), fill_obs(jnp.ones))
        return State(statistics, agent_state, blank, jnp.zeros(num_envs))

    def act(state: State, memory: Memory, obs: Observation, key: jax.Array):
        return agent.act(state.agent, memory, normalise_obs(state.params, obs), key)

    def explain(state: State, memory: Memory, obs: Observation) -> Metrics:
        return agent.explain(state.agent, memory, normalise_obs(state.params, obs))

    # The agent learns from observations as it saw them, and from rewards on the newest scale.
    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        statistics, scaled = state.params, rollout
        if config.observations:
            statistics = add_batch(state.params, rollout.obs)
            scaled = rollout._replace(
                obs=normalise_obs(state.params, rollout.obs),
                next_obs=normalise_obs(state.params, rollout.next_obs),
            )
        returns, return_, metrics = state.returns, state.return_, {}
        if config.rewards:
            check_environments(num_envs, rollout)
            returns, return_ = add_returns(state, rollout, config.discount)
            scaled = scaled._replace(reward=scale(returns, rollout.reward, config))
            metrics = {"return_deviation": jnp.sqrt(returns.variance)}
        agent_state, agent_metrics = agent.update(state.agent, scaled, key)
        return State(statistics, agent_state, returns, return_), agent_metrics | metrics

    return Agent(init, agent.memory, act, update, explain, agent.blocks)


def check_memory(config: Config, agent_state: AgentState) -> None:
    """Raises ValueError if what is scaled by other statistics later would be kept in a replay."""
    is_replay = lambda x: isinstance(x, Replay)
    has_replay = any(map(is_replay, jax.tree.leaves(agent_state, is_leaf=is_replay)))
    if has_replay and (config.observations or config.rewards):
        raise ValueError(
            "the agent has a replay, which would keep what is normalised on the scale of its time: "
            "leave out the normalisation, or use an agent that learns from its newest rollout alone"
        )


def check_environments(num_envs: int, rollout: Transition) -> None:
    """Raises ValueError, while traced, for a rollout of another number of environments."""
    actual = rollout.terminated.shape[1]
    if actual != num_envs:
        raise ValueError(
            f"returns are kept of {num_envs} environments, the rollout has {actual}: use "
            f"normalisation.make(..., num_envs={actual})"
        )


def normalise(
    statistics: Statistics, obs: Observation, config: Config, integers: bool = False
) -> Observation:
    """Each number less its mean, by its deviation, within `observation_clip`; `obs [..., *D]`."""
    kinds = (jnp.floating, jnp.integer)[: 1 + integers]

    def normalise_leaf(x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        if not any(jnp.issubdtype(jnp.result_type(x), kind) for kind in kinds):
            return x
        x = jnp.asarray(x, mean.dtype)
        deviation = jnp.sqrt(variance + config.epsilon)
        z = (x - jnp.broadcast_to(mean, x.shape)) / jnp.broadcast_to(deviation, x.shape)
        return jnp.clip(z, -config.observation_clip, config.observation_clip)

    return jax.tree.map(normalise_leaf, obs, statistics.mean, statistics.variance)


def scale(returns: Statistics, reward: jax.Array, config: Config) -> jax.Array:
    """Rewards by the deviation of the return, within `reward_clip`."""
    scaled = reward / jnp.sqrt(returns.variance + config.epsilon)
    return jnp.clip(scaled, -config.reward_clip, config.reward_clip)


def add_batch(statistics: Statistics, batch: PyTree) -> Statistics:
    """The statistics with those of a batch `[T, N, ...]` (Chan et al. 1979, eq. 2.1).

    Of an entry that is not finite somewhere in the batch they stay: infinity would stay, too. The
    count is that of all entries: it stays where none of them was finite.
    """
    size = jnp.prod(jnp.array(jax.tree.leaves(batch)[0].shape[:2], jnp.float32))
    total = statistics.count + size
    share = size / total

    def mean_of(x: jax.Array, mean: jax.Array) -> jax.Array:
        return mean + share * (jnp.mean(x, (0, 1), jnp.float32) - mean)

    def variance_of(x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        x = jnp.asarray(x, jnp.float32)
        difference = jnp.mean(x, (0, 1)) - mean
        return (
            (1 - share) * variance
            + share * jnp.var(x, (0, 1))
            + share * (1 - share) * difference**2
        )

    old = (statistics.mean, statistics.variance)
    new = (jax.tree.map(mean_of, batch, old[0]), jax.tree.map(variance_of, batch, *old))
    is_finite = jax.tree.map(lambda *x: jnp.isfinite(x[0]) & jnp.isfinite(x[1]), *new)
    mean, variance = (jax.tree.map(jnp.where, is_finite, *x) for x in zip(new, old, strict=True))
    is_counted = jax.tree.reduce(jnp.logical_or, jax.tree.map(jnp.any, is_finite))
    return Statistics(jnp.where(is_counted, total, statistics.count), mean, variance)


def add_returns(
    state: State, rollout: Transition, discount: float | jax.Array
) -> tuple[Statistics, jax.Array]:
    """The statistics of returns after a rollout `[T, N]`, and the returns `[N]` of what goes on.

    A reward that is not finite counts as 0.
    """
    reward, ended = rollout.total_reward, rollout.terminated | rollout.truncated
    begins = jnp.concatenate([jnp.zeros_like(ended[:1]), ended[:-1]])  # an episode with this step
    decay = jnp.where(begins, 0.0, discount).astype(reward.dtype)
    finite_reward = jnp.where(jnp.isfinite(reward), reward, 0.0)
    returns = linear_recurrence(decay, finite_reward, state.return_)
    return add_batch(state.returns, returns), jnp.where(ended[-1], 0.0, returns[-1])
