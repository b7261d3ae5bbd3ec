"""What a configuration of `train.vector_field` makes: environment, learner, policies, models."""

import math
import re
from dataclasses import replace
from typing import Any, cast

import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.cart_pole_field import CartPoleField
from jaxrl import checks
from jaxrl.checks import INT32
from jaxrl.dynamics import bases
from jaxrl.dynamics.learners import field_learner
from jaxrl.dynamics.networks.decoder import Decoder
from jaxrl.dynamics.networks.fields import (
    ActionEffect,
    FourierField,
    LinearField,
    MLPField,
    RBFField,
)
from jaxrl.dynamics.networks.latent import SequenceVAE
from jaxrl.dynamics.networks.recognition import GRURecognition, LSTMRecognition, MLPRecognition
from jaxrl.dynamics.planning import stimulation, stimulation_config
from jaxrl.dynamics.state_space.model import Field, Network, StateSpace
from train.vector_field.config import BASES, SAMPLES_PER_UPDATE, Config
from train.vector_field.learners.bayesian import bayesian
from train.vector_field.learners.learner import Learner
from train.vector_field.learners.sequence_vae import latent
from train.vector_field.learners.state_space import state_space

ONLINE_GRIDS = {1: 15, 2: 11, 3: 6, 4: 4}
"""Bumps along each dimension of a grid, by the number of dimensions."""
ONLINE_UNITS = 100
"""Of a network, of which only the last layer is learned."""
ONLINE_SCALES = {"polynomial": 3.0}
"""`StateSpace.scale` where it is not the usual one: of a polynomial few weights matter, which are
large: with the usual prior bumps seemed likelier where fields are cubic."""


def policies_of(config: Config) -> dict[str, stimulation.Config]:
    """The policies of a run, by name."""
    return {name: policy(config, name) for name in config.policies}


def policy(config: Config, name: str) -> stimulation.Config:
    """The policy named `random`, `hold20`, `bang50`, `myopic`, `d_optimal` or the like."""
    settings = {"sequence_vae": config.vae, "state_space": config.online.agent}
    base_policy = settings.get(config.learner, config.bayesian).policy
    if name == "off":
        return replace(base_policy, kind="hold", strength=0.0)
    if name == "random":
        return replace(base_policy, kind="hold", hold_steps=1)
    if hold_match := re.fullmatch(r"(hold|bang)([1-9]\d*)", name):
        at_edge = hold_match[1] == "bang"
        if len(hold_match[2]) > 10 or int(hold_match[2]) > INT32:
            raise checks.OutOfRange("policies", f"is {name}, expected at most {INT32} steps")
        return replace(base_policy, kind="hold", hold_steps=int(hold_match[2]), at_edge=at_edge)
    if name == "myopic":
        return replace(base_policy, kind="myopic")
    objectives = name.split("+")
    if {*objectives} <= {*stimulation_config.OBJECTIVES}:
        stimulation_config.check_objectives(tuple(objectives))
        return replace(base_policy, kind="planned", objective=name)
    raise ValueError(
        f"policy {name!r} is unknown; expected off, random, hold20, bang50, myopic, d_optimal, "
        "a_optimal, disagreement, goal, rnd, or several of the last five joined by +"
    )


def make_env(config: Config) -> VectorField:
    """One environment for all fields; its parameters select one."""
    world = config.env
    if world.is_cart_pole:
        return CartPoleField(world.observation, world.noise)
    return VectorField(
        world.fields,
        world.observation,
        world.noise,
        world.channels,
        world.encoder,
        world.num_inputs,
        world.dimension,
    )


def make_learner(config: Config) -> Learner:
    """The learner, with the known parts of the world."""
    env = make_env(config)
    if config.learner == "sequence_vae":
        return latent(env, config.vae, make_model(config))
    if config.learner == "state_space":
        samples = config.run.total_updates(SAMPLES_PER_UPDATE) * SAMPLES_PER_UPDATE
        agent = replace(config.online.agent, capacity=samples)
        return state_space(env, agent, make_models(config), config.online.fields)
    settings = resize_bases(config.bayesian, env.dims + len(env.circular))
    if config.noise_is_known:
        settings = replace(
            settings, process_noise=config.env.process_noise, noise_strength=math.inf
        )
    family = config.env.fields[0] if config.learner == "family" else ""
    return bayesian(env, settings, family)


def learns_observation(config: Config) -> bool:
    """Whether the learner has a latent state of its own, in coordinates that nobody knows."""
    return config.learner in ("sequence_vae", "state_space")


def make_models(config: Config) -> tuple[StateSpace, ...]:
    """State-space models of experiments, one for each kind of field."""
    world, dims = config.env, config.env.dimension
    fields: dict[str, Field] = {
        "rbf": bases.Grid(ONLINE_GRIDS.get(dims, 3), dims, half_width=4.0),
        "fourier": bases.Fourier(150, dims, length=1.5),
        "polynomial": bases.Polynomial(3, dims, half_width=3.0),
        "mlp": Network(ONLINE_UNITS, dims),
        "linear": None,
    }
    is_count = jnp.full(world.channels, world.noise == "poisson")
    return tuple(
        StateSpace(
            is_count,
            dims,
            world.num_inputs,
            fields[name],
            config.online.effect,
            scale=ONLINE_SCALES.get(name, StateSpace.scale),
        )
        for name in config.online.fields
    )


def resize_bases(settings: field_learner.Config, dims: int) -> field_learner.Config:
    """Gives the bases of the settings so many dimensions."""
    sized = {name: replace(getattr(settings, name), dims=dims) for name in BASES}
    return replace(settings, **sized)


def make_model(config: Config) -> SequenceVAE:
    """The sequence VAE. Raises ValueError for parts that do not fit together."""
    model, world = config.model, config.env
    d, counts = model.grid.dims, world.noise == "poisson"
    layers = (model.hidden,)
    filters = {
        "gru": GRURecognition(d, model.hidden, layers, counts, model.y_scale),
        "lstm": LSTMRecognition(d, model.hidden, layers, counts, model.y_scale),
        "mlp": MLPRecognition(d, layers, counts, model.y_scale),
    }
    fields = {
        "rbf": RBFField(model.grid),
        "fourier": FourierField(replace(model.fourier, dims=d)),
        "mlp": MLPField(d),
        "linear": LinearField(d),
    }
    decoder = Decoder(
        d,
        world.channels,
        cast(Any, world.observation),  # which `check` has seen
        "poisson" if counts else "gaussian",
        bin_width=world.bin_width,
    )
    effect = ActionEffect(d, model.effect)
    return SequenceVAE(
        filters[model.recognition], fields[model.field], effect, decoder, model.members
    )
