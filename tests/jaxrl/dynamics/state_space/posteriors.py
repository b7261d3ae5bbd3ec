"""Posteriors of a field for records of small models."""

import jax
import numpy as np

from jaxrl.dynamics.state_space.field_posterior import FieldPosterior, Prior, field_posterior
from jaxrl.dynamics.state_space.information import Information, gather
from jaxrl.dynamics.state_space.model import Params, StateSpace

PRIOR = Prior(weights=0.5, linear=1.5, effect=4.0, log_process=0.7, channels=100.0)
collect = jax.jit(gather, static_argnames="with_channels")
MIXED = (True, False, True, False)


def posterior_of(model: StateSpace, params: Params, total: Information) -> FieldPosterior:
    """In double precision, as NumPy's arrays."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, field_posterior(model, params, total, PRIOR))


def covariance_of(posterior: FieldPosterior) -> np.ndarray:
    root = np.asarray(posterior.root, float)
    return root @ root.T


def deviations(features: int, rows: int) -> np.ndarray:
    """The standard deviations of the prior in two dimensions with two inputs."""
    move = [*[0.5] * 2 * features, *[1.5] * 6, *[4.0] * 4]
    return np.array([*[100.0] * 3 * rows, 0.7, 0.7, *move])
