"""The filter of a state-space model, and the marginal likelihood of what it filters.

Each observation moves the state to the mode of its posterior, found by Newton's method, with the
curvature there as precision: an iterated extended Kalman filter for Gaussian channels (Bell &
Cathey 1993), Laplace's approximation for counts (Paninski et al. 2010). Both are exact where
everything is linear and Gaussian. Differentiable: fits follow the gradient of the likelihood.

With P = L Lᵀ before an observation, the state is written m + L x: there the prior precision is I,
and I + LᵀSL, with S the information of the channels, is positive definite whatever S is.

Letters: T steps, n channels, d dimensions of the state, m inputs.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space.model import Params, StateSpace, step
from jaxrl.dynamics.state_space.small_matrices import cholesky, log_determinant, solve_lower
from jaxrl.linalg import matmul

Prediction = Literal["extended", "cubature"]
NEWTON_STEPS = 2
FARTHEST = 20.0
"""Components of a predicted mean are kept within ± this: parameters may be bad on the way."""
WIDEST = 50.0
"""A predicted covariance of a larger trace is scaled down to it."""


class Record(NamedTuple):
    """What was recorded in one episode, or in a window of it."""

    y: jax.Array  # [T, n], finite numbers where missing
    u: jax.Array  # [T, m]; u_t moves the state from t to t + 1
    observed: jax.Array  # bool [T, n]; false where missing and in padding
    valid: jax.Array  # bool [T]; false in padding, which is at the end


class Filtered(NamedTuple):
    """Of each step of a record."""

    log_likelihood: jax.Array  # [T] log p(y_t | y_0 .. y_{t-1})
    before: Belief  # [T, ...] of the state, given the past
    belief: Belief  # [T, ...] given the present, too
    cross: jax.Array  # [T, d, d] covariance of the state with the next one, given the present


def filter_states(
    model: StateSpace, params: Params, record: Record, prediction: Prediction = "extended"
) -> Filtered:
    """Beliefs and log-likelihood of every step of a record; in padding 0 and the last belief."""

    def advance(before: Belief, now: Record) -> tuple[Belief, Filtered]:
        belief, root, log_likelihood = correct(model, params, before, now.y, now.observed)
        after, cross = predict(model, params, belief.mean, root, now.u, prediction)
        after = jax.tree.map(lambda new, old: jnp.where(now.valid, new, old), after, before)
        log_likelihood = jnp.where(now.valid, log_likelihood, 0.0)
        return after, Filtered(log_likelihood, before, belief, cross)

    return jax.lax.scan(advance, first_belief(params), record)[1]


def first_belief(params: Params) -> Belief:
    """What is known of the state before a record begins."""
    return Belief(params.first_mean, jnp.diag(jnp.exp(2 * params.first_log_deviation)))


def correct(
    model: StateSpace, params: Params, before: Belief, y: jax.Array, observed: jax.Array
) -> tuple[Belief, jax.Array, jax.Array]:
    """The belief after an observation, a root `[d, d]` of its covariance, and log p(y | past).

    The last by Laplace's approximation: log p(y | ẑ) - xᵀx / 2 - log |I + LᵀSL| / 2.
    """
    prior_root = cholesky(before.covariance)
    x = jnp.zeros_like(before.mean)
    state = lambda x: before.mean + matmul(prior_root, x)
    for _ in range(NEWTON_STEPS):
        lower, score, information, _ = _newton(model, params, prior_root, state(x), y, observed)
        x = _solve(lower, score + matmul(information, x))
    lower, _, _, log_likelihood = _newton(model, params, prior_root, state(x), y, observed)
    root = solve_lower(lower, prior_root.T).T  # K = L R⁻ᵀ, so that K Kᵀ = L (R Rᵀ)⁻¹ Lᵀ
    log_likelihood = log_likelihood - 0.5 * (jnp.sum(x**2) + log_determinant(lower))
    return Belief(state(x), matmul(root, root.T)), root, log_likelihood


def _newton(
    model: StateSpace,
    params: Params,
    prior_root: jax.Array,
    z: jax.Array,
    y: jax.Array,
    observed: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """In x: root R of I + LᵀSL, the score of the channels, LᵀSL, and log p(y | z)."""
    response = channels.response(model.is_count, params, z, y, observed)
    design = matmul(params.matrix, prior_root)  # [n, d]
    information = matmul(design.T, response.curvature[:, None] * design)
    lower = cholesky(information + jnp.eye(len(z)))
    return lower, matmul(design.T, response.slope), information, jnp.sum(response.log_likelihood)


def _solve(lower: jax.Array, right: jax.Array) -> jax.Array:
    """(R Rᵀ)⁻¹ `right` `[d]`."""
    inverse = solve_lower(lower, jnp.eye(len(right)))
    return matmul(inverse.T, matmul(inverse, right))


def predict(
    model: StateSpace,
    params: Params,
    mean: jax.Array,
    root: jax.Array,
    u: jax.Array,
    prediction: Prediction,
) -> tuple[Belief, jax.Array]:
    """The belief one step later, and the covariance `[d, d]` of the state with the next one.

    From a state of that mean and of the covariance K Kᵀ, K = `root`. extended: by the Jacobian at
    the mean. cubature: by 2 d points on the sphere of that covariance (Arasaratnam & Haykin 2009).
    """
    move = lambda z: step(model, params, z, u)
    size = len(mean)
    if prediction == "extended":
        after = move(mean)
        tangents = jax.vmap(lambda column: jax.jvp(move, (mean,), (column,))[1])(root.T).T
        spread = matmul(tangents, tangents.T)
    else:
        radius = size**0.5
        up, down = (jax.vmap(move)(mean[None] + sign * radius * root.T) for sign in (1, -1))
        after = jnp.mean(jnp.concatenate([up, down]), axis=0)
        tangents = (up - down).T / (2 * radius)
        deviations = jnp.concatenate([up, down]) - after[None]
        spread = matmul(deviations.T, deviations) / (2 * size)
    covariance = spread + jnp.diag(jnp.exp(2 * params.log_process))
    trace = jnp.trace(covariance)
    covariance = covariance * jnp.minimum(1.0, WIDEST / trace)
    return Belief(jnp.clip(after, -FARTHEST, FARTHEST), covariance), matmul(root, tangents.T)
