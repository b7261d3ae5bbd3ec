"""Inverses of small positive definite matrices, differentiable, and fast in large batches.

LAPACK would be called once for each matrix of a batch; here every step is one operation on the
whole batch that `vmap` makes. Derivatives are written as products, so that nothing of the steps is
kept for them. Letters: d rows.
"""

import jax
import jax.numpy as jnp

from jaxrl.numerics.linalg import matmul


@jax.custom_jvp
def inverse(positive: jax.Array) -> tuple[jax.Array, jax.Array]:
    """M⁻¹ `[d, d]` and log |M| of a positive definite matrix `[d, d]`.

    By sweeping one row and column after the other (Goodnight 1979); pivots need no order, as those
    of a positive definite matrix are positive.
    """
    size = len(positive)
    log_determinant = jnp.zeros_like(positive[0, 0])
    matrix = positive
    for k in range(size):
        is_pivot = jnp.arange(size) == k
        pivot = matrix[k, k]
        log_determinant = log_determinant + jnp.log(pivot)
        row, column = matrix[k] / pivot, matrix[:, k] / pivot
        swept = matrix - column[:, None] * matrix[k][None]
        swept = jnp.where(is_pivot[:, None], row[None], swept)
        corner = jnp.where(is_pivot, 1 / pivot, -column)
        matrix = jnp.where(is_pivot[None], corner[:, None], swept)
    return (matrix + matrix.T) / 2, log_determinant


@inverse.defjvp
def _inverse_jvp(primals: tuple, tangents: tuple) -> tuple:
    (positive,), (change,) = primals, tangents
    inverted, log_determinant = inverse(positive)
    product = matmul(inverted, change)
    return (inverted, log_determinant), (-matmul(product, inverted), jnp.trace(product))
