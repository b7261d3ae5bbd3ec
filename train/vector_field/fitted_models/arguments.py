"""What is given to a learned model: arrays and numbers, checked, and refused in one line.

Axes: T and H steps, n channels, m inputs, d latent dimensions.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.vector_field.data.input_delays import delay_rows


class Sizes(NamedTuple):
    """Sizes of one observation, one input and one state."""

    channels: int  # n
    inputs: int  # m
    dims: int  # d
    delays: tuple[int, ...] = ()  # [m] steps after which inputs act; empty: at once

    @property
    def pending(self) -> int:
        """Steps after the last one at which inputs that were given still act."""
        return max(self.delays, default=0)

    def at_effect(self, u: jax.Array | np.ndarray) -> np.ndarray:
        """Inputs `[T, m]` at the steps at which they act; before the first one they are as then."""
        u = np.asarray(u)
        return delay_rows(u, self.delays) if any(self.delays) and len(u) else u


def record_of(
    sizes: Sizes, is_count: np.ndarray | None, y: Any, u: Any
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """`y`, `u` and which of y was observed; None: everything. Raises ValueError for others."""
    y, u = np.asarray(y, np.float32), np.asarray(u, np.float32)
    expected = (sizes.channels,), (sizes.inputs,)
    fits = y.ndim == u.ndim == 2 and len(y) == len(u) > 0 and (y.shape[1:], u.shape[1:]) == expected
    if not fits or not np.isfinite(u).all() or np.isinf(y).any():
        raise ValueError(
            f"y and u have shapes {y.shape} and {u.shape}; expected [T, {sizes.channels}] and "
            f"[T, {sizes.inputs}], of finite numbers, and NaN where y is missing"
        )
    observed = ~np.isnan(y)
    y = np.where(observed, y, 0)
    if is_count is not None and ((y < 0) | (y != np.round(y)))[:, is_count].any():
        raise ValueError("y holds numbers that are no counts in channels that count: give counts")
    u = sizes.at_effect(u)
    return jnp.asarray(y), jnp.asarray(u), None if observed.all() else jnp.asarray(observed)


def until_effect(y: Any, u: Any, sizes: Sizes) -> tuple[Any, Any]:
    """A record and the steps behind it at which its inputs still act; 0 is given there."""
    y, u = np.asarray(y, np.float32), np.asarray(u, np.float32)
    if not sizes.pending or y.ndim != 2 or u.ndim != 2:
        return y, u
    nothing = np.full((sizes.pending, y.shape[1]), np.nan, np.float32)
    return np.concatenate([y, nothing]), np.pad(u, ((0, sizes.pending), (0, 0)))


def state(z: Any, sizes: Sizes) -> jax.Array:
    """One state `[d]`. Raises ValueError for another shape."""
    z = array_of("z", z, "[d]", (sizes.dims,))
    if z.ndim != 1:
        raise ValueError(f"z has shape {z.shape}, expected [{sizes.dims}]: give one state")
    return z


def inputs(u: Any, sizes: Sizes) -> jax.Array:
    """Inputs `[H, m]`. Raises ValueError for another shape."""
    u = array_of("u", u, "[H, m]", (sizes.inputs,))
    if u.ndim != 2:
        raise ValueError(f"u has shape {u.shape}, expected [H, {sizes.inputs}]: give H inputs")
    return u


def array_of(name: str, x: Any, axes: str, last: tuple[int]) -> jax.Array:
    """An array whose last axis has this size. Raises ValueError for another one."""
    x = jnp.asarray(x, jnp.float32)
    if x.shape[-1:] != last:
        raise ValueError(f"{name} has shape {x.shape}, expected {axes} with {last[0]} at the end")
    return x


def whole_number(name: str, number: Any, least: int) -> int:
    """A whole number. Raises ValueError for others."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise ValueError(f"{name} is {number}, expected a whole number of at least {least}")
    return int(number)


def probabilities(levels: Any) -> tuple[float, ...]:
    """Levels of quantiles. Raises ValueError unless all are between 0 and 1."""
    numbers = np.asarray(levels, float)
    if numbers.ndim != 1 or not numbers.size or not ((numbers > 0) & (numbers < 1)).all():
        raise ValueError(
            f"levels are {levels}, expected numbers between 0 and 1: give at least one"
        )
    return tuple(numbers.tolist())
