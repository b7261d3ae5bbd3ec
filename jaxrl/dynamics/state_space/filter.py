"""The filter of a state-space model, and the marginal likelihood of what it filters.

Each observation moves the state to the mode of its posterior, found by Newton's method, with the
curvature there as precision: an iterated extended Kalman filter for Gaussian channels (Bell &
Cathey 1993), Laplace's approximation for counts (Paninski et al. 2010). Both are exact where
everything is linear and Gaussian. Differentiable: fits follow the gradient of the likelihood.

Letters: T steps, n channels, d dimensions of the state, m inputs.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space.model import Params, StateSpace, step
from jaxrl.dynamics.state_space.small_matrices import inverse
from jaxrl.numerics.linalg import matmul

Prediction = Literal["extended", "cubature"]
NEWTON_STEPS = 3
FARTHEST = 20.0
"""Components of a predicted mean are kept within ± this: parameters may be bad on the way."""
WIDEST = 50.0
"""A predicted covariance of a larger trace is scaled down to it, with that of both steps."""


def clip_state(z: jax.Array) -> jax.Array:
    """A state with each component within ±`FARTHEST`."""
    return jnp.clip(z, -FARTHEST, FARTHEST)


class Record(NamedTuple):
    """What was recorded in one episode, or in a window of it."""

    y: jax.Array  # [T, n], finite numbers where missing
    u: jax.Array  # [T, m]; u_t moves the state from t to t + 1
    observed: jax.Array  # bool [T, n]; false where missing and in padding
    valid: jax.Array  # bool [T]; false in padding, which is at the end


class FilteredStates(NamedTuple):
    """Beliefs and likelihood of each step of a record."""

    log_likelihood: jax.Array  # [T] log p(y_t | y_0 .. y_{t-1})
    before: Belief  # [T, ...] of the state, given the past
    belief: Belief  # [T, ...] given the present, too
    cross: jax.Array  # [T, d, d] covariance of the state with the next one, given the present


def filter_states(
    model: StateSpace, params: Params, record: Record, prediction: Prediction = "extended"
) -> FilteredStates:
    """Beliefs and log-likelihood of every step of a record.

    In padding the log-likelihood is 0, and the belief is what is predicted after the last step.
    """

    def advance(before: Belief, now: Record) -> tuple[Belief, FilteredStates]:
        belief, log_likelihood = correct(model, params, before, now.y, now.observed)
        after, cross = predict(model, params, belief, now.u, prediction)
        after = jax.tree.map(lambda new, old: jnp.where(now.valid, new, old), after, before)
        log_likelihood = jnp.where(now.valid, log_likelihood, 0.0)
        return after, FilteredStates(log_likelihood, before, belief, cross)

    return jax.lax.scan(advance, first_belief(params), record)[1]


def first_belief(params: Params) -> Belief:
    """What is known of the state before a record begins."""
    return Belief(params.first_mean, jnp.diag(jnp.exp(2 * params.first_log_deviation)))


def correct(
    model: StateSpace, params: Params, before: Belief, y: jax.Array, observed: jax.Array
) -> tuple[Belief, jax.Array]:
    """The belief after an observation, and log p(y | past).

    The last by Laplace's approximation: log p(y | z) - (z - m)ᵀ P⁻¹ (z - m) / 2 - log |I + P S| / 2
    at the mode z, with m and P the moments of `before` and S what the observation tells of the
    state (`_information`). The mode is differentiated implicitly: its derivative is the covariance
    after the observation times that of the slope there, so that nothing of the search is kept. The
    search is Newton's after a first step with the curvatures of `channels.chord`.
    """
    precision, log_volume = inverse(before.covariance)
    squares = products_of_columns(params.matrix)
    z = before.mean
    for i in range(NEWTON_STEPS):
        z = jax.lax.stop_gradient(z)
        response = channels.response(model.is_count, params, z, y, observed)
        channel_curvature = response.curvature if i else channels.chord(model.is_count, response, y)
        curvature = precision + _information(squares, channel_curvature)
        covariance, _ = inverse(jax.lax.stop_gradient(curvature))
        pull = matmul(precision, z - before.mean)
        z = z + matmul(covariance, matmul(response.slope, params.matrix) - pull)
    response = channels.response(model.is_count, params, z, y, observed)
    covariance, log_curvature = inverse(precision + _information(squares, response.curvature))
    change = z - before.mean
    cost = jnp.sum(change * matmul(precision, change)) + log_volume + log_curvature
    return Belief(z, covariance), jnp.sum(response.log_likelihood) - 0.5 * cost


def products_of_columns(matrix: jax.Array) -> jax.Array:
    """C_i C_j `[n, d²]`, by which curvatures `[n]` make S in one product."""
    return (matrix[:, :, None] * matrix[:, None]).reshape(len(matrix), -1)


def _information(squares: jax.Array, curvature: jax.Array) -> jax.Array:
    """S `[d, d]`, what an observation with these curvatures `[n]` tells of the state."""
    size = round(squares.shape[1] ** 0.5)
    return matmul(curvature, squares).reshape(size, size)


def predict(
    model: StateSpace, params: Params, belief: Belief, u: jax.Array, prediction: Prediction
) -> tuple[Belief, jax.Array]:
    """The belief one step later, and the covariance `[d, d]` of the state with the next one.

    extended: by the Jacobian at the mean. cubature: by 2 d points on the sphere of the covariance
    (Arasaratnam & Haykin 2009).
    """
    move = lambda z: step(model, params, z, u)
    mean, covariance = belief
    size = len(mean)
    if prediction == "extended":
        after = move(mean)
        unit = jnp.eye(size, dtype=mean.dtype)
        jacobian = jax.vmap(lambda e: jax.jvp(move, (mean,), (e,))[1])(unit).T
        cross = matmul(covariance, jacobian.T)
        spread = matmul(jacobian, cross)
    else:
        points = size**0.5 * jnp.linalg.cholesky(covariance).T
        up, down = (jax.vmap(move)(mean[None] + sign * points) for sign in (1, -1))
        after = jnp.mean(jnp.concatenate([up, down]), axis=0)
        cross = matmul(points.T, up - down) / (2 * size)
        deviations = jnp.concatenate([up, down]) - after[None]
        spread = matmul(deviations.T, deviations) / (2 * size)
    covariance = (spread + spread.T) / 2 + jnp.diag(jnp.exp(2 * params.log_process))
    # both, or a state given the next one would have a covariance that is not positive
    scale = jnp.minimum(1.0, WIDEST / jnp.trace(covariance))
    return Belief(clip_state(after), covariance * scale), cross * scale
