"""Fisher scoring of a state-space model: few large steps towards the mode of its posterior.

The gradient of the marginal likelihood of a whole record, by the filter, is turned into a step by
the information that the filter has of each parameter (`information.gather`): where everything is
linear in its parameters a step is as good as a regression, and some five of them do what hundreds
of gradient steps do. The steps of the move, of the channels and of their noise are taken side by
side, of several lengths, and the best one counts: the posterior never falls.

The coordinates of the state are held: of C and b only those directions move that leave the read-out
of the state as it is (`field_posterior.read_out_basis`), since no data tell about the others.

Letters: T steps, n channels, d dimensions of the state, R regressors, p parameters, L lengths.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.state_space import channels, move
from jaxrl.dynamics.state_space.field_posterior import (
    Prior,
    prior_deviations,
    read_out_basis,
    regressor_units,
)
from jaxrl.dynamics.state_space.filter import FilteredStates, Prediction, Record, filter_states
from jaxrl.dynamics.state_space.information import Information, gather
from jaxrl.dynamics.state_space.model import Params, StateSpace
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

LENGTHS = (1.0, 0.4, 0.1, 0.0)
"""L, shares of a whole step that are tried; the last one stays."""
LARGEST_CHANGE = 0.7
"""Of the logarithm of a deviation in a step."""
LEAST_CURVATURE = 1e-3
"""Added to an information, in the units of inputs: a parameter without any stays where it is."""


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

    def likelihood(params: Params) -> tuple[jax.Array, FilteredStates]:
        states = filter_states(model, params, record, prediction)
        return jnp.sum(states.log_likelihood), states

    gradient, states = jax.grad(likelihood, has_aux=True)(params)
    information = gather(model, params, record, prediction=prediction)
    full_step = _move_step(model, params, gradient, information, prior)
    full_step = full_step._replace(**_channel_step(model, params, gradient, states, record))
    full_step = jax.tree.map(jnp.nan_to_num, full_step)  # or a length of 0 would not stay

    def try_length(length: jax.Array) -> tuple[Params, jax.Array]:
        new_params = jax.tree.map(lambda x, change: x + length * change, params, full_step)
        return new_params, log_posterior(model, new_params, record, prior, prediction)

    trials, values = jax.vmap(try_length)(jnp.asarray(LENGTHS))
    best_index = jnp.argmax(jnp.nan_to_num(values, nan=-jnp.inf))
    best = jax.tree.map(lambda x: x[best_index], trials)
    return Step(best, information, values[best_index], jnp.asarray(LENGTHS)[best_index])


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
    count_squares = jnp.sum(jnp.where(model.is_count[:, None], params.matrix, 0.0) ** 2)
    return jnp.sum(likelihood) - 0.5 * (squares + count_squares)


def _deviations(model: StateSpace, params: Params, prior: Prior) -> jax.Array:
    """Prior standard deviations `[R d]` of the move."""
    return prior_deviations(model, params, prior)[model.dims :]


def _move_step(
    model: StateSpace, params: Params, gradient: Params, information: Information, prior: Prior
) -> Params:
    """The step of X and log q, which the filter's information joins; 0 elsewhere."""
    values, slopes = move.parameters(model, params), move.parameters(model, gradient)
    flat = lambda x: jnp.concatenate([x.log_process, x.move.ravel()])
    precision = 1 / _deviations(model, params, prior) ** 2
    precision = jnp.concatenate([jnp.zeros(model.dims), precision])
    squares = jnp.repeat(regressor_units(model, prior, len(values.move)) ** 2, model.dims)
    least = LEAST_CURVATURE * jnp.concatenate([jnp.ones(model.dims), squares])
    curvature = information.matrix + jnp.diag(precision + least)
    uphill = flat(slopes) - precision * flat(values)
    unit = jax.lax.rsqrt(jnp.diagonal(curvature))
    scaled = curvature * unit[:, None] * unit[None]
    change = unit * linalg.solve_positive(scaled, (unit * uphill)[:, None])[:, 0]
    process_change = jnp.clip(change[: model.dims], -LARGEST_CHANGE, LARGEST_CHANGE)
    zeros = jax.tree.map(jnp.zeros_like, params)
    changes = values._replace(
        log_process=process_change, move=change[model.dims :].reshape(values.move.shape)
    )
    return move.replace(model, zeros, changes)


def _channel_step(
    model: StateSpace, params: Params, gradient: Params, states: FilteredStates, record: Record
) -> dict[str, jax.Array]:
    """The steps of C, b and log r; that of a channel's row as if states were known."""
    means, covariances = states.belief
    counted = record.observed & record.valid[:, None]
    channel_curvature = lambda z, y, observed: (
        channels.response(model.is_count, params, z, y, observed).curvature
    )
    weights = jax.vmap(channel_curvature)(means, record.y, counted)  # [T, n]
    size, count = model.dims + 1, len(params.offset)
    places = jnp.concatenate([means, jnp.ones_like(means[:, :1])], axis=1)
    squares = places[:, :, None] * places[:, None]  # [T, d + 1, d + 1]
    squares = squares.at[:, :-1, :-1].add(covariances)
    curvature = matmul(weights.T, squares.reshape(len(squares), -1)).reshape(count, size, size)
    matrix_ridge = jnp.where(
        model.is_count[:, None], 1.0, LEAST_CURVATURE
    )  # the prior of C of counts
    ridge = jnp.concatenate(
        [matrix_ridge * jnp.ones((1, model.dims)), jnp.full((count, 1), 1e-3)], axis=1
    )
    curvature = curvature + ridge[:, :, None] * jnp.eye(size)[None]
    count_matrix = jnp.where(model.is_count[:, None], params.matrix, 0.0)
    slopes = jnp.concatenate([gradient.matrix - count_matrix, gradient.offset[:, None]], axis=1)
    rows = linalg.solve_positive(curvature, slopes[:, :, None])[:, :, 0]
    number = jnp.maximum(jnp.sum(counted, axis=0), 1)
    rows = _remove_gauge(params, rows, jnp.sum(weights, axis=0) / number)
    excess = jnp.maximum(gradient.log_noise / number, -0.9)  # E[(y - C z - b)²] / r² - 1
    log_noise = jnp.clip(0.5 * jnp.log1p(excess), -LARGEST_CHANGE, LARGEST_CHANGE)
    log_noise = jnp.where(model.is_count, 0.0, log_noise)
    return {"matrix": rows[:, :-1], "offset": rows[:, -1], "log_noise": log_noise}


def _remove_gauge(params: Params, rows: jax.Array, weight: jax.Array) -> jax.Array:
    """Changes of C and b `[n, d + 1]` without what would change the read-out of the state.

    In units of √R, R⁻¹ = `weight` `[n]`, they are orthogonal to the columns of C.
    """
    basis, deviation = read_out_basis(params, weight)
    scaled = rows / deviation
    return (scaled - matmul(basis.T, matmul(basis, scaled))) * deviation
