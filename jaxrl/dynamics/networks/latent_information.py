"""Fisher information of the parameters of a `SequenceVAE`'s field, along its filtered states.

It is computed as if the latent states were observed. Covariances are in units of `noise`, the
process noise per unit of time that is assumed before any data. Axes: d latent dimensions,
p parameters of the field, T steps.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxrl.dynamics import bases, posterior, rbf
from jaxrl.dynamics.networks.fields import FourierField, RBFField
from jaxrl.dynamics.networks.latent import SequenceVAE, Window
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.posterior import Posterior
from jaxrl.numerics import linalg
from jaxrl.types import PyTree

Number = float | jax.Array


def design(model: SequenceVAE, params: PyTree, constants: Constants, z: jax.Array) -> jax.Array:
    """Derivative of the next state after `z` `[d]` by the field's parameters: `[p]` or `[d, p]`."""
    if isinstance(model.field, RBFField):
        return constants.dt * rbf.features(model.field.grid, z)
    if isinstance(model.field, FourierField):
        return constants.dt * bases.features(model.field.basis, z)
    flat, restore = ravel_pytree(jax.tree.map(lambda x: x[0], params["field"]))
    return constants.dt * jax.jacrev(lambda w: model.field.apply(restore(w), z))(flat)


def prior(
    model: SequenceVAE, params: PyTree, constants: Constants, prior_speed: Number, noise: Number
) -> Posterior:
    """The prior, in which a component of the field has root mean square `prior_speed`."""
    at_centre = design(model, params, constants, jnp.zeros(model.latent)) / constants.dt
    shared = at_centre.ndim == 1
    squares = jnp.sum(at_centre**2) / (1 if shared else model.latent)
    noise = noise * constants.dt
    relative = prior_speed**2 / squares / noise
    return posterior.prior(at_centre.shape[-1], model.latent, relative, noise, shared=shared)


def update(
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    information: Posterior,
    means: jax.Array,
    noise: Number,
) -> Posterior:
    """Updates the covariance alone, after transitions from the states `means` `[T, d]`."""
    relative = relative_noise(model, params, noise)

    def step(information: Posterior, z: jax.Array):
        new_information = posterior.update(
            information, design(model, params, constants, z), jnp.zeros(model.latent), relative
        )
        return new_information._replace(shape=information.shape, rate=information.rate), None

    return jax.lax.scan(step, information, means)[0]


def recompute(
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    window: Window,
    prior_speed: Number,
    noise: Number,
) -> Posterior:
    """The information of the valid steps of `window`, at the states as they are filtered now."""
    gram = gather(model, params, constants, window)
    return to_posterior(model, params, constants, gram, prior_speed, noise)


def gather(model: SequenceVAE, params: PyTree, constants: Constants, window: Window) -> jax.Array:
    """Σ xᵀ x `[p, p]` over the rows x of the design at the valid steps of `window`.

    Steps at which nothing was observed do not count.
    """
    _, belief = model.encode(params, model.initial_carry(), window, constants.dt)
    valid = window.valid
    if window.observed is not None:
        valid = valid & jnp.any(window.observed, axis=-1)
    rows = jax.vmap(partial(design, model, params, constants))(belief.mean)  # [T, p] or [T, d, p]
    weight = valid.reshape(-1, *[1] * (rows.ndim - 1)).astype(rows.dtype)
    rows = (rows * weight).reshape(-1, rows.shape[-1])
    return linalg.matmul(rows.T, rows)


def to_posterior(
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    gram: jax.Array,
    prior_speed: Number,
    noise: Number,
) -> Posterior:
    """The posterior after all data whose design has the `gram` `[p, p]`, see `gather`."""
    start = prior(model, params, constants, prior_speed, noise)
    precision = jnp.diag(1 / jnp.diag(start.root) ** 2)
    precision = precision + gram / relative_noise(model, params, noise)
    return start._replace(root=linalg.inverse_root(precision))


def relative_noise(model: SequenceVAE, params: PyTree, noise: Number) -> jax.Array:
    """The model's process noise over `noise`; it includes the error of the model's filter."""
    return jnp.mean(model.noise(params)) / noise


def uncertainty(
    model: SequenceVAE,
    params: PyTree,
    constants: Constants,
    information: Posterior,
    z: jax.Array,
    noise: Number,
) -> jax.Array:
    """Variance of a component of the velocity at `z` `[d]` under the uncertainty of the field."""
    relative = posterior.predictive_variance(information, design(model, params, constants, z))
    return jnp.mean(relative) * noise / constants.dt
