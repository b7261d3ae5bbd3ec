"""What every learner of vector fields has: functions of its state, and of what it makes of data."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.vector_field.params import Params
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.planning import stimulation
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.types import Agent, AgentState


class Learner(NamedTuple):
    """Functions of an agent's state; latent states are in the coordinates of the true ones.

    Axes: d latent dimensions, n channels, m inputs, T steps, K steps ahead.
    """

    make: Callable[[stimulation.Config, Params], Agent]
    """`(policy, world) -> agent`."""
    world: Callable[[AgentState], Params]
    """The parameters of the world of an agent."""
    velocity: Callable[[AgentState, jax.Array], jax.Array]
    """The learned field `[..., d]` at `z` `[..., d]`."""
    uncertainty: Callable[[AgentState, jax.Array], jax.Array]
    """Variance of a component of the learned field at `z` `[d]`."""
    forecast: Callable[..., jax.Array]
    """`(agent, obs [T, n], actions [T, m], K, observed) -> [T, K + 1, n]`: after each step, the
    expected observations now (k = 0) and up to K steps ahead, given the actions, and 0 after the
    last; `observed`, bool `[T, n]`, may be left out."""
    latent_model: Callable[[AgentState], "LatentModel"]
    """What it makes of its data, in coordinates of its own."""
    bases: tuple[str, ...] = ()
    """What the field may be a sum of, where the learner chooses."""
    basis: Callable[[AgentState], jax.Array] = lambda _: jnp.zeros((), jnp.int32)
    """The place among them of what it has chosen, int32."""
    information_gain: Callable[[AgentState, AgentState], jax.Array] | None = None
    """`(before, after) -> nats` gained about the field from the samples in between; None where they
    are counted anew while the latent space changes."""


class LatentModel(NamedTuple):
    """Functions of one agent, in the coordinates of its own latent state."""

    beliefs: Callable[..., Belief]
    """`(obs [T, n], actions [T, m], observed) -> mean [T, d] and covariance [T, d, d]`: the
    filtered states; `observed`, bool `[T, n]`, is false where missing, None: nowhere."""
    velocity: Callable[[jax.Array], jax.Array]
    """The learned field, `[..., d] -> [..., d]`."""
    emission_mean: Callable[[jax.Array], jax.Array]
    """The mean observation, `[d] -> [n]`."""
    step: Callable[[jax.Array, jax.Array], jax.Array]
    """The expected next state, `(z [d], u [m]) -> [d]`."""
    planning: Callable[[], PredictiveModel]
    """What plans are made with; may take seconds the first time."""
    uncertainty: Callable[[jax.Array], jax.Array] | None = None
    """Variance of a component of the learned field at `z` `[d]`; None: that of `planning`."""
    state_space: "StateSpaceFunctions | None" = None


class StateSpaceFunctions(NamedTuple):
    """What only a state-space model has: functions of all of a record, and of chance."""

    is_count: np.ndarray
    """bool `[n]`: which channels count."""
    smooth: Callable[..., Belief]
    """As `LatentModel.beliefs`, given all observations."""
    quantiles: Callable[..., jax.Array]
    """`(obs [T, n], actions [T, m], K, levels, observed) -> [T, K + 1, Q, n]`."""
    simulate: Callable[..., tuple[jax.Array, jax.Array]]
    """`(z [d] or None, actions [T, m], key, N) -> (states [N, T, d], observations [N, T, n])`."""


def make_latent_model(
    beliefs: Callable[..., Belief],
    velocity: Callable[[jax.Array], jax.Array],
    emission_mean: Callable[[jax.Array], jax.Array],
    planning: PredictiveModel,
    uncertainty: Callable[[jax.Array], jax.Array] | None = None,
) -> LatentModel:
    """Joins the functions of a learner whose model for plans exists already."""
    make_planning = lambda: planning
    return LatentModel(beliefs, velocity, emission_mean, planning.step, make_planning, uncertainty)


def constants_of(params: Params, num_inputs: int) -> Constants:
    """What a learner knows of a world in advance."""
    bound = jnp.broadcast_to(params.action_bound, (num_inputs,))
    return Constants(jnp.asarray(params.dt), -bound, bound, params, jnp.asarray(params.reach))
