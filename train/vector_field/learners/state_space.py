"""A learner of experiments that fits state-space models, whose coordinates are its own."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.dynamics.latent_scores import affine_alignment, aligned_velocity
from jaxrl.dynamics.learners import state_space_acting, state_space_learner
from jaxrl.dynamics.planning import stimulation
from jaxrl.dynamics.state_space.model import StateSpace
from jaxrl.dynamics.state_space.online import choice
from jaxrl.dynamics.state_space.online.choice import Choice
from jaxrl.numerics import linalg
from jaxrl.types import Agent
from train.vector_field.learners.learner import Learner, constants_of, make_latent_model


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

    def make(policy: stimulation.Config, params: Params) -> Agent:
        constants = constants_of(params, env.num_inputs)
        return state_space_learner.make(replace(config, policy=policy), models, constants)

    return Learner(
        make=make,
        world=lambda agent: agent.known.numbers,
        velocity=partial(velocity, env, models),
        uncertainty=partial(uncertainty, env, models),
        forecast=lambda agent, *arguments, **options: choice.forecast(
            models, config.prediction, agent.params.choice, *arguments, **options
        ),
        latent_model=lambda agent: make_latent_model(
            partial(choice.beliefs, models, config.prediction, agent.params.choice),
            own_velocity(models, agent),
            partial(choice.emission_mean, models, agent.params.choice),
            state_space_acting.predictive_model(models, agent.params),
            own_uncertainty(models, agent),
        ),
        bases=tuple(names) if len(models) > 1 else (),
        basis=lambda agent: agent.params.choice.place,
    )


def alignment(env: VectorField, agent: state_space_learner.State) -> tuple[jax.Array, jax.Array]:
    """The affine map, matrix and offset, from the true states to those of the model."""
    matrix, offset = choice.read_out(agent.params.choice)
    world = agent.known.numbers
    true = world.emission[0]
    bias = true.bias + jnp.log(world.bin_width) if env.noise == "poisson" else true.bias
    return affine_alignment(matrix, offset, true.weight, bias)


def own_velocity(
    models: Sequence[StateSpace], agent: state_space_learner.State
) -> Callable[[jax.Array], jax.Array]:
    """The learned field in the coordinates of the model."""
    return lambda z: choice.displace(models, agent.params.choice, z) / agent.known.dt


def own_uncertainty(
    models: Sequence[StateSpace], agent: state_space_learner.State
) -> Callable[[jax.Array], jax.Array]:
    """Variance of a component of the learned field, in the coordinates of the model."""
    variance = partial(own_variance, models, agent.params.choice)
    return lambda z: variance(z) / agent.known.dt**2


def velocity(
    env: VectorField, models: Sequence[StateSpace], agent: state_space_learner.State, z: jax.Array
) -> jax.Array:
    """The learned field in the coordinates of the true states."""
    return aligned_velocity(own_velocity(models, agent), *alignment(env, agent))(z)


def uncertainty(
    env: VectorField, models: Sequence[StateSpace], agent: state_space_learner.State, z: jax.Array
) -> jax.Array:
    """Variance of a component of the learned field, in the coordinates of the true states."""
    matrix, offset = alignment(env, agent)
    place = linalg.matmul(matrix, z) + offset
    covariance = choice.covariance(models, agent.params.choice, place)
    back = linalg.inverse(matrix) / agent.known.dt
    return jnp.sum(linalg.matmul(back, covariance) * back) / len(z)


def own_variance(models: Sequence[StateSpace], chosen: Choice, z: jax.Array) -> jax.Array:
    """Variance of a component of the displacement of the model that counts at its `z` `[d]`.

    The mean over components. That with which plans are made falls to 0 far from where states were.
    """
    return jnp.trace(choice.covariance(models, chosen, z)) / len(z)
