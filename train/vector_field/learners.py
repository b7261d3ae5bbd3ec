"""One interface for the learners of vector fields: Bayesian, state-space model, sequence VAE."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.vector_field import VectorField
from envs.vector_field.fields import FIELDS
from envs.vector_field.params import Params
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.latent_scores import affine_alignment, aligned_velocity
from jaxrl.dynamics.learners import (
    field_learner,
    field_model,
    sequence_vae,
    state_space_acting,
    state_space_learner,
)
from jaxrl.dynamics.learners.sequence_vae import Knowledge
from jaxrl.dynamics.networks import latent_filter, latent_information
from jaxrl.dynamics.networks.latent import SequenceVAE
from jaxrl.dynamics.planning import stimulation
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.posterior import Posterior
from jaxrl.dynamics.state_space.model import StateSpace
from jaxrl.dynamics.state_space.online import choice
from jaxrl.dynamics.state_space.online.choice import Choice
from jaxrl.numerics import linalg
from jaxrl.types import Agent, AgentState, PyTree


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


FAMILIES = {
    "limit_cycle": ("radius_squared", "spin"),
    "double_limit_cycle": ("radius", "spin"),
    "duffing": ("damping", "linear"),
    "van_der_pol": ("damping", "stiffness"),
    "snowman": ("radius", "spin"),
}
"""The two unknown parameters of each field in its family."""
FIRST_GUESS = 0.5
"""Initial estimate of each of them; no field has this value."""


def bayesian(env: VectorField, config: field_learner.Config, family: str = "") -> Learner:
    """Gaussian posterior with a known decoder; with `family`, of two parameters of that field."""
    system = field_model.System(
        env.effect,
        env.emission,
        circular=env.circular,
        angular_channels=env.angular_channels,
    )
    if family:
        member = lambda z, e: FIELDS[family](z, **dict(zip(FAMILIES[family], e, strict=True)))
        start = (FIRST_GUESS,) * len(FAMILIES[family])
        system = system._replace(family=member, family_start=start)

    candidates = () if family else field_model.candidates(config)

    def make(policy: stimulation.Config, params: Params) -> Agent:
        constants = constants_of(params, env.num_inputs)
        return field_learner.make(replace(config, policy=policy), system, constants)

    return Learner(
        make=make,
        world=lambda agent: agent.known.numbers,
        velocity=partial(field_model.velocity, config, system),
        uncertainty=partial(field_model.uncertainty, config, system),
        forecast=partial(field_learner.forecast, config, system),
        latent_model=lambda agent: make_latent_model(
            partial(field_learner.beliefs, config, system, agent),
            partial(field_model.velocity, config, system, agent),
            lambda z: env.emission(z, agent.known.numbers)[0],
            field_learner.predictive_model(config, system, agent),
        ),
        bases=tuple(x.basis + " + linear" * x.linear for x in candidates)
        if len(candidates) > 1
        else (),
        basis=lambda agent: agent.place,
        information_gain=field_model.information_gain,
    )


def state_space(
    env: VectorField,
    config: state_space_learner.Config,
    models: Sequence[StateSpace],
    names: Sequence[str],
) -> Learner:
    """State-space models, with the names of their fields.

    Scores align the states of the chosen one with the true ones by an affine map, from the matrices
    C and offsets b of both, as the observation is linear, or log-linear with Poisson counts.
    """

    # Its own coordinates: the agent, and the map from the true states to its own.
    def make(policy: stimulation.Config, params: Params) -> Agent:
        constants = constants_of(params, env.num_inputs)
        return state_space_learner.make(replace(config, policy=policy), models, constants)

    def alignment(agent: state_space_learner.State) -> tuple[jax.Array, jax.Array]:
        matrix, offset = choice.read_out(agent.params.choice)
        world = agent.known.numbers
        true = world.emission[0]
        bias = true.bias + jnp.log(world.bin_width) if env.noise == "poisson" else true.bias
        return affine_alignment(matrix, offset, true.weight, bias)

    def own_velocity(agent: state_space_learner.State) -> Callable[[jax.Array], jax.Array]:
        return lambda z: choice.displace(models, agent.params.choice, z) / agent.known.dt

    def own_uncertainty(agent: state_space_learner.State) -> Callable[[jax.Array], jax.Array]:
        variance = partial(own_variance, models, agent.params.choice)
        return lambda z: variance(z) / agent.known.dt**2

    # The field and its variance in the coordinates of the true states.
    def velocity(agent: state_space_learner.State, z: jax.Array) -> jax.Array:
        return aligned_velocity(own_velocity(agent), *alignment(agent))(z)

    def uncertainty(agent: state_space_learner.State, z: jax.Array) -> jax.Array:
        matrix, offset = alignment(agent)
        place = linalg.matmul(matrix, z) + offset
        covariance = choice.covariance(models, agent.params.choice, place)
        back = linalg.inverse(matrix) / agent.known.dt
        return jnp.sum(linalg.matmul(back, covariance) * back) / len(z)

    return Learner(
        make=make,
        world=lambda agent: agent.known.numbers,
        velocity=velocity,
        uncertainty=uncertainty,
        forecast=lambda agent, *arguments, **options: choice.forecast(
            models, config.prediction, agent.params.choice, *arguments, **options
        ),
        latent_model=lambda agent: make_latent_model(
            partial(choice.beliefs, models, config.prediction, agent.params.choice),
            own_velocity(agent),
            partial(choice.emission_mean, models, agent.params.choice),
            state_space_acting.predictive_model(models, agent.params),
            own_uncertainty(agent),
        ),
        bases=tuple(names) if len(models) > 1 else (),
        basis=lambda agent: agent.params.choice.place,
    )


def own_variance(models: Sequence[StateSpace], chosen: Choice, z: jax.Array) -> jax.Array:
    """Variance of a component of the displacement of the model that counts at its `z` `[d]`.

    The mean over components. That with which plans are made falls to 0 far from where states were.
    """
    return jnp.trace(choice.covariance(models, chosen, z)) / len(z)


def latent(env: VectorField, config: sequence_vae.Config, model: SequenceVAE) -> Learner:
    """A sequence VAE; scores align its latent states with the true ones by an affine map.

    The map comes from the matrices C and offsets b of both decoders, which must both be linear or
    both log-linear.
    """

    def make(policy: stimulation.Config, params: Params) -> Agent:
        constants = constants_of(params, env.num_inputs)
        return sequence_vae.make(replace(config, policy=policy), model, constants)

    def alignment(agent: sequence_vae.State) -> tuple[jax.Array, jax.Array]:
        ours, true = agent.params["decoder"], agent.known.numbers.emission[0]
        return affine_alignment(ours["matrix"], ours["offset"], true.weight, true.bias)

    def velocity(agent: sequence_vae.State, z: jax.Array) -> jax.Array:
        return aligned_velocity(partial(model.velocity, agent.params), *alignment(agent))(z)

    def uncertainty(agent: sequence_vae.State, z: jax.Array) -> jax.Array:
        matrix, offset = alignment(agent)
        place = linalg.matmul(matrix, z) + offset
        variance = latent_information.uncertainty(
            model, agent.params, agent.known, agent.information, place, config.noise
        )
        return variance * jnp.sum(linalg.inverse(matrix) ** 2) / len(z)

    return Learner(
        make=make,
        world=lambda agent: agent.known.numbers,
        velocity=velocity,
        uncertainty=uncertainty,
        forecast=lambda agent, *arguments, **options: latent_filter.forecast(
            model, agent.params, agent.known, *arguments, **options
        ),
        latent_model=lambda agent: vae_model(
            model, agent.params, agent.known, config, agent.information
        ),
    )


def vae_model(
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    config: sequence_vae.Config,
    information: Posterior,
) -> LatentModel:
    """The functions of a sequence VAE in the coordinates of its own latent state."""
    knowledge = Knowledge(params, information, constants)
    return make_latent_model(
        partial(latent_filter.beliefs, model, params, constants),
        partial(model.velocity, params),
        lambda z: model.emission(params, z)[0],
        sequence_vae.predictive_model(config, model, knowledge),
    )


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
