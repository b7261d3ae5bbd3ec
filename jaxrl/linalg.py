"""Dense factorisations of small matrices, safe under `vmap` on few processor cores.

jaxlib's LAPACK calls spread a batch over XLA's thread pool and wait for it on a thread of that same
pool: with two cores, two such calls at once wait for each other for ever (seen with jaxlib 0.10.2).
One matrix is factorised on the spot, so `vmap` of LAPACK here is a loop. What positive definite
matrices need goes without LAPACK, and for a whole batch at once. Not for differentiation.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

one_at_a_time = jax.custom_batching.sequential_vmap


def all_at_once(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Makes `function` of arrays `[a, b, B]` one of `[..., a, b]`, however they are batched.

    The batch lies last, where processors work on neighbours together; `vmap` would put it first.
    """

    @jax.custom_batching.custom_vmap
    def apply(*matrices: jax.Array) -> jax.Array:
        batch = jnp.broadcast_shapes(*(x.shape[:-2] for x in matrices))
        whole = (jnp.broadcast_to(x, batch + x.shape[-2:]) for x in matrices)
        out = function(*(jnp.moveaxis(x.reshape(-1, *x.shape[-2:]), 0, -1) for x in whole))
        return jnp.moveaxis(out, -1, 0).reshape(batch + out.shape[:-1])

    @apply.def_vmap
    def batched(size, is_batched, *matrices):
        ndim = max(x.ndim - was for x, was in zip(matrices, is_batched, strict=True))
        # Axes of 1 behind the new one, where another matrix has more axes of its own.
        behind = lambda x: x.reshape(size, *(ndim + 1 - x.ndim) * (1,), *x.shape[1:])
        pairs = zip(matrices, is_batched, strict=True)
        return apply(*(behind(x) if was else x for x, was in pairs)), True

    return apply


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
def inverse(square: jax.Array) -> jax.Array:
    """`[d, d]`."""
    return jnp.linalg.inv(square)


@all_at_once
def log_determinant(positive: jax.Array) -> jax.Array:
    """`[...]` of positive definite matrices `[..., d, d]`; NaN where a pivot is not above 0."""
    if len(positive) == 1:
        return jnp.log(positive[0, 0])
    if len(positive) == 2:
        (a, b), (c, d) = positive
        return jnp.log(a * d - b * c)

    def eliminate(k, carry):
        rest, total = carry
        row, column = rest[k], rest[:, k]
        rest = rest - column[:, None] * (row / row[k][None])[None]
        return rest, total + jnp.log(row[k])

    nothing = jnp.zeros(positive.shape[2:], positive.dtype)
    return jax.lax.fori_loop(0, len(positive), eliminate, (positive, nothing))[1]


@all_at_once
def solve_positive(positive: jax.Array, right: jax.Array) -> jax.Array:
    """`x [..., d, k]` with `positive @ x = right`: positive definite `[..., d, d]`, `[..., d, k]`.

    Gauss-Jordan elimination, which needs no pivoting for such matrices.
    """
    size = len(positive)
    if size == 1:
        return right / positive
    if size == 2:
        (a, b), (c, d) = positive
        x, y = right
        return (
            jnp.stack([d[None] * x - b[None] * y, a[None] * y - c[None] * x])
            / ((a * d - b * c)[None, None])
        )

    def eliminate(k, both):  # [d, d + k, B]
        row = both[k] / both[k, k][None]
        return (both - both[:, k][:, None] * row[None]).at[k].set(row)

    both = jnp.concatenate([positive, right], axis=1)
    return jax.lax.fori_loop(0, size, eliminate, both)[:, size:]


@all_at_once
def root(positive: jax.Array) -> jax.Array:
    """Lower triangular `[..., d, d]` whose product with its transpose is `positive`.

    Cholesky's factor. Semidefinite matrices may be given too: a column whose pivot is 0, up to
    rounding, is 0.
    """
    size = len(positive)
    index = jnp.arange(size)
    smallest = size * jnp.finfo(positive.dtype).eps

    def eliminate(k, carry):
        rest, factor = carry
        pivot = rest[k, k]
        column = jnp.where(
            (pivot > smallest * positive[k, k])[None] & (index >= k)[:, None],
            rest[:, k] / jnp.sqrt(jnp.maximum(pivot, jnp.finfo(pivot.dtype).tiny))[None],
            0.0,
        )
        return rest - column[:, None] * column[None], factor.at[:, k].set(column)

    start = (positive, jnp.zeros_like(positive))
    if size <= 3:  # a loop would cost more than its few lines
        for k in range(size):
            start = eliminate(k, start)
        return start[1]
    return jax.lax.fori_loop(0, size, eliminate, start)[1]


def orthogonal_start(scale: float) -> Callable[..., jax.Array]:
    """`jax.nn.initializers.orthogonal(scale)`: `(key, shape, dtype) -> weights`."""
    start = jax.nn.initializers.orthogonal(scale)
    return lambda key, shape, dtype=jnp.float32: one_at_a_time(lambda k: start(k, shape, dtype))(
        key
    )
