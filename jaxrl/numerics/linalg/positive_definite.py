"""Solutions and roots of positive definite matrices, a whole batch at once (see `batching`).

They are not differentiable.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxrl.numerics.linalg.batching import all_at_once
from jaxrl.numerics.linalg.products import FEW
from jaxrl.types import PyTree


@all_at_once
def solve_positive(positive: jax.Array, right: jax.Array) -> jax.Array:
    """`x [..., d, k]` with `positive @ x = right`: positive definite `[..., d, d]`, `[..., d, k]`.

    Gauss-Jordan elimination, which needs no pivoting for such matrices.
    """
    size = len(positive)
    if size == 0:
        return right
    if size == 1:
        return right / positive
    if size == 2:
        (a, b), (c, d) = positive
        x, y = right
        ratio = c / a  # no determinant, which may overflow, or underflow to 0
        second = (y - ratio[None] * x) / (d - ratio * b)[None]
        return jnp.stack([(x - b[None] * second) / a[None], second])

    def eliminate(k, augmented):  # [d, d + k, B]
        row = augmented[k] / augmented[k, k][None]
        return (augmented - augmented[:, k][:, None] * row[None]).at[k].set(row)

    augmented = jnp.concatenate([positive, right], axis=1)
    return jax.lax.fori_loop(0, size, eliminate, augmented)[:, size:]


def root(positive: jax.Array) -> jax.Array:
    """A square root `[..., d, d]`: its product with its transpose is `positive`.

    Cholesky's factor, lower triangular for d <= 2, above that up to the order of its rows.
    Semidefinite matrices may be given too: a column whose pivot is 0, up to 8 d roundings, is 0.
    """
    if positive.shape[-1] <= 2:
        return _triangular_root(positive)
    return root_and_coordinates(positive, jnp.zeros_like(positive[..., :1]))[0]


@all_at_once
def _triangular_root(positive: jax.Array) -> jax.Array:
    """`root` without pivoting, which two rows do not need: nothing follows them."""
    size, float_info = len(positive), jnp.finfo(positive.dtype)

    def eliminate(k, carry):
        residual, factor = carry
        pivot, least = residual[k, k], 8 * size * float_info.eps * positive[k, k]
        # XLA may round a pivot one way where it is compared and another where it divides.
        divisor = jnp.maximum(
            pivot, float_info.tiny if k == 0 else jnp.maximum(least, float_info.tiny)
        )
        column = jnp.where(
            (pivot > least)[None] & (jnp.arange(size) >= k)[:, None],
            residual[:, k] / jnp.sqrt(divisor)[None],
            0.0,
        )
        return residual - column[:, None] * column[None], factor.at[:, k].set(column)

    return _repeat(size, eliminate, (positive, jnp.zeros_like(positive)))[1]


def root_and_coordinates(positive: jax.Array, right: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A square root S `[..., d, d]` of `positive`, and c `[..., d, 1]` with S c = `right`.

    For `right` `[..., d, 1]` in the range of `positive`; c is 0 where S has a column of 0s.
    """
    augmented = _pivoted_cholesky(positive, right)
    return augmented[..., :-1], augmented[..., -1:]


@all_at_once
def _pivoted_cholesky(positive: jax.Array, right: jax.Array) -> jax.Array:
    """`[..., d, d + 1]`, S and c: Cholesky's factorisation with diagonal pivoting.

    The next row is the one of which most is left, relative to its diagonal. In another order a
    small pivot may have few digits, and spoils all that follow: the factor of a singular matrix
    then misses it by thousands of roundings (Higham 2002, section 10.3).
    """
    size, float_info = len(positive), jnp.finfo(positive.dtype)
    index = jnp.arange(size)[:, None]
    diagonal_of = lambda x: jnp.sum(jnp.where((index == index.T)[:, :, None], x, 0.0), axis=1)
    diagonal = diagonal_of(positive)  # [d, B]

    def eliminate(k, carry):
        residual, right, waiting, augmented = carry
        residual_diagonal = diagonal_of(residual)
        share = jnp.where(waiting, residual_diagonal / jnp.maximum(diagonal, float_info.tiny), -1.0)
        chosen = index == jnp.argmax(share, axis=0)[None]
        row = lambda x: jnp.sum(jnp.where(chosen, x, 0.0), axis=0)  # [B]
        least = 8 * size * float_info.eps * row(diagonal)
        is_significant = (row(residual_diagonal) > least)[None]
        length = jnp.sqrt(jnp.maximum(row(residual_diagonal), jnp.maximum(least, float_info.tiny)))
        column = jnp.sum(jnp.where(chosen[None], residual, 0.0), axis=1) / length[None]
        column = jnp.where(is_significant & waiting, column, 0.0)
        coordinate = jnp.where(is_significant, row(right) / length, 0.0)  # [1, B]
        augmented = augmented.at[:, k].set(column).at[k, -1].set(coordinate[0])
        residual = residual - column[:, None] * column[None]
        return residual, right - column * coordinate, waiting & ~chosen, augmented

    augmented = jnp.zeros((size, size + 1, positive.shape[2]), positive.dtype)
    start = (positive, right[:, 0], jnp.ones(diagonal.shape, bool), augmented)
    return _repeat(size, eliminate, start)[-1]


