"""Eigenvectors of walks in an environment: `python -m train.allo --env.id MODULE:NAME`.

They are learned from minibatches of pairs of recorded observations. What is learned is measured on
walks of the same policy that nothing was learned from (`environment_scores`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from gymnax.environments import spaces

from jaxrl.loop import LoopMetrics
from jaxrl.spectral.learning import allo, allo_state, encoder, pair_replay
from jaxrl.spectral.learning.allo_config import outputs
from jaxrl.types import AgentState, Transition
from train.allo.config import Config, check, learning_config, make_torso
from train.allo.environment import environment_scores as scores
from train.allo.environment.walks import Walks, make_walks, range_of, record, replay_of
from train.host.scoring import scores as host_scores
from train.host.training import Evaluation, Score, TrainedAgents, Training

SCORE = "persistence"
HELD_OUT = 8_192
"""Pairs of other walks that rows of the record are measured on."""
MEASURED = 20_000
"""Pairs of other walks that an evaluation is measured on."""
MOST_IDS = 5_000
"""Values of a discrete observation, at most: the network sees a number for each."""


class State(NamedTuple):
    """Learning in progress; the recorded walks are part of the agent."""

    agent: AgentState
    pairs: tuple[jax.Array, jax.Array]  # [HELD_OUT, ...] observations, of other walks
    key: jax.Array
    updates: jax.Array  # int32


class Problem(NamedTuple):
    """An environment to be walked in, and who learns of it."""

    walks: Walks
    network: Any
    agent: allo.Config
    num_envs: int  # walks to learn from


def make_training(config: Config) -> Training:
    """Raises ValueError, in one line, for what does not fit together."""
    walks, network, agent_config, num_envs = problem = make_problem(config)
    features = partial(allo_state.features, network, agent_config)

    def init(key: jax.Array) -> State:
        init_key, walk_key, pair_key, key = jax.random.split(key, 4)
        rollout, others = record_apart(walks, num_envs, walk_key)
        params = network.init(init_key, jax.tree.map(lambda x: x[0, 0], rollout.obs))
        if not is_discrete(walks):
            params = encoder.with_range(params, *range_of(rollout.obs))
        learner = allo_state.first_learner(agent_config, params, 0)
        agent = allo_state.State(learner, replay_of(rollout, agent_config.blocks), (), ())
        ring = replay_of(others)
        pairs = pair_replay.sample_pairs(ring, pair_key, HELD_OUT, agent_config.discount)
        return State(agent, pairs, key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, LoopMetrics]:
        key, learn_key, permute_key = jax.random.split(state.key, 3)
        agent, metrics = allo.learn(network, agent_config, state.agent, learn_key)
        metrics |= scores.row_measures(*(features(agent, obs) for obs in state.pairs))
        metrics["eigenvalues"] = allo_state.eigenvalues(agent_config, agent)
        updates = state.updates + 1
        if config.permute_every:
            due = updates % (config.permute_every // agent_config.steps_per_update) == 0
            agent = agent._replace(learner=allo.permute_outputs(agent.learner, permute_key, due))
        state = State(agent, state.pairs, key, updates)
        return state, LoopMetrics(jnp.zeros((), jnp.int32), {}, metrics)

    return Training(
        init=init,
        update=update,
        evaluate=partial(evaluate, config, problem),
        blocks=agent_config.blocks,
        steps_per_update=agent_config.steps_per_update,
        unit="gradient steps",
        score=Score(SCORE),
        budget_shapes_learning=agent_config.schedule != "constant",
    )


def make_problem(config: Config) -> Problem:
    """Raises ValueError for what would show only after compilation."""
    check(config)
    agent = learning_config(config)
    allo.check_config(agent)
    if agent.expectation == "exact" or agent.directed or agent.importance:
        raise ValueError(
            "states of env.id are not numbered: they need agent.expectation sampled, without "
            "agent.directed and agent.importance, as in the preset environment"
        )
    walks = make_walks(config.env)
    num_envs = count_walks(config.env.transitions, walks)
    return Problem(walks, make_network(config, walks), agent, num_envs)


def is_discrete(walks: Walks) -> bool:
    return isinstance(walks.task.observation, spaces.Discrete)


def make_network(config: Config, walks: Walks) -> nn.Module:
    """The encoder of what the environment shows: vectors, images, or one of so many values.

    Raises ValueError for other observations.
    """
    observation, name = config.network.observation, config.env.id
    if observation not in ("fourier", "coordinates"):
        raise ValueError(
            f"network.observation is {observation}, of mazes; expected fourier or coordinates "
            f"with env.id"
        )
    space, torso = walks.task.observation, make_torso(config.network)
    if is_discrete(walks):
        if space.n > MOST_IDS:
            raise ValueError(
                f"env.id {name} shows {space.n:,} values; expected at most {MOST_IDS:,}"
            )
        first = partial(jax.nn.one_hot, num_classes=space.n)
        torso = make_torso(config.network, "coordinates")
    elif len(space.shape) in (1, 3):
        first = encoder.Standardise(len(space.shape))
        torso = make_torso(config.network, "rendered" if len(space.shape) == 3 else observation)
    else:
        raise ValueError(
            f"env.id {name} shows arrays of shape {space.shape}; expected vectors or images "
            "[rows, cols, channels]"
        )
    return encoder.Encoder(nn.Sequential((first, torso)), outputs(config.agent))


def count_walks(transitions: int, walks: Walks) -> int:
    return -(-transitions // walks.num_steps)


def record_apart(walks: Walks, num_envs: int, key: jax.Array) -> tuple[Transition, Transition]:
    """Rollouts `[T, N]` to learn from, and of other walks."""
    whole = record(walks, num_envs + count_others(num_envs, HELD_OUT, walks), key)
    of_walks = lambda chosen: jax.tree.map(lambda x: x[:, chosen], whole)
    return of_walks(slice(num_envs)), of_walks(slice(num_envs, None))


def count_others(num_envs: int, pairs: int, walks: Walks) -> int:
    """Walks that pairs to measure with are from: many, as each says little of rare states."""
    return max(count_walks(pairs, walks), -(-num_envs // 5))


def other_pairs(problem: Problem, count: int, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`(s, s')`, `[count, ...]` each: observations of pairs of fresh walks."""
    walk_key, pair_key = jax.random.split(key)
    num_envs = count_others(problem.num_envs, count, problem.walks)
    ring = replay_of(record(problem.walks, num_envs, walk_key))
    return pair_replay.sample_pairs(ring, pair_key, count, problem.agent.discount)


def evaluate(config: Config, problem: Problem, *trained: *TrainedAgents) -> Evaluation:
    """Every seed's features on walks of its own key, and how well seeds agree on those of the
    first."""
    agents, seeds, keys = trained
    fresh_pairs = jax.jit(partial(other_pairs, problem, MEASURED))
    features = jax.jit(partial(allo_state.features, problem.network, problem.agent))
    pairs = [fresh_pairs(key) for key in keys]
    on_common = [np.asarray(features(agent, pairs[0][0])) for agent in agents]
    index = {id(agent): i for i, agent in enumerate(agents)}

    def measure(agent: AgentState, key: jax.Array) -> dict[str, Any]:
        del key  # it has drawn the pairs
        i = index[id(agent)]
        u, u_next = (np.asarray(features(agent, x)) for x in pairs[i])
        row = scores.seed_measures(u, u_next, *map(np.asarray, pairs[i]))
        return row if len(agents) == 1 else row | scores.agreement(on_common, i)

    return host_scores.evaluate_by_measure(
        agents,
        seeds,
        keys,
        SCORE,
        measure,
        scores.table,
        environment=config.env.id,
        policy=config.env.policy,
        pairs=MEASURED,
    )
