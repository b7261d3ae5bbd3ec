"""Units in which a fit sees numbers and inputs: of their own spread, whatever they are measured in.

Learning rates and first guesses expect numbers of order 1. A fit is made in such units, and its
parameters are then turned into those of the data. What sees a whole record is one program: as
single operations it would be a second of compiling. Letters: E episodes, T steps, n channels, d
dimensions of the state, m inputs.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.fitting.initial_guess import ROUNDED, mean_of
from jaxrl.dynamics.state_space.model import Effect, Params
from jaxrl.numerics.linalg import matmul

FAR = 2.0
"""Standard deviations from 0 beyond which the mean of an input is subtracted."""


class Units(NamedTuple):
    """What is subtracted from the data, and what they are then divided by."""

    mean: jax.Array  # [n] of channels; 0 of counts
    deviation: jax.Array  # [n] of channels; 1 of counts, and of what is always 0
    input_mean: jax.Array  # [m] of inputs far from 0, as a temperature is; 0 of the others
    input_size: jax.Array  # [m] root mean square of what is not 0; 1 of inputs that are always 0


@partial(jax.jit, static_argnames="effect")
def units_of(record: Record, is_count: jax.Array, effect: Effect = "linear") -> Units:
    """The units of episodes `[E, T]`; `is_count` is bool `[n]`.

    Inputs far from 0 are measured by their deviations from the mean, unless their `effect` depends
    on the state: what the mean does would be no constant then, which the drift can take.
    """
    observed = record.observed & record.valid[..., None]
    mean = mean_of(record.y, observed)
    deviation = _root_mean_square(record.y - mean[None, None], observed)
    deviation = jnp.maximum(deviation, ROUNDED * jnp.abs(mean))
    is_step = record.valid[..., None]
    size = _root_mean_square(record.u, is_step & (record.u != 0))
    input_mean = mean_of(record.u, is_step)
    around_mean = _root_mean_square(record.u - input_mean[None, None], is_step)
    is_far = (jnp.abs(input_mean) > FAR * around_mean) & (effect != "state_mlp")
    is_far &= around_mean > 10 * ROUNDED * jnp.abs(input_mean)  # else it stays the same
    size = jnp.where(is_far, around_mean, size)
    return Units(
        jnp.where(is_count, 0.0, mean),
        jnp.where(~is_count & (deviation > 0), deviation, 1.0),
        jnp.where(is_far, input_mean, 0.0),
        jnp.where(size > 0, size, 1.0),
    )


def _root_mean_square(x: jax.Array, counted: jax.Array) -> jax.Array:
    """`[n]` of x `[E, T, n]`; squares are of the size of 1 before they are added up."""
    x = jnp.where(counted, x, 0.0)
    largest = jnp.max(jnp.abs(x), axis=(0, 1))
    relative = x / jnp.where(largest > 0, largest, 1.0)[None, None]
    return largest * jnp.sqrt(mean_of(relative**2, counted))


@jax.jit
def scale_record(record: Record, units: Units) -> Record:
    """The record as a fit sees it."""
    y = (record.y - units.mean[None, None]) / units.deviation[None, None]
    u = (record.u - units.input_mean[None, None]) / units.input_size[None, None]
    return record._replace(y=y, u=jnp.where(record.valid[..., None], u, 0.0))


def unscale_params(params: Params, units: Units) -> Params:
    """The parameters of the same model of the data as they are, with the same states."""
    layers, at_mean = params.effect_layers, units.input_mean / units.input_size
    drift = params.drift - matmul(params.effect, at_mean)
    if layers:
        matrix, bias, out = layers  # [m + d, HIDDEN]: of inputs first, then of the state
        m = len(units.input_size)
        row_units = jnp.concatenate([units.input_size, jnp.ones(len(matrix) - m)])
        own_bias = bias - matmul(at_mean, matrix[:m])
        drift = drift + matmul(jnp.tanh(own_bias) - jnp.tanh(bias), out)
        layers = (matrix / row_units[:, None], own_bias, out)
    return params._replace(
        drift=drift,
        effect=params.effect / units.input_size[None],
        effect_layers=layers,
        matrix=params.matrix * units.deviation[:, None],
        offset=params.offset * units.deviation + units.mean,
        log_noise=params.log_noise + jnp.log(units.deviation),
    )
