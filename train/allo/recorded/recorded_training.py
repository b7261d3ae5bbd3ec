"""Eigenvectors of recorded data: `python -m train.allo --transitions FILE.npz`.

`train.allo.recorded.recordings` says what the file holds. Ids are learned from the exact law of
their recorded pairs, or from samples; vectors from samples. What is learned is compared with the
eigenvectors of that same law, of vectors after dividing the data into cells (`divide`).
"""

import logging
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.loop import LoopMetrics
from jaxrl.replay import uniform
from jaxrl.spectral import laplacian, recorded_pairs
from jaxrl.spectral.learning import allo, allo_state, allo_walks, pair_replay
from jaxrl.spectral.learning.allo_config import outputs
from jaxrl.types import AgentState
from train.allo import scores
from train.allo.config import Config, check, learning_config, make_network
from train.allo.recorded import id_positions, parts, recordings
from train.allo.recorded.cells import Cells, divide
from train.allo.recorded.recorded_scores import measures, table
from train.allo.recorded.recordings import Recording
from train.allo.scores import Truth
from train.host.machine.progress import print_once, show_activity
from train.host.scoring import scores as host_scores
from train.host.training import Evaluation, Score, TrainedAgents, Training

SCORE = "similarity"
_log = logging.getLogger(__name__)


class State(NamedTuple):
    """Learning in progress; the data are arguments of the program, not in the state."""

    agent: AgentState
    key: jax.Array
    updates: jax.Array  # int32


class Problem(NamedTuple):
    """Recorded data, and the eigenvectors of the law of their pairs on P places."""

    recording: Recording
    network: Any
    agent: allo.Config
    inputs: Any  # [S, ...] of the network; () for vectors
    points: np.ndarray  # [P, ...] of the network: of all ids, or of the middles of all cells
    cells: Cells | None  # of vectors
    pairs: np.ndarray  # [P, P] float64, the law of pairs of places
    truth: Truth


