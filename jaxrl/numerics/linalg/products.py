"""Matrix products in full precision, and sums in their place where few terms are added."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

FEW = 8
"""Terms of a sum, or rows of a matrix, at most, that accelerators write out."""


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """`a @ b` in full float32 on every accelerator.

    By default TPUs round both factors to bfloat16 and recent NVIDIA GPUs (Ampere and later) to
    TensorFloat-32, which leaves two to three significant digits.
    """
    return jnp.matmul(a, b, precision="highest")


def matmul_of_few_terms(
    a: jax.Array, b: jax.Array, multiply: Callable[[jax.Array, jax.Array], jax.Array] = matmul
) -> jax.Array:
    """`multiply` of a `[..., k]` and b `[k, n]`, which works where k is small, too.

    XLA for NVIDIA GPUs can fail to tile such a product or its derivative ("Couldn't find output
    tile sizes", jaxlib 0.10.2), so up to k = 8 accelerators write the sum out. A CPU keeps the
    product, and with it every bit of its results.
    """
    return _multiply_or_sum(a, b, a.shape[-1], multiply)


def matmul_of_few_columns(a: jax.Array, b: jax.Array) -> jax.Array:
    """`a @ b` of a `[..., k]` and b `[k, n]`, which works where n is small, too.

    The derivative by `a` is a product of n terms: see `matmul_of_few_terms`.
    """
    return _multiply_or_sum(a, b, b.shape[-1], matmul)


def _multiply_or_sum(a: jax.Array, b: jax.Array, size: int, multiply: Callable) -> jax.Array:
    """`multiply` of both, on accelerators a sum of terms if `size` is small."""
    if size > FEW:
        return multiply(a, b)
    return jax.lax.platform_dependent(a, b, cpu=multiply, default=sum_of_terms)


def sum_of_terms(a: jax.Array, b: jax.Array) -> jax.Array:
    """`a @ b` of a `[..., k]` and b `[k, n]` without a matrix product."""
    return jnp.sum(a[..., None] * b.reshape((1,) * (a.ndim - 1) + b.shape), axis=-2)
