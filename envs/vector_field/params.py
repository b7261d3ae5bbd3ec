"""The parameters of the vector-field environment and their checks."""

import math
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs.vector_field.encoders import Layers

FOREVER = 2**30
WHOLE = ("field", "max_steps_in_episode")
WEIGHTS = ("landscape", "emission", "encoder", "network")


@struct.dataclass
class Params:
    """Numbers, weights and landscape; `VectorField.params` makes them."""

    field: jax.Array | int
    """int32, which of the environment's fields."""
    landscape: jax.Array
    """[40, 40, 2], the drawn field; [0, 0, 2] where multi_attractor is not among the fields."""
    emission: Layers
    """Weights of the observation."""
    encoder: Layers
    """Weights of the encoder, from actions to velocities."""
    action_bound: jax.Array | float
    """Largest |u_i|; with the encoder identity in latent units per unit of time."""
    dt: jax.Array | float = 0.1
    """Time of a step."""
    process_noise: jax.Array | float = 0.01
    """q, variance of the noise added to each component of z per unit of time."""
    observation_noise: jax.Array | float = 0.01
    """Variance of each channel, if noise is gaussian."""
    bin_width: jax.Array | float = 1.0
    """Time in which events are counted, if noise is poisson; it may differ from `dt`."""
    reach: jax.Array | float = 5.0
    """Each component of z is clipped to ±reach; see walls in `VectorField`."""
    max_steps_in_episode: jax.Array | int = FOREVER
    """Steps after which an episode is truncated."""
    network: jax.Array | tuple[()] = ()
    """[d, d], weights of the field network; () where it is not among the fields."""


def check(name: str, value: Any, num_fields: int) -> None:
    """Raises ValueError for what is no valid number; traced values pass, and so do weights."""
    if isinstance(value, jax.core.Tracer) or name in WEIGHTS:
        return
    if not is_real(value):
        raise ValueError(f"{name} is {value!r}; expected a number")
    if jnp.ndim(value):
        raise ValueError(f"{name} has shape {jnp.shape(value)}; expected one number (or `vmap`)")
    if name == "field":
        if value not in range(num_fields):
            raise ValueError(f"field is {value}; expected an index from 0 to {num_fields - 1}")
    elif not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}; expected a number above 0")
    elif name in WHOLE and value > jnp.iinfo(jnp.int32).max:
        raise ValueError(f"{name} is {value}; expected at most {jnp.iinfo(jnp.int32).max}")


def is_real(value: Any) -> bool:
    """Whether a value, or all values of an array, are real numbers."""
    dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.bool_, jnp.integer, jnp.floating))


def check_speed(bound: jax.Array | float) -> None:
    """Raises ValueError if the `action_bound` that follows from a field is not finite."""
    if not isinstance(bound, jax.core.Tracer) and not math.isfinite(bound):
        raise ValueError(
            f"the mean speed of the field within ±2, of which action_bound is a multiple, is "
            f"{float(bound)}; expected finite velocities: guard a root, a logarithm or a division, "
            "or give action_bound"
        )


def check_shapes(name: str, actual: Any, expected: Any) -> None:
    """Raises ValueError if weights or a landscape do not have the expected shapes."""
    actual_shapes, expected_shapes = (
        str(jax.tree.map(jnp.shape, tree)) for tree in (actual, expected)
    )
    if actual_shapes != expected_shapes:
        raise ValueError(f"{name} has shapes {actual_shapes}; expected {expected_shapes}")


def cast_params(params: Params) -> Params:
    """Makes all leaves int32 or float32 arrays, so that all parameters share one compilation."""
    return Params(
        **{
            name: jax.tree.map(
                lambda x, name=name: jnp.asarray(x, jnp.int32 if name in WHOLE else jnp.float32),
                value,
            )
            for name, value in vars(params).items()
        }
    )