def root1p(factor: jax.Array) -> jax.Array:
    """Lower triangular L `[..., k, k]` with L Lᵀ = I + F Fᵀ, for F = `factor` `[..., k, m]`.

    F Fᵀ is never formed: in float32 the 1 would be lost for F above 4,000, and with it directions
    in which F is small. Here that happens only for F above 10⁷.
    """
    unit = _unit(factor)
    return _root_and_excess(factor * unit, unit)[..., :-1] / unit


def log_determinant1p(factor: jax.Array) -> jax.Array:
    """log det(I + F Fᵀ) `[...]` for F = `factor` `[..., k, m]`; accurate near 0, too."""
    unit = _unit(factor)
    excess = _root_and_excess(factor * unit, unit)[..., -1]
    unit = unit[..., 0]
    large = jnp.log(unit**2 + excess) - 2 * jnp.log(unit)
    return jnp.sum(jnp.where(unit == 1, jnp.log1p(excess), large), axis=-1)


def _unit(factor: jax.Array) -> jax.Array:
    """A power of two `[..., 1, 1]` that keeps squares of the factor times it from overflowing.

    1 where the factor is below 10¹⁵, as it should be: nothing is then changed, to the last bit.
    """
    largest = jnp.max(jnp.abs(factor), axis=(-2, -1), keepdims=True, initial=0.0)
    return jnp.where(largest > 2.0**50, 2.0**-60, 1.0).astype(factor.dtype)


@all_at_once
def _root_and_excess(factor: jax.Array, unit: jax.Array) -> jax.Array:
    """`[..., k, k + 1]`: L with L Lᵀ = u² I + F Fᵀ, and the squares of its diagonal less u².

    For u = `unit` `[..., 1, 1]`. Orthogonalises the rows of [u I, F] (modified Gram-Schmidt; Björck
    1967). Row j keeps its u, so the excess of its squared length is a sum, without cancellation.
    """
    size = len(factor)
    index = jnp.arange(size)
    scaled = jnp.eye(size, dtype=factor.dtype)[:, :, None] * unit

    def orthogonalise(k, carry):
        rows, lower = carry
        excess = jnp.sum(rows[k].at[k].set(0.0) ** 2, axis=0)
        length = jnp.sqrt(unit[0, 0] ** 2 + excess)
        direction = rows[k] / length[None]
        projections = jnp.sum(rows * direction[None], axis=1)  # [k, B]
        column = jnp.where((index > k)[:, None], projections, 0.0).at[k].set(length)
        lower = lower.at[:, k].set(column).at[k, -1].set(excess)
        return rows - column[:, None] * direction[None], lower

    lower = jnp.zeros((size, size + 1, factor.shape[2]), factor.dtype)
    rows = jnp.concatenate([scaled, factor], axis=1)
    return _repeat(size, orthogonalise, (rows, lower))[1]


@all_at_once
def solve_lower(lower: jax.Array, right: jax.Array) -> jax.Array:
    """`x [..., k, m]` with `lower @ x = right`, for a triangle `[..., k, k]`; `[..., k, m]`."""

    def substitute(k, remainder):
        solved = remainder[k] / lower[k, k][None]
        below = jnp.where((jnp.arange(len(lower)) > k)[:, None], lower[:, k], 0.0)
        return (remainder - below[:, None] * solved[None]).at[k].set(solved)

    return _repeat(len(lower), substitute, right)


def _repeat(times: int, step: Callable, start: PyTree) -> PyTree:
    """`fori_loop` from 0; unrolled where a loop would cost more than its steps.

    That is up to 3 steps on a CPU and up to 8 on accelerators, where a step of a loop is several
    kernels.
    """

    def unroll(start: PyTree) -> PyTree:
        for k in range(times):
            start = step(k, start)
        return start

    if times <= 3:
        return unroll(start)
    loop = lambda start: jax.lax.fori_loop(0, times, step, start)
    if times > FEW:
        return loop(start)
    return jax.lax.platform_dependent(start, cpu=loop, default=unroll)
