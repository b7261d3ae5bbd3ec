"""Factorisations of matrices of a few rows, written out: differentiable, and fast in large batches.

Every element is one array over the batch that `vmap` makes, so that XLA fuses a whole factorisation
into a few loops; LAPACK would be called once for each matrix. Letters: d rows, k right-hand sides.
"""

import jax
import jax.numpy as jnp


def cholesky(positive: jax.Array) -> jax.Array:
    """The lower triangular L `[d, d]` with L Lᵀ = `positive`, which must be positive definite."""
    size = len(positive)
    lower: list[list[jax.Array]] = [[] for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = positive[i, j]
            for k in range(j):
                rest = rest - lower[i][k] * lower[j][k]
            lower[i].append(jnp.sqrt(rest) if i == j else rest / lower[j][j])
    zero = jnp.zeros_like(positive[0, 0])
    return jnp.stack([jnp.stack([*row, *[zero] * (size - len(row))]) for row in lower])


def solve_lower(lower: jax.Array, right: jax.Array) -> jax.Array:
    """`x [d, k]` with `lower @ x = right`, for a lower triangle `[d, d]`."""
    rows: list[jax.Array] = []
    for i in range(len(lower)):
        rest = right[i]
        for j, row in enumerate(rows):
            rest = rest - lower[i, j] * row
        rows.append(rest / lower[i, i])
    return jnp.stack(rows)


def solve_upper(lower: jax.Array, right: jax.Array) -> jax.Array:
    """`x [d, k]` with `lower.T @ x = right`, for a lower triangle `[d, d]`."""
    size = len(lower)
    rows: list[jax.Array] = []  # the last one first
    for i in reversed(range(size)):
        rest = right[i]
        for row, j in zip(rows, reversed(range(size)), strict=False):
            rest = rest - lower[j, i] * row
        rows.append(rest / lower[i, i])
    return jnp.stack(rows[::-1])


def log_determinant(lower: jax.Array) -> jax.Array:
    """log |L Lᵀ| of a lower triangle `[d, d]`."""
    return 2 * jnp.sum(jnp.log(jnp.diagonal(lower)))
