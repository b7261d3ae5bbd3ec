"""Dense factorisations of small matrices, safe under `vmap` on few processor cores.

jaxlib's LAPACK calls spread a batch over XLA's thread pool and wait for it on a thread of that same
pool: with two cores, two such calls at once wait for each other for ever (seen with jaxlib 0.10.2).
One matrix is factorised on the spot, so `vmap` here is a loop. Not for differentiation.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

one_at_a_time = jax.custom_batching.sequential_vmap


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


def orthogonal_start(scale: float) -> Callable[..., jax.Array]:
    """`jax.nn.initializers.orthogonal(scale)`: `(key, shape, dtype) -> weights`."""
    start = jax.nn.initializers.orthogonal(scale)
    return lambda key, shape, dtype=jnp.float32: one_at_a_time(lambda k: start(k, shape, dtype))(
        key
    )
