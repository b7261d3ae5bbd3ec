"""The training of a configuration of ALLO: eigenvectors of a maze, from a recorded random walk."""

import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from envs.grid import layouts
from jaxrl import acting
from jaxrl.loop import Config as LoopConfig
from jaxrl.loop import LoopMetrics, TrainState, make_loop, world_of
from jaxrl.spectral import exploration
from jaxrl.spectral.learning import allo, allo_state, allo_walks
from jaxrl.types import Agent, AgentState, Transition
from train.allo import problem as problems
from train.allo import scores
from train.allo.config import Config, check, learning_config, make_network
from train.allo.directed import directed_run
from train.allo.problem import Problem
from train.allo.recorded import policies
from train.host.compilation import ahead_of_time
from train.host.machine import devices
from train.host.scoring import scores as host_scores
from train.host.training import Evaluation, Score, TrainedAgents, Training

SCORE = "similarity"


class State(NamedTuple):
    """A run of ALLO: one random walk before the first update, then only gradient steps."""

    agent: AgentState
    truth: Any  # what the learned eigenvectors are compared with
    key: jax.Array
    updates: jax.Array  # int32


def make_training(config: Config) -> Training:
    """Raises ValueError, in one line, for what does not fit together."""
    # The agent, whose inputs are a table where states are numbered, and the walks that it records.
    problem = make_problem(config)
    network, agent_config = network_of(config, problem), learning_config(config)
    env = config.env
    num_envs = env.num_walkers
    numbered_inputs = jnp.asarray(problem.inputs) if problem.is_numbered else None
    agent = allo.make(
        network, agent_config, 4, numbered_inputs, num_envs, env.walk_steps, walker_of(problem)
    )
    points = None if problem.is_numbered else jnp.asarray(problem.inputs)
    sizes = LoopConfig(num_envs, env.walk_steps, config.agent.blocks)
    walkers = make_loop(problem.env, problem.params, agent, sizes)

    def init(key: jax.Array) -> State:
        start = walkers.init(key)
        learner, key = learner_with_walks(config, agent_config, problem, agent, start)
        return State(learner, problem.truth, key, start.updates)

    def update(state: State) -> tuple[State, LoopMetrics]:
        key, learn_key, permute_key = jax.random.split(state.key, 3)
        learner, metrics = allo.learn(network, agent_config, state.agent, learn_key)
        metrics |= measures(network, agent_config, learner, state.truth, points)
        metrics["settled"] = allo_state.is_settled(agent_config, learner).astype(jnp.float32)
        updates = state.updates + 1
        # The measures are those before the permutation, which tests the stability of the order.
        if config.permute_every:
            due = updates % (config.permute_every // agent_config.steps_per_update) == 0
            learner = learner._replace(
                learner=allo.permute_outputs(learner.learner, permute_key, due)
            )
        state = State(learner, state.truth, key, updates)
        return state, LoopMetrics(jnp.zeros((), jnp.int32), {}, metrics)

    return Training(
        init=init,
        update=update,
        evaluate=partial(
            directed_run.evaluate if config.agent.directed else evaluate, config, problem
        ),
        snapshot=lambda state: snapshot(network, agent_config, state.agent, points),
        blocks=config.agent.blocks,
        steps_per_update=agent_config.steps_per_update,
        unit="gradient steps",
        score=Score(SCORE),
        budget_shapes_learning=agent_config.schedule != "constant",
        converged_metric="settled" if agent_config.schedule == "measured" else "",
    )


def learner_with_walks(
    config: Config, agent_config: allo.Config, problem: Problem, agent: Agent, start: TrainState
) -> tuple[AgentState, jax.Array]:
    """The learner before its first gradient step, which has recorded its walks, and a new key."""
    env = config.env
    if env.explores:  # in walks one after the other, which know what was recorded before
        num_steps = -(-env.num_walks // env.num_walkers) * env.walk_steps
        begin = world_of(start), start.agent.walk
        world, counts = exploration.explore(problem.env, problem.params, *begin, num_steps)
        return allo_walks.with_counts(agent_config, start.agent, counts), world.key
    key, rollout = record_walks(problem, agent, start, env.walk_steps)
    return allo_walks.record_rollout(agent_config, start.agent, rollout), key


def record_walks(
    problem: Problem, agent: Agent, start: TrainState, num_steps: int
) -> tuple[jax.Array, Transition]:
    """The key after all walks, and these as one rollout `[T, N]`: later updates record nothing."""

    def walk(world: acting.World, _):
        return acting.step(problem.env, problem.params, agent, start.agent, world)

    world, (rollout, _) = jax.lax.scan(walk, world_of(start), length=num_steps)
    return world.key, rollout


def measures(
    network: Any, config: allo.Config, state: AgentState, truth: Any, points: Any
) -> dict[str, jax.Array]:
    """The numbers of a row of the record that say what has been learned.

    Of the states that the agent has inputs for or, in open space, at `points`.
    """
    if config.directed:
        return directed_run.measures(network, state, truth)
    similarities = scores.similarities(allo_state.features(network, config, state, points), truth)
    return similarities | {"eigenvalues": allo_state.eigenvalues(config, state)}


def snapshot(
    network: Any, config: allo.Config, state: AgentState, points: Any
) -> dict[str, jax.Array]:
    """What reports show of a moment."""
    if config.directed:
        return directed_run.snapshot(network, config.num_features, state)
    return {"features": allo_state.features(network, config, state, points)}


def network_of(config: Config, problem: Problem) -> Any:
    return make_network(config, problem.layout.num_states if problem.is_numbered else 0)


def walker_of(problem: Problem) -> Any:
    """How actions are drawn; None: uniformly from the four moves."""
    if not problem.is_numbered:
        return lambda obs, key: (jax.random.uniform(key, (2,), minval=-1.0), ())
    return None if problem.policy is None else policies.walker(problem.policy)


def make_problem(config: Config) -> Problem:
    """The maze of a configuration. Raises ValueError for what would show only after compilation."""
    check(config)
    observation, run = config.network.observation, config.run
    seeds_of_device = devices.members_of_one(run.devices, run.num_seeds, config.agent.blocks)
    return problems.make_problem(config.env, observation, learning_config(config), seeds_of_device)


def evaluate(config: Config, problem: Problem, *trained: *TrainedAgents) -> Evaluation:
    """Scores of every seed's eigenvectors against the true ones, and the data's ceiling."""
    network, agent_config = network_of(config, problem), learning_config(config)
    inputs, d = jnp.asarray(problem.inputs), agent_config.num_features
    regions = layouts.regions(problem.layout)
    has_ceiling = problem.is_numbered and problem.layout.num_states <= scores.CEILING

    def read(agent: AgentState) -> tuple[jax.Array, jax.Array, jax.Array | None]:
        features = allo_state.features(network, agent_config, agent, inputs)  # a policy holds none
        pairs = allo_walks.pair_law(agent_config, agent) if has_ceiling else None
        return features, allo_state.eigenvalues(agent_config, agent), pairs

    started = time.perf_counter()
    compiled_read = ahead_of_time.trace(read, trained[0][0]).compile()
    compile_seconds = time.perf_counter() - started

    def measure(agent: AgentState, key: jax.Array) -> dict[str, Any]:
        del key  # nothing is drawn
        features, eigenvalues, pairs = compiled_read(agent)
        return scores.seed_scores(features, eigenvalues, pairs, problem.truth)

    def table(content: dict[str, Any]) -> Table:
        scores_table = scores.scores_table(content["seeds"], d)
        if len(regions) > 1:
            scores_table.caption = (
                f"{scores_table.caption}\nThe maze falls into {len(regions)} regions."
            )
        return scores_table

    return host_scores.evaluate_by_measure(
        *trained,
        SCORE,
        measure,
        table,
        compile_seconds,
        maze=problem.layout.name,
        states=problem.layout.num_states,
        regions=[len(region) for region in regions],
        true_eigenvalues=np.asarray(problem.truth.values).tolist(),
        published_eigenvalues=None if problem.published is None else problem.published.tolist(),
    )
