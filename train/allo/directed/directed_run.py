"""Left and right eigenvectors of directed walks in a run of `train.allo`: measures and scores."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.spectral import directed, hitting_times, pairs
from jaxrl.spectral.learning import allo_state, allo_walks
from jaxrl.spectral.learning.allo_config import outputs
from jaxrl.types import AgentState
from train.allo.config import Config, learning_config, make_network
from train.allo.directed import directed_scores as scores
from train.allo.directed.directed_scores import EigenpairEstimate, Truth
from train.allo.problem import Problem
from train.host.scoring import scores as host_scores
from train.host.training import Evaluation, TrainedAgents


def learned_eigenpairs(
    network: Any, state: AgentState, inputs: Any, weight: Any = None
) -> EigenpairEstimate:
    """The eigenpairs of a learner; `weight` stands in where nothing was recorded."""
    arrivals = weight if weight is not None else 2 * state.law.weight[len(inputs) :]
    return EigenpairEstimate(*allo_state.eigenpairs(network, state, inputs), arrivals)


def measures(network: Any, state: AgentState, truth: Truth) -> dict[str, jax.Array]:
    """The numbers of a row of the record."""
    estimate = learned_eigenpairs(network, state, state.inputs)
    d = len(truth.values)
    values = estimate.values[:d]
    parts = {"eigenvalues": jnp.real(values), "eigenvalues_imag": jnp.imag(values)}
    return scores.similarities(estimate, truth) | parts


def snapshot(network: Any, d: int, state: AgentState) -> dict[str, jax.Array]:
    """The eigenvectors `[S, d]`, in parts that are real."""
    estimate = learned_eigenpairs(network, state, state.inputs)
    sides = {"right": estimate.right[:, :d], "left": estimate.left[:, :d]}
    parts = {"real": jnp.real, "imag": jnp.imag}
    return {f"{side}_{name}": part(x) for side, x in sides.items() for name, part in parts.items()}


def evaluate(config: Config, problem: Problem, *trained: *TrainedAgents) -> Evaluation:
    """Scores of every seed's eigenpairs and hitting times, and the data's ceiling."""
    truth, d = problem.truth, config.agent.num_features
    true_times = hitting_times.exact_times(problem.chain.toarray())

    def measure(agent: AgentState, key: jax.Array) -> dict[str, Any]:
        del key  # nothing is drawn
        estimate, chain = eigenpairs_and_chain(config, problem, agent)
        row = scores.seed_scores(estimate, chain, truth, true_times, config.agent.discount)
        return row if chain is None else row | convergence(config, estimate, chain)

    return host_scores.evaluate_by_measure(
        *trained,
        "similarity",
        measure,
        lambda content: scores.scores_table(content["seeds"], d),
        maze=problem.layout.name,
        states=problem.layout.num_states,
        true_eigenvalues=[[float(x.real), float(x.imag)] for x in np.asarray(truth.values)],
    )


def convergence(config: Config, estimate: EigenpairEstimate, chain: np.ndarray) -> dict[str, Any]:
    """The angle by which an eigenvector may still be wrong, and whether it is small."""
    agent = config.agent
    transitions, arrivals = (jnp.asarray(x, jnp.float32) for x in (chain, estimate.weight))
    num_features = outputs(agent, len(chain))
    errors = directed.eigenpair_errors(estimate[:3], transitions, arrivals, num_features)
    angle = float(jnp.max(errors[: agent.num_features]))
    return {"eigenpair_angle": angle, "is_converged": angle < directed.CONVERGED}


def eigenpairs_and_chain(
    config: Config, problem: Problem, agent: AgentState
) -> tuple[EigenpairEstimate, np.ndarray | None]:
    """Eigenpairs of one seed and its recorded transition frequencies, None for a policy."""
    network = make_network(config, problem.layout.num_states)
    inputs = jnp.asarray(problem.inputs)
    law = np.asarray(allo_walks.pair_law(learning_config(config), agent))
    has_data = bool(np.isfinite(law).all()) and law.sum() > 0
    weight = None if has_data else problem.truth.weight
    estimate = jax.jit(lambda agent: learned_eigenpairs(network, agent, inputs, weight))(agent)
    return estimate, np.asarray(pairs.estimate_chain(agent.walk), float) if has_data else None
