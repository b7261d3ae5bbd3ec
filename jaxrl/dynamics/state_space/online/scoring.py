"""Fisher scoring of a state-space model: few large steps towards the mode of its posterior.

The gradient of the marginal likelihood of a whole record, by the filter, is turned into a step by
the information that the filter has of each parameter (`information.gather`): where everything is
linear in its parameters a step is as good as a regression, and some five of them do what hundreds
of gradient steps do. The steps of the move, of the channels and of their noise are taken side by
side, of several lengths, and the best one counts: the posterior never falls.

The coordinates of the state are held: of C and b only those directions move that leave the read-out
of the state as it is (`field_posterior.without_gauge`), since no data tell about the others.

Letters: T steps, n channels, d dimensions of the state, R regressors, p parameters, L lengths.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxrl.dynamics.state_space import channels, move
from jaxrl.dynamics.state_space.field_posterior import Prior, prior_deviations
from jaxrl.dynamics.state_space.filter import Filtered, Prediction, Record, filter_states
from jaxrl.dynamics.state_space.information import Information, gather
from jaxrl.dynamics.state_space.model import Params, StateSpace
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

LENGTHS = (1.0, 0.4, 0.1, 0.0)
"""L, shares of a whole step that are tried; the last one stays."""
LARGEST_CHANGE = 0.7
"""Of the logarithm of a deviation in a step."""
LEAST_CURVATURE = 1e-3
"""Added to an information, so that a parameter without any stays where it is."""


class Step(NamedTuple):
    """What a step of scoring leads to."""

    params: Params
    information: Information  # where the step began
    log_posterior: jax.Array  # of the new parameters, up to a constant
    length: jax.Array  # share of the whole step that was taken


def improve(
    model: StateSpace,
    params: Params,
    record: Record,
    prior: Prior,
    prediction: Prediction = "extended",
) -> Step:
    """One step of scoring on a record `[T]`."""

    def likelihood(params: Params) -> tuple[jax.Array, Filtered]:
        states = filter_states(model, params, record, prediction)
        return jnp.sum(states.log_likelihood), states

    gradient, states = jax.grad(likelihood, has_aux=True)(params)
    information = gather(model, params, record, prediction=prediction)
    whole = _of_move(model, params, gradient, information, prior)
    whole = whole._replace(**_of_channels(model, params, gradient, states, record))
    whole = jax.tree.map(jnp.nan_to_num, whole)  # or a length of 0 would not stay

    def at(length: jax.Array) -> tuple[Params, jax.Array]:
        moved = jax.tree.map(lambda x, change: x + length * change, params, whole)
        return moved, log_posterior(model, moved, record, prior, prediction)

    tried, values = jax.vmap(at)(jnp.asarray(LENGTHS))
    chosen = jnp.argmax(jnp.nan_to_num(values, nan=-jnp.inf))
    best = jax.tree.map(lambda x: x[chosen], tried)
    return Step(best, information, values[chosen], jnp.asarray(LENGTHS)[chosen])


def log_posterior(
    model: StateSpace,
    params: Params,
    record: Record,
    prior: Prior,
    prediction: Prediction = "extended",
) -> jax.Array:
    """log p(y | params) + log p(params) of a record `[T]`, up to a constant."""
    likelihood = filter_states(model, params, record, prediction).log_likelihood
    values = move.parameters(model, params).move.ravel()
    squares = jnp.sum((values / _deviations(model, params, prior)) ** 2)
    of_counts = jnp.sum(jnp.where(model.is_count[:, None], params.matrix, 0.0) ** 2)
    return jnp.sum(likelihood) - 0.5 * (squares + of_counts)


def _deviations(model: StateSpace, params: Params, prior: Prior) -> jax.Array:
    """Those of the move `[R d]` before any data."""
    return prior_deviations(model, params, prior)[model.dims :]


def _of_move(
    model: StateSpace, params: Params, gradient: Params, information: Information, prior: Prior
) -> Params:
    """The step of X and log q, which the filter's information joins; 0 elsewhere."""
    values, slopes = move.parameters(model, params), move.parameters(model, gradient)
    flat = lambda x: jnp.concatenate([x.log_process, x.move.ravel()])
    precision = 1 / _deviations(model, params, prior) ** 2
    precision = jnp.concatenate([jnp.zeros(model.dims), precision])
    curvature = information.matrix + jnp.diag(precision + LEAST_CURVATURE)
    uphill = flat(slopes) - precision * flat(values)
    unit = jax.lax.rsqrt(jnp.diagonal(curvature))
    scaled = curvature * unit[:, None] * unit[None]
    change = unit * linalg.solve_positive(scaled, (unit * uphill)[:, None])[:, 0]
    of_process = jnp.clip(change[: model.dims], -LARGEST_CHANGE, LARGEST_CHANGE)
    still = jax.tree.map(jnp.zeros_like, params)
    turned = values._replace(
        log_process=of_process, move=change[model.dims :].reshape(values.move.shape)
    )
    return move.replace(model, still, turned)


