"""Potentials and options for learners, from the eigenvectors that a run of `train.allo` learned.

Axes: S states, d features, G goals, R learners of each, O options.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.grid.env import Params
from jaxrl.spectral import laplacian
from jaxrl.spectral.control import options, potentials
from jaxrl.spectral.control.options import Options
from jaxrl.spectral.learning import allo_state, allo_walks
from jaxrl.types import AgentState
from train.allo.config import Config, learning_config, make_network
from train.allo.directed import directed_run, directed_scores
from train.allo.problem import Problem


class Representation(NamedTuple):
    """The eigenvectors and eigenvalues that one training seed learned."""

    features: jax.Array  # [S, d]
    eigenvalues: jax.Array  # [d] 1 - μ of one step of the walk
    times: jax.Array | None = None  # [S, S] hitting times from row to column, of a directed walk


class Guidance(NamedTuple):
    """Potentials and options, from which each arm takes its own."""

    potentials: dict[str, jax.Array]  # each [G, R, S]: "learned", "true", "", which is 0, and
    # "symmetric" for directed walks
    options: Options  # [R, O, S]


def make_guidance(
    params: Params,
    representations: Sequence[Representation],
    goals: np.ndarray,
    distances: np.ndarray,
    num_learners: int,
) -> Guidance:
    """Learner r gets what was learned by the training seed with the index r modulo their number.

    `goals` `[G]` are states, `distances` those of `tasks.goal_distances`.
    """
    of_learner = np.arange(num_learners) % len(representations)
    reaches = np.isfinite(distances[goals])
    near = jnp.stack([nearness(one, goals, reaches) for one in representations], axis=1)
    exact = jnp.repeat(jnp.asarray(true_nearness(distances[goals]))[:, None], num_learners, axis=1)
    # learned: from [G, seeds, S]
    tables = {"learned": near[:, of_learner], "true": exact, "": jnp.zeros_like(exact)}
    if representations[0].times is not None:
        symmetric = [nearness(one._replace(times=None), goals, reaches) for one in representations]
        tables["symmetric"] = jnp.stack(symmetric, axis=1)[:, of_learner]
    seed_options = [
        options.eigenoptions(one.features, params.successor, params.probability)
        for one in representations
    ]
    return Guidance(tables, jax.tree.map(lambda *x: jnp.stack(x)[of_learner], *seed_options))


_features = jax.jit(allo_state.features, static_argnums=0)
"""One program for the agents of all seeds."""


def represent(config: Config, problem: Problem, agent: AgentState) -> Representation:
    """Features of all states, and eigenvalues of one step of the walk.

    Of a directed walk hitting times, too; the features are then those of its self-adjoint part.
    Raises ValueError for a directed policy without recorded transitions.
    """
    learning = learning_config(config)
    if learning.directed:
        spectrum, chain = directed_run.eigenpairs_and_chain(config, problem, agent)
        if chain is None:
            raise ValueError("a directed policy has no transitions: give the run that it is from")
        times = directed_scores.times_of(spectrum)
        return Representation(*directed_scores.symmetric_eigenpairs(chain, spectrum), times)
    network = make_network(config, problem.layout.num_states)
    # not committed to a device, or later code compiles twice
    features = np.asarray(_features(network, learning, agent))
    if learning.method == "allo":
        spectrum = allo_state.eigenvalues(learning, agent)
    else:  # there are no multipliers to read them from
        spectrum = rayleigh_quotients(features, np.asarray(allo_walks.pair_law(learning, agent)))
    values = one_step_eigenvalues(np.asarray(spectrum), learning.discount, config.env.walk_steps)
    return Representation(jnp.asarray(features), jnp.asarray(values, jnp.float32))


def rayleigh_quotients(features: np.ndarray, law: np.ndarray) -> np.ndarray:
    """Rayleigh quotients ½ E[(u(s) - u(s'))²] / E[u(s)²] over pairs of the law `[S, S]`, `[d]`.

    0 for features that are 0.
    """
    features, law = features.astype(float), law.astype(float)
    square, first, second = features**2, law.sum(axis=1), law.sum(axis=0)
    energy = (first + second) @ square / 2 - np.sum(features * (law @ features), axis=0)
    return energy / np.maximum(first @ square, np.finfo(np.float32).tiny)


def one_step_eigenvalues(values: np.ndarray, discount: float, walk_steps: int) -> np.ndarray:
    """1 - μ of the walk from λ `[d]` of pairs sampled from walks of `walk_steps` transitions.

    The inverse of `laplacian.horizon_lambda`, which falls with μ for 0 <= μ <= 1; λ outside of its
    range there are clipped to it. Exact for symmetric walks, approximate for others.
    """
    gaps = np.linspace(0, 1, 2001) ** 2  # denser near 0, where the slow features are
    sampled = laplacian.horizon_lambda(1 - gaps, discount, walk_steps + 1)
    return np.interp(values, sampled, gaps)


def nearness(representation: Representation, goals: np.ndarray, reaches: np.ndarray) -> jax.Array:
    """The potential of every goal, `[G, S]`, from learned hitting times or commute times.

    Both by their square roots: of the commute time that is the distance in the embedding. For
    `reaches`, bool `[G, S]`, see `within_reach`.
    """

    def of_goal(goal: jax.Array, reach: jax.Array) -> jax.Array:
        if representation.times is not None:
            distance = jnp.sqrt(representation.times[:, goal])
        else:
            distance = potentials.commute_distance(*representation[:2], goal)
        return potentials.from_distance(within_reach(distance, reach))

    return jax.vmap(of_goal)(jnp.asarray(goals), jnp.asarray(reaches))


def within_reach(distance: jax.Array, reaches: jax.Array) -> jax.Array:
    """Distances to a goal, `[S]`, of which none is larger than those from where it can be reached.

    Those from other parts of a space are far larger, and its potential would be flat beside them.
    """
    return jnp.minimum(distance, jnp.max(distance, where=reaches, initial=0.0))


def true_nearness(distances: np.ndarray) -> np.ndarray:
    """The potential from the fewest moves to each goal, both `[G, S]`.

    States that cannot reach a goal get the potential of the farthest that can.
    """
    finite = np.isfinite(distances)
    farthest = np.max(distances, axis=1, keepdims=True, where=finite, initial=1)
    return -np.where(finite, distances, farthest) / farthest
