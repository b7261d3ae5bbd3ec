"""What recordings leave unknown of a field: Laplace's approximation of its posterior at a fit.

Gaussian, with the precision of the prior and the information of all records (`information.gather`).
It is of X, the parameters of the move: field, linear part and effect of inputs together.

**In which coordinates.** A model is as good after any invertible affine map of its state, which
takes C, b and X with it, so that no experiment can tell these apart, and no score should ask. The
posterior is that of the field in the coordinates of the mode: those that the read-out
(Cᵀ R⁻¹ C)⁻¹ Cᵀ R⁻¹ (y - b) of the channels gives there. The d (d + 1) directions of C and b that
would change the read-out are held; all others may be uncertain, and are averaged over where
`information` has them. About these the innovations of complete Gaussian channels tell nothing that
they tell about X, too, and C and b may as well be held: that is the cheap way, for plans. For
counts, or where numbers are missing, it is good while the weights of channels change little.
Averaging over C and b freely would be another question: the field's value at a place that itself
is unknown.

It is as good as the mode that it surrounds. Where the field is curved and states are uncertain the
extended filter takes f of the mean for the mean of f, and its mode may be off by as much as the
posterior is wide; cubature is not.

Letters: n channels, d dimensions of the state, m inputs, R regressors, p = R d.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct
from jax.scipy.linalg import solve_triangular

from jaxrl import checks
from jaxrl.checks import Positive
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space.filter import clip_state
from jaxrl.dynamics.state_space.information import Information, innovation_root
from jaxrl.dynamics.state_space.model import Params, StateSpace, step
from jaxrl.dynamics.state_space.move import Parameters, parameters, regressors, replace
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul


@struct.dataclass
class Prior:
    """Standard deviations before any data, independent of one another."""

    weights: Positive = 0.3
    """Of W: that of the fit, `Objective.prior`."""
    linear: Positive = 1.0
    """Of A and c, in units of the state: weak, since the state has a variance near 1."""
    effect: Positive = 10.0
    """Of B, per `input_unit` of an input, and of the last layer of a network of inputs."""
    input_unit: Positive = 1.0
    """That unit, one number or one for each input. Learners take the power of 100 that is nearest
    to the bounds of an input, as an effect is larger where inputs are smaller."""
    log_process: Positive = 1.0
    """Of log q."""
    channels: Positive = 10.0
    """Of C and b, in units of a channel's noise."""


def unit_of_inputs(size: jax.Array) -> jax.Array:
    """The power of 100 nearest to inputs of this size `[m]`; 1 for those that are always 0.

    The prior of their effect is weak, so that only its order of magnitude matters.
    """
    has_size = (size > 0) & jnp.isfinite(size)
    exponent = jnp.round(jnp.log10(jnp.where(has_size, size, 1.0)) / 2)
    return jnp.where(has_size, 100.0**exponent, 1.0)


class FieldPosterior(NamedTuple):
    """What is known of the move after all records."""

    params: Params  # the mode
    root: jax.Array  # [p, p] S: the covariance of X, row by row, is S Sᵀ
    relative_noise: jax.Array  # information had states been known exactly, over what there was
    covariance: jax.Array  # [d, d] P of a state that is predicted, on average
    information: jax.Array  # nats gained about X: half the decrease of the log-determinant


def field_posterior(
    model: StateSpace, params: Params, information: Information, prior: Prior | None = None
) -> FieldPosterior:
    """The posterior at the mode `params`, after records of this `information` gathered there.

    Raises ValueError for an information of another model, and for a prior out of range.
    """
    prior = prior or Prior()
    checks.config(prior)
    has_channels = _has_channels(model, params, information)
    size, count = parameters(model, params).move.size, jnp.maximum(information.count, 1)
    deviations = prior_deviations(model, params, prior, has_channels)
    matrix = information.matrix
    if has_channels:
        matrix = remove_gauge(params, matrix, information.weight / count)
    precision = matrix + jnp.diag(1 / deviations**2)
    unit = jax.lax.rsqrt(jnp.diagonal(precision))  # so that rounding is relative to each parameter
    root = unit[:, None] * linalg.inverse_root(precision * unit[:, None] * unit[None])
    root = root[-size:, -size:]  # of an upper triangle: the root of what is left of the covariance
    deviation = deviations[-size:]
    nats = jnp.sum(jnp.log(deviation) - jnp.log(jnp.diagonal(root)))
    ratio = _relative_noise(params, information.design, root, deviation)
    ratio = jnp.where(information.count > 0, ratio, 1.0)
    return FieldPosterior(params, root, ratio, information.covariance / count, nats)


def _has_channels(model: StateSpace, params: Params, information: Information) -> bool:
    """Whether C and b are among its parameters."""
    size = parameters(model, params).move.size + model.dims
    every, rows = size + params.matrix.size + params.offset.size, len(information.matrix)
    if rows not in (size, every):
        raise ValueError(
            f"an information of {rows} parameters, expected {size} or {every}: gather it with "
            "this model"
        )
    return rows == every


def prior_deviations(
    model: StateSpace, params: Params, prior: Prior, with_channels: bool = False
) -> jax.Array:
    """Standard deviations of all `Parameters` in a row, in their order.

    `[d + p]`; C and b, if they are among them, are n (d + 1) more in front, in their noise.
    """
    values = parameters(model, params, with_channels)
    edges = (model.num_features, model.num_features + model.dims + 1)
    row = jnp.arange(len(values.move))[:, None]
    units = regressor_units(model, prior, len(row))[:, None]
    linear = jnp.where(row < edges[1], prior.linear, prior.effect / units)
    move = jnp.where(row < edges[0], prior.weights, linear) * jnp.ones_like(values.move)
    channel_deviations = jnp.full_like(values.channels, prior.channels)
    process_deviations = jnp.full_like(values.log_process, prior.log_process)
    return jnp.concatenate(
        [x.ravel() for x in Parameters(channel_deviations, process_deviations, move)]
    )


