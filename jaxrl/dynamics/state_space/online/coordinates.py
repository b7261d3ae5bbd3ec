"""Other coordinates of a model's state, in which its states have mean 0 and unit covariance.

A model is as good after any invertible affine map of its state, but its field's basis covers a box:
states that are found far from where those of the first samples were would leave it.

Letters: T steps, n channels, d dimensions of the state, R regressors.
"""

import jax
import jax.numpy as jnp

from jaxrl.dynamics.state_space import move
from jaxrl.dynamics.state_space.model import Params, StateSpace, displacement
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

LEAST = 1e-4
"""Variance added in each direction."""


def standardise(
    model: StateSpace, params: Params, means: jax.Array, valid: jax.Array, deviations: jax.Array
) -> Params:
    """The model after the map z -> L⁻¹ (z - μ), with μ and L Lᵀ the moments of `means` `[T, d]`.

    Of these only those that are `valid`, bool `[T]`, count. The field cannot be taken along
    exactly: it is fitted anew to its values at the `means`, by a regression with the noise of a
    step, whose weights have the prior deviations `deviations` `[R, d]`. The noise of a step is then
    taken to be independent.
    """
    count, counted = jnp.maximum(jnp.sum(valid), 1), valid[:, None]
    centre = jnp.sum(jnp.where(counted, means, 0.0), axis=0) / count
    centred = jnp.where(counted, means - centre[None], 0.0)
    size = model.dims
    root = linalg.root(matmul(centred.T, centred) / count + LEAST * jnp.eye(size))
    whitening = linalg.inverse(root)
    spread = matmul(whitening * jnp.exp(2 * params.log_process)[None], whitening.T)
    values = jax.vmap(lambda z: displacement(model, params, z))(means)
    log_process = 0.5 * jnp.log(jnp.diagonal(spread))
    first = matmul(whitening * jnp.exp(2 * params.first_log_deviation)[None], whitening.T)
    new_params = params._replace(
        effect=matmul(whitening, params.effect),
        log_process=log_process,
        matrix=matmul(params.matrix, root),
        offset=params.offset + matmul(params.matrix, centre),
        first_mean=matmul(whitening, params.first_mean - centre),
        first_log_deviation=0.5 * jnp.log(jnp.diagonal(first)),
    )
    if model.effect != "linear":
        rows, bias, out = params.effect_layers
        if model.effect == "state_mlp":  # whose units see the state, in the rows behind the inputs
            rows_u, rows_z = jnp.split(rows, [model.num_inputs])
            rows = jnp.concatenate([rows_u, matmul(root.T, rows_z)])
            bias = bias + matmul(centre, rows_z)
        new_params = new_params._replace(effect_layers=(rows, bias, matmul(out, whitening.T)))
    return _refit_field(
        model,
        new_params,
        matmul(centred, whitening.T),
        matmul(values, whitening.T),
        valid,
        deviations,
    )


def _refit_field(
    model: StateSpace,
    params: Params,
    states: jax.Array,
    values: jax.Array,
    valid: jax.Array,
    deviations: jax.Array,
) -> Params:
    """The field by ridge regression of its `values` `[T, d]` at the `states` `[T, d]`."""
    no_input = jnp.zeros(model.num_inputs)
    rows = model.num_features + model.dims + 1
    x = jax.vmap(lambda z: move.regressors(model, params, z, no_input)[:rows])(states)
    x = jnp.where(valid[:, None], x, 0.0)
    noise = jnp.mean(jnp.exp(2 * params.log_process))
    gram = matmul(x.T, x) / noise + jnp.diag(1 / deviations[:rows, 0] ** 2)
    unit = jax.lax.rsqrt(jnp.diagonal(gram))
    right_side = unit[:, None] * matmul(x.T, values) / noise
    scaled_weights = linalg.solve_positive(gram * unit[:, None] * unit[None], right_side)
    old = move.parameters(model, params)
    new = jnp.concatenate([unit[:, None] * scaled_weights, old.move[rows:]])
    return move.replace(model, params, old._replace(move=new))