def _of_channels(
    model: StateSpace, params: Params, gradient: Params, states: Filtered, record: Record
) -> dict[str, jax.Array]:
    """The steps of C, b and log r; that of a channel's row as if states were known."""
    means, covariances = states.belief
    counted = record.observed & record.valid[:, None]
    of_step = lambda z, y, seen: channels.response(model.is_count, params, z, y, seen).curvature
    weights = jax.vmap(of_step)(means, record.y, counted)  # [T, n]
    size, count = model.dims + 1, len(params.offset)
    places = jnp.concatenate([means, jnp.ones_like(means[:, :1])], axis=1)
    squares = places[:, :, None] * places[:, None]  # [T, d + 1, d + 1]
    squares = squares.at[:, :-1, :-1].add(covariances)
    curvature = matmul(weights.T, squares.reshape(len(squares), -1)).reshape(count, size, size)
    held = jnp.where(model.is_count[:, None], 1.0, LEAST_CURVATURE)  # the prior of C of counts
    ridge = jnp.concatenate([held * jnp.ones((1, model.dims)), jnp.full((count, 1), 1e-3)], axis=1)
    curvature = curvature + ridge[:, :, None] * jnp.eye(size)[None]
    of_counts = jnp.where(model.is_count[:, None], params.matrix, 0.0)
    slopes = jnp.concatenate([gradient.matrix - of_counts, gradient.offset[:, None]], axis=1)
    rows = linalg.solve_positive(curvature, slopes[:, :, None])[:, :, 0]
    number = jnp.maximum(jnp.sum(counted, axis=0), 1)
    rows = _without_gauge(params, rows, jnp.sum(weights, axis=0) / number)
    excess = jnp.maximum(gradient.log_noise / number, -0.9)  # E[(y - C z - b)²] / r² - 1
    log_noise = jnp.clip(0.5 * jnp.log1p(excess), -LARGEST_CHANGE, LARGEST_CHANGE)
    log_noise = jnp.where(model.is_count, 0.0, log_noise)
    return {"matrix": rows[:, :-1], "offset": rows[:, -1], "log_noise": log_noise}


def _without_gauge(params: Params, rows: jax.Array, weight: jax.Array) -> jax.Array:
    """Changes of C and b `[n, d + 1]` without what would change the read-out of the state.

    In units of √R, R⁻¹ = `weight`, they are orthogonal to the columns of C.
    """
    root = jnp.sqrt(jnp.maximum(weight, 1e-9 * jnp.max(weight)) + jnp.finfo(weight.dtype).tiny)
    columns = params.matrix * root[:, None]
    lower = linalg.root(matmul(columns.T, columns) + 1e-9 * jnp.eye(columns.shape[1]))
    columns = solve_triangular(lower, columns.T, lower=True)  # [d, n] orthonormal
    scaled = rows * root[:, None]
    return (scaled - matmul(columns.T, matmul(columns, scaled))) / root[:, None]
