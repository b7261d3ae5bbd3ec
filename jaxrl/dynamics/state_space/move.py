"""The move of a state as linear in its parameters, and which of a model's parameters are uncertain.

With regressors x(z, u) = [unit φ(z), z, 1, u, h(u, z)] the next state is z + Xᵀ x(z, u) and noise,
X = [W; Aᵀ; cᵀ; Bᵀ; O]: the weights of the field, its linear part, the effect of inputs and, where
inputs act by a network, its last layer. φ and h of networks are those of the given parameters: only
last layers are uncertain.

Letters: n channels, d dimensions of the state, m inputs, R regressors.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.state_space.model import Params, StateSpace, features, input_features, unit


class Parameters(NamedTuple):
    """What is uncertain, in the order of rows and columns of an information."""

    channels: jax.Array  # [n, d + 1] C and b; [0, d + 1] where they are held at the mode
    log_process: jax.Array  # [d] log q
    move: jax.Array  # [R, d] X


def regressors(model: StateSpace, params: Params, z: jax.Array, u: jax.Array) -> jax.Array:
    """x(z, u) `[R]` of the state `z` `[d]` and the input `u` `[m]`."""
    bumps = jnp.zeros(0, z.dtype)
    if model.field is not None:
        bumps = unit(model) * features(model.field, params, z)
    return jnp.concatenate([bumps, z, jnp.ones_like(z[:1]), u, input_features(model, params, u, z)])


def parameters(model: StateSpace, params: Params, with_channels: bool = False) -> Parameters:
    """Picks the uncertain parameters of `params`; C and b are among them if `with_channels`."""
    parts = [params.weights, params.transition.T, params.drift[None], params.effect.T]
    if model.effect != "linear":
        parts.append(params.effect_layers[-1])
    rows = jnp.concatenate([params.matrix, params.offset[:, None]], axis=1)
    return Parameters(
        rows if with_channels else rows[:0], params.log_process, jnp.concatenate(parts)
    )


def replace(model: StateSpace, params: Params, values: Parameters) -> Params:
    """Returns `params` with these values in place of its own."""
    size, d, m = model.num_features, model.dims, model.num_inputs
    weights, transition, drift, effect, out = jnp.split(
        values.move, [size, size + d, size + d + 1, size + d + 1 + m]
    )
    params = params._replace(
        weights=weights,
        transition=transition.T,
        drift=drift[0],
        effect=effect.T,
        log_process=values.log_process,
    )
    if model.effect != "linear":
        params = params._replace(effect_layers=(*params.effect_layers[:-1], out))
    if len(values.channels):
        params = params._replace(matrix=values.channels[:, :-1], offset=values.channels[:, -1])
    return params
