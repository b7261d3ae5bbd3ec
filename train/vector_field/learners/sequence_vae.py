"""A learner that is a sequence VAE, whose coordinates are its own."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.dynamics.latent_scores import affine_alignment, aligned_velocity
from jaxrl.dynamics.learners import sequence_vae
from jaxrl.dynamics.learners.sequence_vae import Knowledge
from jaxrl.dynamics.networks import latent_filter, latent_information
from jaxrl.dynamics.networks.latent import SequenceVAE
from jaxrl.dynamics.planning import stimulation
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.posterior import Posterior
from jaxrl.numerics import linalg
from jaxrl.types import Agent, PyTree
from train.vector_field.learners.learner import (
    LatentModel,
    Learner,
    constants_of,
    make_latent_model,
)


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
