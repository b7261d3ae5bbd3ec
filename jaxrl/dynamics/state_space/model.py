"""A nonlinear state-space model: a vector field, inputs that move the state, channels that see it.

    z_{t+1} = z_t + f(z_t) + g(u_t, z_t) + w_t,      w_t ~ N(0, diag q²)
    y_t ~ Poisson(exp(C z_t + b)) for counts, N(C z_t + b, r²) for the rest, by channel

with f(z) = A z + c + Wᵀφ(z) and g(u, z) = B u, with or without a small network beside it. The field
is a displacement per step. The state has no unit but that of its prior: parameters are as good
after any invertible affine map of it.

Letters: T steps, n channels, d dimensions of the state, m inputs, C features of the field.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, CountOrZero, Positive
from jaxrl.dynamics import bases
from jaxrl.dynamics.bases import Basis
from jaxrl.numerics.linalg import matmul

Effect = Literal["linear", "mlp", "state_mlp"]
HIDDEN = 16
"""Units of the network of inputs."""


@struct.dataclass
class Network:
    """One layer of tanh units as the features of a field, which are learned with it."""

    hidden: Count = struct.field(pytree_node=False, default=48)
    """C, units."""
    dims: Count = struct.field(pytree_node=False, default=2)
    """d."""

    @property
    def num_features(self) -> int:
        return self.hidden


Field = Basis | Network | None
"""The nonlinear part of a field; None: it is linear."""


class Params(NamedTuple):
    """What is learned."""

    transition: jax.Array  # [d, d] A
    drift: jax.Array  # [d] c
    weights: jax.Array  # [C, d] W, in units of `StateSpace.scale`; [0, d] of a linear field
    layer: Any  # of a Network: its matrix [d, C] and bias [C]; else ()
    effect: jax.Array  # [d, m] B
    effect_layers: Any  # of a network of inputs: matrix, bias and output; else ()
    log_process: jax.Array  # [d] log q
    matrix: jax.Array  # [n, d] C
    offset: jax.Array  # [n] b
    log_noise: jax.Array  # [n] log r; of no meaning for counts
    first_mean: jax.Array  # [d] of the state where a window begins
    first_log_deviation: jax.Array  # [d]


@struct.dataclass
class StateSpace:
    """Which model it is. Everything that is learned is in `Params`."""

    is_count: jax.Array
    """bool `[n]`: which channels count events; the others are Gaussian."""
    dims: Count = struct.field(pytree_node=False, default=2)
    """d."""
    num_inputs: CountOrZero = struct.field(pytree_node=False, default=1)
    """m."""
    field: Field = bases.Grid(per_axis=11, half_width=3.0)
    """The nonlinear part of the field, in units of the state."""
    effect: Effect = struct.field(pytree_node=False, default="linear")
    """How inputs move the state: B u; mlp, with a network of u beside it; state_mlp, of u and z."""
    scale: Positive = 0.6
    """Displacement per step of a nonlinear part whose weights have mean square 1, where features
    are typical."""

    @property
    def num_features(self) -> int:
        """C."""
        return 0 if self.field is None else self.field.num_features


def check(model: StateSpace) -> None:
    """Raises ValueError for numbers out of range, and for a field of other dimensions."""
    checks.config(model.replace(field=None))  # pyright: ignore
    if model.field is None:
        return
    if isinstance(model.field, Network):
        checks.config(model.field)
    else:
        bases.check(model.field)
    if model.field.dims != model.dims:
        raise ValueError(
            f"the field has {model.field.dims} dimensions and the state {model.dims}: give both "
            "the same"
        )


def step(model: StateSpace, params: Params, z: jax.Array, u: jax.Array) -> jax.Array:
    """The expected next state `[d]` from `z` `[d]` with the input `u` `[m]`."""
    return z + displacement(model, params, z) + input_effect(model, params, u, z)


def displacement(model: StateSpace, params: Params, z: jax.Array) -> jax.Array:
    """f(z) `[d]`: what the field adds to the state in a step."""
    linear = matmul(params.transition, z) + params.drift
    if model.field is None:
        return linear
    return linear + unit(model) * nonlinear_part(model.field, params, z)


def nonlinear_part(field: Basis | Network, params: Params, z: jax.Array) -> jax.Array:
    """Wᵀφ(z) `[d]` in units of `unit`."""
    if isinstance(field, Network):
        return matmul(network_features(params.layer, z), params.weights)
    return bases.weighted_sum(field, params.weights, z)


def features(field: Basis | Network, params: Params, z: jax.Array) -> jax.Array:
    """φ(z) `[C]`."""
    if isinstance(field, Network):
        return network_features(params.layer, z)
    return bases.features(field, z)


def network_features(layer: Any, z: jax.Array) -> jax.Array:
    """Activations `[..., units]` of a hidden layer `(matrix [d, units], bias [units])` at z."""
    matrix, bias = layer
    return jnp.tanh(matmul(z, matrix) + bias)


def unit(model: StateSpace) -> jax.Array:
    """Displacement of a weight of 1 where its feature is 1, so that of the whole is `scale`."""
    if isinstance(model.field, Network):
        return jnp.asarray(model.scale / model.field.hidden**0.5)
    assert model.field is not None
    return model.scale / jnp.sqrt(bases.mean_square(model.field))


def input_effect(model: StateSpace, params: Params, u: jax.Array, z: jax.Array) -> jax.Array:
    """g(u, z) `[d]`: what an input `[m]` adds to the state in a step; nothing without one."""
    linear = matmul(params.effect, u)
    if model.effect == "linear":
        return linear
    return linear + matmul(input_features(model, params, u, z), params.effect_layers[-1])


def input_features(model: StateSpace, params: Params, u: jax.Array, z: jax.Array) -> jax.Array:
    """Units `[HIDDEN]` of the network of inputs, less their values without input; `[0]` if none."""
    if model.effect == "linear":
        return jnp.zeros(0, z.dtype)
    matrix, bias, _ = params.effect_layers
    place = z if model.effect == "state_mlp" else jnp.zeros_like(z)
    hidden = lambda u: jnp.tanh(matmul(jnp.concatenate([u, place]), matrix) + bias)
    return hidden(u) - hidden(jnp.zeros_like(u))


def layers(model: StateSpace, key: jax.Array) -> dict[str, Any]:
    """Fields of `Params` that are networks, at their start: they draw `key`, and add nothing yet.

    The weights behind the networks are 0.
    """
    field_key, bias_key, effect_key = jax.random.split(key, 3)
    d, m, size = model.dims, model.num_inputs, model.num_features
    start: dict[str, Any] = {"weights": jnp.zeros((size, d)), "layer": (), "effect_layers": ()}
    if isinstance(model.field, Network):
        matrix = jax.random.normal(field_key, (d, size))
        start["layer"] = (matrix, jax.random.normal(bias_key, (size,)))
    if model.effect != "linear":
        matrix = jax.random.normal(effect_key, (m + d, HIDDEN)) / max(m, 1) ** 0.5
        start["effect_layers"] = (matrix, jnp.zeros(HIDDEN), jnp.zeros((HIDDEN, d)))
    return start