def make_training(config: Config) -> Training:
    """Raises ValueError, in one line, for a file that cannot be used."""
    problem = make_problem(config)
    network, agent_config, points = problem.network, problem.agent, jnp.asarray(problem.points)
    walk, law = replay_and_law(problem)
    features_of = lambda learner: allo_state.features(network, agent_config, learner, points)

    def init(key: jax.Array) -> State:
        init_key, key = jax.random.split(key)
        params = network.init(init_key, points[0])
        learner = allo_state.first_learner(agent_config, params, problem.recording.num_ids)
        return State(allo_state.State(learner, (), (), ()), key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, LoopMetrics]:
        key, learn_key, permute_key = jax.random.split(state.key, 3)
        full_state = allo_state.State(state.agent.learner, walk, law, problem.inputs)
        learned_state, metrics = allo.learn(network, agent_config, full_state, learn_key)
        metrics |= scores.similarities(features_of(learned_state), problem.truth)
        metrics["eigenvalues"] = allo_state.eigenvalues(agent_config, learned_state)
        metrics["settled"] = allo_state.is_settled(agent_config, learned_state).astype(jnp.float32)
        learner, updates = learned_state.learner, state.updates + 1
        if config.permute_every:
            due = updates % (config.permute_every // agent_config.steps_per_update) == 0
            learner = allo.permute_outputs(learner, permute_key, due)
        state = State(allo_state.State(learner, (), (), ()), key, updates)
        return state, LoopMetrics(jnp.zeros((), jnp.int32), {}, metrics)

    return Training(
        init=init,
        update=update,
        evaluate=partial(evaluate, config, problem),
        snapshot=lambda state: {"features": features_of(state.agent)},
        steps_per_update=agent_config.steps_per_update,
        unit="gradient steps",
        score=Score(SCORE),
        budget_shapes_learning=agent_config.schedule != "constant",
        converged_metric="settled" if agent_config.schedule == "measured" else "",
    )


def make_problem(config: Config) -> Problem:
    """The data of a configuration. Raises ValueError for what does not fit together."""
    check(config)
    if config.agent.directed:
        raise ValueError("agent.directed needs a maze: leave it out, or leave out --transitions")
    recording, agent = recordings.load(config.transitions), learning_config(config)
    allo.check_config(agent, recording.num_ids)
    d = agent.num_features
    observation = observation_of(config, recording)
    if recording.num_ids:
        inputs = jnp.asarray(inputs_of(recording, observation))
        points, cells, first, second = (
            np.asarray(inputs),
            None,
            recording.state,
            recording.next_state,
        )
    else:
        if agent.expectation == "exact":
            raise ValueError(
                f"{config.transitions} holds vectors, which need agent.expectation sampled: use "
                "the preset continuous, or number the states"
            )
        inputs, cells = (), divide(recording.state, recording.next_state, d)
        points, first, second = cells.middles, cells.first_cells, cells.second_cells
    things = "ids" if recording.num_ids else "cells that vectors are divided into"
    tell(parts.warning(config.transitions, first, second, things))
    if recording.num_ids and observation != "one_hot":
        tell(id_positions.warning(config.transitions, points, recording.occurs))
    with show_activity(f"counting the pairs of {len(first):,} transitions"):
        law = recorded_pairs.pair_law(first, second, recording.left, agent.discount, len(points))
        eigensystem = laplacian.eigensystem(law, missing="drop")
    if len(eigensystem.values) < d:
        raise ValueError(
            f"agent.num_features is {d}, but pairs begin in {len(eigensystem.values)} states of "
            f"{config.transitions}: ask for so many or fewer"
        )
    values = eigensystem.values[: outputs(agent, recording.num_ids)]
    tell(barrier_warning(config.transitions, agent, values))
    network = make_network(config, recording.num_ids, observation)
    return Problem(
        recording, network, agent, inputs, points, cells, law, scores.truth_of(eigensystem, d)
    )


def tell(warning: str) -> None:
    """Prints a warning, if it says anything, once."""
    if warning:
        print_once(warning)


def barrier_warning(path: str, config: allo.Config, values: np.ndarray) -> str:
    """What is said of λ `[E]`, ascending, of which the last is too large for the barrier.

    Empty if there is none, or nobody knows: numbers may be traced.
    """
    limit, weight = config.barrier_limit, config.graph_weight
    is_known = isinstance(limit, int | float) and isinstance(weight, int | float)
    if config.method not in ("allo", "no_duals") or not is_known:
        return ""
    bound = 2 * weight * values[-1]
    if bound <= limit:
        return ""
    return (
        f"{path}: λ of eigenvector {len(values)} is {values[-1]:.3g}, as of places where many "
        f"pairs end and few begin; it is learned with a barrier above {bound:.3g}: raise "
        "--agent.barrier-start and --agent.barrier-limit, or learn fewer by --agent.num-features "
        "and --agent.spare-features"
    )


def observation_of(config: Config, recording: Recording) -> str:
    """What the network sees. Raises ValueError for what the data do not have."""
    observation = config.network.observation
    if observation in ("pixels", "rendered") or (
        observation == "one_hot" and not recording.num_ids
    ):
        raise ValueError(
            f"network.observation is {observation}, which recorded "
            f"{'ids' if recording.num_ids else 'vectors'} do not have: choose fourier or "
            "coordinates, or one_hot for ids"
        )
    if recording.num_ids and recording.positions is None and observation != "one_hot":
        _log.info("%s: ids without positions are seen one-hot", config.transitions)
        return "one_hot"
    return observation


def inputs_of(recording: Recording, observation: str) -> np.ndarray:
    """The network's input for each id: one-hot, or its position scaled to -1 to 1."""
    if observation == "one_hot":
        return np.eye(recording.num_ids, dtype=np.float32)
    assert recording.positions is not None
    return id_positions.inputs_of(recording.positions)


def replay_and_law(problem: Problem) -> tuple[Any, Any]:
    """The replay that pairs are sampled from, or the law of all of them, as ALLO takes them."""
    recording = problem.recording
    if problem.agent.expectation == "exact":
        pairs = jnp.asarray(problem.pairs, jnp.float32)
        return (), allo_walks.law_of(problem.agent, pairs)
    rows = pair_replay.Step(*(jnp.asarray(x)[:, None] for x in recording[:3]))
    count = jnp.asarray(len(recording.left), jnp.int32)
    return uniform.Replay(rows, jnp.zeros((), jnp.int32), count), ()


def evaluate(config: Config, problem: Problem, *trained: *TrainedAgents) -> Evaluation:
    """Every seed's eigenvectors against those of the recorded pairs."""
    recording = problem.recording
    return host_scores.evaluate_by_measure(
        *trained,
        SCORE,
        partial(measures, problem),
        partial(table, problem),
        transitions=len(recording.left),
        trajectories=recording.trajectories,
        states=len(problem.points),
        kind="ids" if recording.num_ids else "vectors",
        true_eigenvalues=np.asarray(problem.truth.values).tolist(),
    )
