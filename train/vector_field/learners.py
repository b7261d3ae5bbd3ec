"""What the host asks of a learner of fields, whichever it is: Bayesian, or a sequence VAE."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.fields import FIELDS
from envs.vector_field.params import Params
from jaxrl import linalg
from jaxrl.agents import field_learner, sequence_vae
from jaxrl.dynamics import stimulation
from jaxrl.dynamics.latent_scores import affine_alignment, aligned_velocity
from jaxrl.dynamics.stimulation import Known
from jaxrl.networks import latent_filter, latent_information
from jaxrl.networks.latent import SequenceVAE
from jaxrl.types import Agent, AgentState


class Learner(NamedTuple):
    """Functions of what an agent has learned; states are the true ones, as far as it can tell.

    Axes: d latent dimensions, n channels, m inputs, T steps, K steps ahead.
    """

    make: Callable[[stimulation.Config, Params], Agent]
    """`(policy, world) -> agent`."""
    world: Callable[[AgentState], Params]
    """The world that an agent lives in."""
    velocity: Callable[[AgentState, jax.Array], jax.Array]
    """The learned field `[..., d]` at `z` `[..., d]`."""
    uncertainty: Callable[[AgentState, jax.Array], jax.Array]
    """Variance of a component of the learned field at `z` `[d]`."""
    forecast: Callable[[AgentState, jax.Array, jax.Array, int], jax.Array]
    """`(agent, obs [T, n], actions [T, m], K) -> [T, K + 1, n]`: after each step, what is expected
    to be observed at once (k = 0) and up to K steps later, given the actions, 0 beyond the last."""


FAMILIES = {
    "limit_cycle": ("radius_squared", "spin"),
    "double_limit_cycle": ("radius", "spin"),
    "duffing": ("damping", "linear"),
    "van_der_pol": ("damping", "stiffness"),
    "snowman": ("radius", "spin"),
}
"""The two parameters of each field that a family leaves unknown."""
FIRST_GUESS = 0.5
"""Of each of them; no field has it."""


def bayesian(env: VectorField, config: field_learner.Config, family: str = "") -> Learner:
    """Gaussian posterior, the decoder known; and all but two parameters of the field `family`."""
    world = field_learner.World(env.effect, env.emission)
    if family:
        member = lambda z, e: FIELDS[family](z, **dict(zip(FAMILIES[family], e, strict=True)))
        start = (FIRST_GUESS,) * len(FAMILIES[family])
        world = world._replace(family=member, family_start=start)

    def make(policy: stimulation.Config, params: Params) -> Agent:
        known = known_of(params, env.num_inputs)
        return field_learner.make(replace(config, policy=policy), world, known)

    return Learner(
        make=make,
        world=lambda agent: agent.known.numbers,
        velocity=partial(field_learner.velocity, config, world),
        uncertainty=partial(field_learner.uncertainty, config, world),
        forecast=partial(field_learner.forecast, config, world),
    )


def latent(env: VectorField, config: sequence_vae.Config, model: SequenceVAE) -> Learner:
    """A sequence VAE, all of it learned; its latent states are turned to the true ones for scores.

    As far as its decoder's C and b tell how: both decoders must be linear, or both log-linear.
    """

    def make(policy: stimulation.Config, params: Params) -> Agent:
        known = known_of(params, env.num_inputs)
        return sequence_vae.make(replace(config, policy=policy), model, known)

    def turned(agent: sequence_vae.State) -> tuple[jax.Array, jax.Array]:
        ours, true = agent.params["decoder"], agent.known.numbers.emission[0]
        return affine_alignment(ours["matrix"], ours["offset"], true.weight, true.bias)

    def velocity(agent: sequence_vae.State, z: jax.Array) -> jax.Array:
        return aligned_velocity(partial(model.velocity, agent.params), *turned(agent))(z)

    def uncertainty(agent: sequence_vae.State, z: jax.Array) -> jax.Array:
        turn, shift = turned(agent)
        there = jnp.matmul(turn, z) + shift
        variance = latent_information.uncertainty(
            model, agent.params, agent.known, agent.information, there, config.noise
        )
        return variance * jnp.sum(linalg.inverse(turn) ** 2) / len(z)

    return Learner(
        make=make,
        world=lambda agent: agent.known.numbers,
        velocity=velocity,
        uncertainty=uncertainty,
        forecast=lambda agent, *seen: latent_filter.forecast(
            model, agent.params, agent.known, *seen
        ),
    )


def known_of(params: Params, num_inputs: int) -> Known:
    """What a learner is told of a world."""
    bound = jnp.broadcast_to(params.action_bound, (num_inputs,))
    return Known(jnp.asarray(params.dt), -bound, bound, params, jnp.asarray(params.reach))
