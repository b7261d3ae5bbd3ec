"""The largest likelihood of a state-space model that is linear and seen by Gaussian channels.

There expectation maximisation (`linear_gaussian`) takes steps that no learning rate limits, on all
episodes at once; gradients of random windows stop short of where it ends. Letters: E episodes, T
steps, n channels, d dimensions of the state.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics import linear_gaussian
from jaxrl.dynamics.linear_gaussian import Episodes
from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.model import Params, StateSpace
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

ROUNDS = 100
"""At most, of the fit of a linear-Gaussian model."""
LEAST = 1e-6
"""Variance of the states added in each direction, in units of the largest."""


def is_linear_gaussian(model: StateSpace) -> bool:
    """Whether `linear_fit` is for this model, whose `is_count` is not traced."""
    is_linear = model.field is None and model.effect == "linear"
    return is_linear and not np.asarray(model.is_count).any()


def linear_fit(model: StateSpace, record: Record, rounds: int = ROUNDS) -> Params:
    """Parameters for episodes `[E, T]`, in coordinates of states of mean 0 and covariance I.

    The noise of a step is independent there, as the model has it. Raises ValueError for more
    dimensions than channels.
    """
    # A constant as a last input: without one the mean of inputs would have to be learned by that
    # of states, which takes expectation maximisation hundreds of rounds.
    ones = jnp.ones((*record.u.shape[:2], 1), record.u.dtype)
    u = jnp.concatenate([record.u, ones], axis=-1)
    episodes = Episodes(record.y, u, record.observed & record.valid[..., None], record.valid)
    start = linear_gaussian.first_guess(episodes, model.dims)
    params, _ = linear_gaussian.fit(start, episodes, rounds)
    states = linear_gaussian.smooth_all(params, episodes)
    centre, covariance = _moments(states, record.valid)
    root = linalg.root(covariance)
    whiten = linalg.inverse(root)
    noise = matmul(matmul(whiten, params.process), whiten.T)
    variances, vectors = linalg.eigh(noise)
    forward, backward = matmul(vectors.T, whiten), matmul(root, vectors)
    eye, d = jnp.eye(model.dims), model.dims
    effect, constant = params.effect[:, :-1], params.effect[:, -1]
    return Params(
        transition=matmul(matmul(forward, params.transition), backward) - eye,
        drift=matmul(forward, matmul(params.transition, centre) + constant - centre),
        weights=jnp.zeros((0, d)),
        layer=(),
        effect=matmul(forward, effect),
        effect_layers=(),
        log_process=0.5 * jnp.log(jnp.maximum(variances, LEAST)),
        matrix=matmul(params.matrix, backward),
        offset=params.offset + matmul(params.matrix, centre),
        log_noise=0.5 * jnp.log(params.noise),
        first_mean=jnp.zeros(d),
        first_log_deviation=jnp.zeros(d),
    )


def _moments(
    states: linear_gaussian.SmoothedStates, valid: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Mean `[d]` and covariance `[d, d]` of the states at all steps that are `valid` `[E, T]`."""
    weight = valid / jnp.maximum(jnp.sum(valid), 1)
    mean = jnp.sum(weight[..., None] * states.mean, axis=(0, 1))
    deviation = (states.mean - mean[None, None]) * jnp.sqrt(weight)[..., None]
    flat = deviation.reshape(-1, len(mean))
    mean_covariance = jnp.sum(weight[..., None, None] * states.covariance, axis=(0, 1))
    covariance = matmul(flat.T, flat) + mean_covariance
    return mean, covariance + LEAST * jnp.trace(covariance) * jnp.eye(len(mean))