def regressor_units(model: StateSpace, prior: Prior, rows: int) -> jax.Array:
    """The units `[R]` of all R = `rows` regressors of the move: 1 but for the inputs."""
    before, units = model.num_features + model.dims + 1, jnp.asarray(prior.input_unit)
    units = jnp.broadcast_to(units, (model.num_inputs,))
    return jnp.pad(units, (before, rows - before - len(units)), constant_values=1.0)


def read_out_basis(params: Params, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Orthonormal rows `[d, n]` that span the columns of C in units of √R, and √R `[n, 1]`.

    `weight` `[n]` is that of each channel, R⁻¹ on average. The directions of C and b along these
    rows are those that change the read-out of the state.
    """
    largest = jnp.max(weight)  # a channel that was never observed weighs a little, too
    weight = jnp.where(largest > 0, jnp.maximum(weight, 1e-9 * largest), 1.0)
    deviation = jax.lax.rsqrt(weight)[:, None]
    columns = params.matrix / deviation
    lower = jnp.linalg.cholesky(matmul(columns.T, columns))  # a triangle, as linalg.root is not
    return solve_triangular(lower, columns.T, lower=True), deviation


def remove_gauge(params: Params, matrix: jax.Array, weight: jax.Array) -> jax.Array:
    """An information of C, b and the rest about what does not change the read-out of the state.

    In units of √R the rows of C and b are free only orthogonally to `read_out_basis`, and there is
    no information about the others.
    """
    basis, deviation = read_out_basis(params, weight)
    count, dims = params.matrix.shape
    size = count * (dims + 1)

    def project(rows: jax.Array) -> jax.Array:
        channel_rows = rows[:size].reshape(count, -1) * deviation
        channel_rows = channel_rows - matmul(basis.T, matmul(basis, channel_rows))
        return jnp.concatenate([channel_rows.reshape(size, -1), rows[size:]])

    return project(project(matrix).T)


def _relative_noise(
    params: Params, design: jax.Array, root: jax.Array, deviation: jax.Array
) -> jax.Array:
    """The information of exactly known states over what there was, where the posterior is narrow.

    Each as tr(Σ I), the number of parameters that it determines (MacKay 1992), Σ = S Sᵀ.
    """
    by_output = root.reshape(len(design), -1)  # [R, d p]
    precision = jnp.exp(-2 * params.log_process)[None, :, None]
    through = matmul(design, by_output) * by_output
    exact = jnp.sum(precision * through.reshape(len(design), -1, len(root)))
    actual = len(root) - jnp.sum((root / deviation[:, None]) ** 2)
    return exact / jnp.maximum(actual, 1e-6)


def predictive_covariance(model: StateSpace, posterior: FieldPosterior, z: jax.Array) -> jax.Array:
    """The covariance `[d, d]` of the displacement f(z) at `z` `[d]`, X being uncertain."""
    x = regressors(model, posterior.params, z, jnp.zeros(model.num_inputs, z.dtype))
    rows = matmul(x, posterior.root.reshape(len(x), -1)).reshape(model.dims, -1)
    return matmul(rows, rows.T)


def predictive_variance(model: StateSpace, posterior: FieldPosterior, z: jax.Array) -> jax.Array:
    """The variance of a component of the displacement f(z) at `z` `[d]`, on average over them."""
    return jnp.trace(predictive_covariance(model, posterior, z)) / model.dims


def draw(model: StateSpace, posterior: FieldPosterior, key: jax.Array) -> Params:
    """Parameters whose move is drawn from the posterior; consumes `key`."""
    values = parameters(model, posterior.params)
    noise = jax.random.normal(key, (values.move.size,), values.move.dtype)
    move = values.move + matmul(posterior.root, noise).reshape(values.move.shape)
    return replace(model, posterior.params, values._replace(move=move))


def predictive_model(model: StateSpace, posterior: FieldPosterior) -> PredictiveModel:
    """What plans are made with; variances are in units of q², the mean one of the components.

    Inputs are part of the design. An observation tells what its innovation does, by the filter with
    the covariance of a predicted state as it is on average.
    """
    params, covariance = posterior.params, posterior.covariance
    noise = jnp.mean(jnp.exp(2 * params.log_process))
    eye, no_input = jnp.eye(model.dims), jnp.zeros(model.num_inputs)
    repeat_outputs = lambda x: jnp.kron(x[None], eye)  # [d, p]
    rest_regressors = lambda z: regressors(model, params, z, no_input)
    input_regressors = lambda z, u: regressors(model, params, z, u) - rest_regressors(z)

    def innovation(z: jax.Array) -> jax.Array:
        is_observed = jnp.ones(model.is_count.shape, bool)
        y = jnp.zeros(is_observed.shape, z.dtype)
        weight = channels.response(model.is_count, params, z, y, is_observed).curvature
        root = innovation_root(matmul(params.matrix.T, weight[:, None] * params.matrix), covariance)
        return matmul(root, root.T)

    return PredictiveModel(
        step=lambda z, u: clip_state(step(model, params, z, u)),
        design=lambda z: repeat_outputs(rest_regressors(z)),
        root=posterior.root / jnp.sqrt(noise),
        relative_noise=posterior.relative_noise,
        observation_information=lambda z: noise * innovation(z),
        predictive_variance=lambda z: predictive_variance(model, posterior, z),
        place=lambda z: channels.mean(model.is_count, params, z),
        input_design=lambda z, u: repeat_outputs(input_regressors(z, u)),
        remaining=lambda z: eye - matmul(covariance, innovation(z)),
    )
