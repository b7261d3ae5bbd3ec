"""The stiffness of the ground under a colony, given by a law per column or by a measured image.

Stiffness is constant within a cell of 1 px, and off the ground it is that of the nearest cell.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs.arguments import Range

Positive = Annotated[float, Range(above=0.0)]
Number = float | jax.Array
"""A number that may be traced."""

LEAST_INTENSITY = 1e-6  # softer ground counts as this in logarithms, and as 1 for spawning
LARGEST_EXPONENT = 88.0  # e to this power is just within float32


@struct.dataclass
class Law:
    """The stiffness of the ground in one episode, as a function of the column c (px)."""

    exponential: bool | np.bool_ | jax.Array  # bool: b exp(m c), otherwise m c + b
    slope: Number  # m, per px
    base: Number  # b


@struct.dataclass
class Ranges:
    """Where `random_law` draws from: (low, high) of each number."""

    linear_slope: tuple[float, float] = (0.01, 0.1)
    linear_base: tuple[float, float] = (0.5, 2.0)
    exponential_slope: tuple[float, float] = (0.01, 0.05)
    exponential_base: tuple[Positive, Positive] = (0.5, 1.5)


def random_law(key: jax.Array, ranges: Ranges) -> Law:
    """A linear or exponential law with equal probability; slope and base uniform on its ranges.

    Consumes the key.
    """
    uniform = jax.random.uniform(key, (3,))
    exponential = uniform[0] < 0.5

    def interpolate(linear: tuple[float, float], other: tuple[float, float], share: jax.Array):
        low, high = (jnp.where(exponential, b, a) for a, b in zip(linear, other, strict=True))
        return low + share * (high - low)

    return Law(
        exponential=exponential,
        slope=interpolate(ranges.linear_slope, ranges.exponential_slope, uniform[1]),
        base=interpolate(ranges.linear_base, ranges.exponential_base, uniform[2]),
    )


def intensity(
    law: Law,
    field: jax.Array,
    x: jax.Array,
    y: jax.Array,
    width: Number,
    height: Number,
) -> jax.Array:
    """The stiffness at points (x, y), px, in their shape; float32.

    `field` is float32 `[H, W]`, measured values that replace the law, or `[0, 0]` for none.
    """
    if field.size:
        return _field_intensity(field, x, y, width, height)
    column = _cell(x, width)
    rate = jnp.where(law.exponential, law.slope, 0.0)  # no overflow where the law is linear
    return jnp.where(
        law.exponential, law.base * jnp.exp(rate * column), law.slope * column + law.base
    )


def log_intensity(
    law: Law,
    field: jax.Array,
    x: jax.Array,
    y: jax.Array,
    width: Number,
    height: Number,
) -> jax.Array:
    """The natural logarithm of `intensity`, which takes the same arguments.

    An exponential law never overflows here. Other stiffness below 1e-6 counts as 1e-6.
    """
    if field.size:
        return jnp.log(jnp.maximum(_field_intensity(field, x, y, width, height), LEAST_INTENSITY))
    column = _cell(x, width)
    linear = jnp.log(jnp.maximum(law.slope * column + law.base, LEAST_INTENSITY))
    exponential = law.slope * column + jnp.log(jnp.where(law.exponential, law.base, 1.0))
    return jnp.where(law.exponential, exponential, linear)


def check(law: Law, width: float, height: float, field: jax.Array | np.ndarray) -> None:
    """Raises ValueError for invalid ground; host code.

    Invalid are sizes that are not whole numbers or too small for the margins, numbers that are not
    finite, an exponential law that is not positive or overflows float32, a field of another size.
    """
    for name, size in (("width", width), ("height", height)):
        if not (np.all(np.mod(size, 1) == 0) and np.all(np.greater(size, 4))):
            raise ValueError(f"{name} is {size}; expected a whole number of px, 5 or more")
    slope, base = np.asarray(law.slope, np.float64), np.asarray(law.base, np.float64)
    for name, number in (("slope", slope), ("base", base)):
        if not np.all(np.isfinite(number)):
            raise ValueError(f"{name} of the ground is {number}; expected a finite number")
    if np.any(np.asarray(law.exponential) & (base <= 0)):
        raise ValueError(f"base is {base}; expected a positive number for an exponential law")
    exponent = np.maximum(slope * width, 0) + np.log(np.where(base > 0, base, 1.0))
    if np.any(np.asarray(law.exponential) & (exponent > LARGEST_EXPONENT)):
        raise ValueError(
            f"exponential slope {slope} reaches e^{np.max(exponent):.1f} over {width:g} px, which"
            f" float32 cannot hold; expected at most e^{LARGEST_EXPONENT:.0f}: lower the slope"
        )
    _check_field(np.asarray(field), width, height)


def _check_field(field: np.ndarray, width: float, height: float) -> None:
    if field.size and field.shape != (height, width):
        raise ValueError(
            f"field has shape {field.shape}; expected {(int(height), int(width))}, height by width"
        )
    if not np.all(np.isfinite(field)):
        raise ValueError("field has values that are not finite; expected numbers: fill the gaps")


def _field_intensity(
    field: jax.Array, x: jax.Array, y: jax.Array, width: Number, height: Number
) -> jax.Array:
    row, column = _cell(y, height).astype(jnp.int32), _cell(x, width).astype(jnp.int32)
    return field[row, column]


def _cell(position: jax.Array, size: Number) -> jax.Array:
    """The index of the cell under a position, 0 to `size` - 1; a whole number as float32."""
    return jnp.clip(jnp.trunc(position), 0, size - 1)
