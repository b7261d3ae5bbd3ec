"""Radial basis functions on a regular grid: Gaussian bumps that cover a box of latent states.

Axes: d latent dimensions, C centres.
"""

import math
from functools import reduce

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import INT32, Count, Positive, TwoOrMore
from jaxrl.numerics.linalg import matmul_of_few_columns


@struct.dataclass
class Grid:
    """The centres of the bumps; `check` says which grids are refused.

    The grid must exceed the reachable states: beyond it every feature is 0, and so is a field made
    of them, whatever its weights.
    """

    per_axis: TwoOrMore = struct.field(pytree_node=False, default=15)
    """Centres along each axis, at least 2."""
    dims: Count = struct.field(pytree_node=False, default=2)
    """d."""
    half_width: Positive = 2.5
    """Centres span the box from minus to plus this, in units of the state."""
    overlap: Positive = 1.2
    """Standard deviation of a bump, in units of the spacing between centres."""

    @property
    def num_features(self) -> int:
        """C, `per_axis` to the power d."""
        return self.per_axis**self.dims

    @property
    def spacing(self) -> float:
        """Between neighbouring centres, in units of the state."""
        return 2 * self.half_width / (self.per_axis - 1)

    @property
    def width(self) -> float:
        """Standard deviation of a bump, in units of the state."""
        return self.overlap * self.spacing

    def axis(self) -> jax.Array:
        """The coordinates of the centres along one axis, `[per_axis]`. Raises as `check` does."""
        check(self)
        return jnp.linspace(-1.0, 1.0, self.per_axis) * self.half_width

    def centres(self) -> jax.Array:
        """`[C, d]`; the last axis runs fastest."""
        axes = jnp.meshgrid(*self.dims * (self.axis(),), indexing="ij")
        return jnp.stack(axes, axis=-1).reshape(-1, self.dims)


def check(grid: Grid) -> None:
    """Raises ValueError for numbers out of range and for more centres than an index can count."""
    checks.config(grid)
    if grid.num_features > INT32:
        raise ValueError(
            f"{grid.per_axis} centres along {grid.dims} axes are more than 2**31: choose a smaller "
            "per_axis"
        )


def features(grid: Grid, z: jax.Array) -> jax.Array:
    """exp(-|z - c|² / 2w²) of every centre c with w = `grid.width`: `[..., C]` from `[..., d]`.

    A Gaussian bump is the product of one along each axis, so this takes d · `per_axis`
    exponentials and not C. Raises ValueError if the last axis of `z` is not d.
    """
    if z.ndim < 1 or z.shape[-1] != grid.dims:
        raise ValueError(
            f"states have shape {z.shape}, expected [..., {grid.dims}]: the grid has "
            f"{grid.dims} dimensions"
        )
    axis = grid.axis().reshape((1,) * z.ndim + (-1,))
    bumps = jnp.exp(-0.5 * jnp.square((z[..., None] - axis) / grid.width))  # [..., d, per_axis]
    outer = lambda a, b: (a[..., :, None] * b[..., None, :]).reshape(
        *z.shape[:-1], math.prod((a.shape[-1], b.shape[-1]))
    )
    return reduce(outer, (bumps[..., i, :] for i in range(grid.dims)))


def weighted_sum(grid: Grid, weights: jax.Array, z: jax.Array) -> jax.Array:
    """`features(grid, z) @ weights`: `[..., k]` from weights `[C, k]` and states `[..., d]`.

    A bump is a product of one factor per axis, so the weights are summed one axis at a time and the
    C features, which would take most of the time, are never computed.
    """
    points = z.reshape(math.prod(z.shape[:-1]), grid.dims).T  # [d, N]
    distance = (points[:, None] - grid.axis()[None, :, None]) / grid.width
    bumps = jnp.exp(-0.5 * distance**2)  # [d, per_axis, N]
    # The first axis of the grid is summed by a matrix product, with the points in columns: the
    # fastest layout for derivatives in both directions.
    table = weights.reshape(grid.per_axis, -1).T  # [per_axis^(d-1) k, per_axis]
    partial_sums = matmul_of_few_columns(table, bumps[0])
    for axis in range(1, grid.dims):
        rest = len(partial_sums) // grid.per_axis  # written out, as there may be no points
        partial_sums = partial_sums.reshape(grid.per_axis, rest, points.shape[1])
        partial_sums = jnp.sum(partial_sums * bumps[axis][:, None], axis=0)
    return partial_sums.reshape(weights.shape[1], points.shape[1]).T.reshape(
        *z.shape[:-1], weights.shape[1]
    )
