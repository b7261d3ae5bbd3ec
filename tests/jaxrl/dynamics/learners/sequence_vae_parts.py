"""A small sequence VAE, its configuration and what is known."""

from functools import partial

import jax.numpy as jnp

from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.learners.sequence_vae import Config
from jaxrl.dynamics.networks.decoder import Decoder
from jaxrl.dynamics.networks.fields import ActionEffect, RBFField
from jaxrl.dynamics.networks.latent import SequenceVAE
from jaxrl.dynamics.networks.recognition import GRURecognition
from jaxrl.dynamics.planning import icem, stimulation
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.rbf import Grid

D, CHANNELS, DT, W = 2, 4, 0.1, 5
GRID = Grid(per_axis=4)
MODEL = SequenceVAE(
    GRURecognition(D, hidden=6, features=(4,)),
    RBFField(GRID),
    ActionEffect(D, "linear"),
    Decoder(D, CHANNELS),
)
ELBO = sequence_elbo.Config(samples=2, k_steps=2)
PLANNER = icem.Config(horizon=4, candidates=8, iterations=1, elites=2)
CONFIG = Config(
    elbo=ELBO,
    window=W,
    older_windows=2,
    capacity=20,
    gradient_steps=2,
    learning_rate=0.02,
    max_norm=0.5,
    field_decay=0.3,
    schedule="linear",
    warmup=1,
    period=4,
    recount_steps=4,
    recount_over=6,
    policy=stimulation.Config(planner=PLANNER, replan_steps=3),
)
KNOWN = Constants(jnp.array(DT), -jnp.ones(D), jnp.ones(D), ())
single = partial(jnp.asarray, dtype=jnp.float32)
