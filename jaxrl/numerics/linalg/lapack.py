"""Factorisations of LAPACK, one matrix at a time under `vmap` (see `batching`).

They are not differentiable.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint

from jaxrl.numerics.linalg.batching import one_at_a_time


@one_at_a_time
def eigh(symmetric: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`(values [d], vectors [d, d])`, ascending."""
    values, vectors = jnp.linalg.eigh(symmetric)
    return values, vectors


@one_at_a_time
def singular_values(matrix: jax.Array) -> jax.Array:
    """`[min(a, b)]` of a matrix `[a, b]`, descending."""
    return jnp.linalg.svd(matrix, compute_uv=False)


@one_at_a_time
def svd(matrix: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`(U [a, k], s [k], Vᵀ [k, b])` of a matrix `[a, b]`, k = min(a, b), with s descending."""
    u, s, v = jnp.linalg.svd(matrix, full_matrices=False)
    return u, s, v


@one_at_a_time
def eig(square: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`(values [d], vectors [d, d])` of any square matrix, complex, in no order."""
    values, vectors = jnp.linalg.eig(square)
    return values, vectors


@one_at_a_time
def inverse(square: jax.Array) -> jax.Array:
    """`[d, d]`."""
    return jnp.linalg.inv(square)


@one_at_a_time
def inverse_root(positive: jax.Array) -> jax.Array:
    """S `[d, d]` with S Sᵀ the inverse of a positive definite matrix `[d, d]`.

    A ridge of d roundings of its mean eigenvalue keeps Cholesky's factorisation from failing.
    """
    ridge = jnp.finfo(positive.dtype).eps * jnp.trace(positive)
    lower = jnp.linalg.cholesky(positive + ridge * jnp.eye(len(positive)))
    unit = jnp.eye(len(positive), dtype=positive.dtype)
    root = jax.scipy.linalg.solve_triangular(lower, unit, lower=True).T
    # In LAPACK's order a loop that carries the root would transpose all of it at every step, even
    # where this is the branch of a `cond` that is hardly ever taken.
    return with_layout_constraint(root, Layout((0, 1)))


def orthogonal_start(scale: float) -> Callable[..., jax.Array]:
    """`jax.nn.initializers.orthogonal(scale)`: `(key, shape, dtype) -> weights`."""
    start = jax.nn.initializers.orthogonal(scale)
    make_start = lambda shape, dtype: one_at_a_time(lambda key: start(key, shape, dtype))
    return lambda key, shape, dtype=jnp.float32: make_start(shape, dtype)(key)
