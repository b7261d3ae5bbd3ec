"""The state of the agent `allo`: how it begins, and what has been learned, read from it.

S numbered states, d features of which the first `num_features` are reported.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.spectral import directed, pairs
from jaxrl.spectral.learning.allo_config import Config, make_optimizer, outputs
from jaxrl.spectral.learning.objectives import Multipliers
from jaxrl.types import PyTree

NEVER = 2**31 - 1


class Learner(NamedTuple):
    """What gradient steps change."""

    params: PyTree
    opt_state: PyTree
    multipliers: Multipliers
    found_at: jax.Array  # int32; the step at which eigenvectors were found, NEVER until then
    steps: jax.Array  # int32; gradient steps so far


class State(NamedTuple):
    """The whole state of the agent."""

    learner: Learner
    walk: Any  # counts of pairs, exploration or reweighted, or a replay of pairs
    law: Any  # allo_walks.Law of all pairs; the visit ratio [S, T] of weighted samples; else ()
    inputs: Any  # [S, ...] the network's input for each state, or () where that is the observation
    readout: Any = ()  # Readout, where the walk is directed


class Readout(NamedTuple):
    """How left and right eigenvectors are made of the features; kept with a policy, as `params`."""

    params: directed.Ritz


def first_learner(config: Config, params: PyTree, num_states: int) -> Learner:
    """The learner before the first gradient step."""
    return Learner(
        params,
        make_optimizer(config).init(params),
        first_multipliers(config, num_states),
        jnp.asarray(NEVER, jnp.int32),
        jnp.zeros((), jnp.int32),
    )


def first_multipliers(config: Config, num_states: int) -> Multipliers:
    """Initial multipliers for as many features as the network has; duals that only tell λ are 0."""
    d = outputs(config, num_states)
    start = (config.dual_start if config.method == "allo" else 0.0) * jnp.eye(d)
    return Multipliers(start, jnp.asarray(config.barrier_start, jnp.float32), jnp.zeros((d, d)))


def first_readout(config: Config, num_states: int) -> Readout | tuple:
    """The readout before the first update: all zeros, or () where the walk is not directed."""
    if not config.directed:
        return ()
    size = 2 * outputs(config, num_states)
    zeros = jnp.zeros((size, min(num_states, size)), jnp.complex64)
    return Readout(directed.Ritz(zeros[0], zeros, zeros))


def is_settled(config: Config, state: State) -> jax.Array:
    """Whether the step size has fallen to 0 or, where it is constant, the budget is spent."""
    steps, found_at = state.learner.steps, state.learner.found_at
    last = jnp.minimum(found_at, config.gradient_steps - config.fall_steps) + config.fall_steps
    return steps >= last


def eigenvalues(config: Config, state: State) -> jax.Array:
    """λ `[num_features]` from the duals; other methods than ALLO measure them, see `objectives`."""
    duals = jnp.diag(state.learner.multipliers.duals)[: config.num_features]
    return -duals / (4 * config.graph_weight)


def features(network: Any, config: Config, state: State, obs: PyTree | None = None) -> jax.Array:
    """The learned eigenvectors `[..., num_features]` at `obs`, by default at all S states."""
    obs = state.inputs if obs is None else obs
    return network.apply(state.learner.params, obs)[..., : config.num_features]


def read_out(
    network: Any, config: Config, state: State, learner: Learner
) -> tuple[Readout, jax.Array]:
    """Left and right eigenvectors of the recorded walk within the span of the features.

    Also returns `directed.eigenpair_errors`, the angle by which each may still be wrong.
    """
    features = network.apply(learner.params, state.inputs)  # [S, 2, d]
    walk = pairs.estimate_chain(state.walk), 2 * state.law.weight[len(state.inputs) :]
    ritz = directed.ritz(features, *walk, config.discount)
    solution = ritz.values, *directed.read(features, ritz)
    return Readout(ritz), directed.eigenpair_errors(solution, *walk, outputs(config, len(features)))


def eigenpairs(
    network: Any, state: State, obs: PyTree | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """μ `[E]`, right and left eigenvectors `[..., E]` of a directed walk, all complex, at `obs`.

    E is the number of all features of both sides, the spare ones included, but at most that of
    states. Left vectors are densities relative to the law of states that end a pair.
    """
    features = network.apply(state.learner.params, state.inputs if obs is None else obs)
    ritz = state.readout.params
    return ritz.values, *directed.read(features, ritz)
