"""Linear algebra of small matrices: full-precision products, factorisations safe under `vmap`.

jaxlib's batched LAPACK calls wait for XLA's thread pool on a thread of that same pool: with two
cores, two such calls at once deadlock (seen with jaxlib 0.10.2). A single matrix is factorised on
the calling thread, so `vmap` of LAPACK is a loop here. Functions of positive definite matrices do
not use LAPACK and handle a whole batch at once. Factorisations are not differentiable.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

PyTree = Any


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """`a @ b` in full float32 on every accelerator.

    By default TPUs round both factors to bfloat16 and recent NVIDIA GPUs (Ampere and later) to
    TensorFloat-32, which leaves two to three significant digits.
    """
    return jnp.matmul(a, b, precision="highest")


def one_at_a_time(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Makes `vmap` of `function` a loop over the examples.

    On a mesh with Explicit axes each device loops over the examples it holds.
    """

    @jax.custom_batching.custom_vmap
    def apply(*args: PyTree) -> PyTree:
        return function(*args)

    @apply.def_vmap
    def looped(size: int, is_batched: list[PyTree], *args: PyTree) -> tuple[PyTree, PyTree]:
        leaves, structure = jax.tree.flatten(args)
        mapped = jax.tree.leaves(is_batched)
        examples = [x for x, own in zip(leaves, mapped, strict=True) if own]
        shared = [x for x, own in zip(leaves, mapped, strict=True) if not own]

        def loop(examples: list[jax.Array], shared: list[jax.Array]) -> PyTree:
            def one(example: list[jax.Array]) -> PyTree:
                own, same = iter(example), iter(shared)
                mixed = [next(own if is_own else same) for is_own in mapped]
                return apply(*jax.tree.unflatten(structure, mixed))

            return jax.lax.map(one, examples)

        out = _where_the_examples_are(loop, examples)(examples, shared)
        return out, jax.tree.map(lambda _: True, out)

    return apply


def _where_the_examples_are(loop: Callable, examples: list[jax.Array]) -> Callable:
    """`loop` on each device's share of `examples`, if their first axis lies on Explicit ones."""
    placed = [jax.typeof(x).sharding for x in examples]
    axes = next((s.spec[0] for s in placed if len(s.spec) and s.spec[0] is not None), None)
    if axes is None:
        return loop
    along = jax.P(axes)
    return jax.shard_map(
        loop, mesh=placed[0].mesh, in_specs=(along, jax.P()), out_specs=along, check_vma=False
    )


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

    return _repeated(size, eliminate, (positive, jnp.zeros_like(positive)))[1]


def root1p(factor: jax.Array) -> jax.Array:
    """Lower triangular L `[..., k, k]` with L Lᵀ = I + F Fᵀ, for F = `factor` `[..., k, m]`.

    F Fᵀ is never formed: in float32 the 1 would be lost for F above 4,000, and with it the
    directions in which F is small. Here that happens only for F above 10⁷.
    """
    return _root_and_excess(factor)[..., :-1]


def log_determinant1p(factor: jax.Array) -> jax.Array:
    """log det(I + F Fᵀ) `[...]` for F = `factor` `[..., k, m]`; accurate near 0, too."""
    return jnp.sum(jnp.log1p(_root_and_excess(factor)[..., -1]), axis=-1)


@all_at_once
def _root_and_excess(factor: jax.Array) -> jax.Array:
    """`[..., k, k + 1]`: L of `root1p`, and beside it the squares of its diagonal less 1.

    Orthogonalises the rows of [I, F] (modified Gram-Schmidt; Björck 1967). Row j keeps its 1 of I,
    so the excess of its squared length over 1 is a sum, without cancellation.
    """
    size = len(factor)
    index = jnp.arange(size)
    unit = jnp.eye(size, dtype=factor.dtype)[:, :, None]
    unit = jnp.broadcast_to(unit, (size, size, factor.shape[2]))

    def orthogonalise(k, carry):
        rows, lower = carry
        excess = jnp.sum(rows[k].at[k].set(0.0) ** 2, axis=0)
        length = jnp.sqrt(1 + excess)
        direction = rows[k] / length[None]
        along = jnp.sum(rows * direction[None], axis=1)  # [k, B]
        column = jnp.where((index > k)[:, None], along, 0.0).at[k].set(length)
        lower = lower.at[:, k].set(column).at[k, -1].set(excess)
        return rows - column[:, None] * direction[None], lower

    lower = jnp.zeros((size, size + 1, factor.shape[2]), factor.dtype)
    start = (jnp.concatenate([unit, factor], axis=1), lower)
    return _repeated(size, orthogonalise, start)[1]


@all_at_once
def solve_lower(lower: jax.Array, right: jax.Array) -> jax.Array:
    """`x [..., k, m]` with `lower @ x = right`, for a triangle `[..., k, k]`; `[..., k, m]`."""

    def substitute(k, rest):
        solved = rest[k] / lower[k, k][None]
        below = jnp.where((jnp.arange(len(lower)) > k)[:, None], lower[:, k], 0.0)
        return (rest - below[:, None] * solved[None]).at[k].set(solved)

    return _repeated(len(lower), substitute, right)


def _repeated(times: int, step: Callable, start: PyTree) -> PyTree:
    """`fori_loop` from 0; unrolled for up to 3 steps, where a loop would cost more than they do."""
    if times > 3:
        return jax.lax.fori_loop(0, times, step, start)
    for k in range(times):
        start = step(k, start)
    return start


@one_at_a_time
def inverse_root(positive: jax.Array) -> jax.Array:
    """S `[d, d]` with S Sᵀ the inverse of a positive definite matrix `[d, d]`.

    A ridge of d roundings of its mean eigenvalue keeps Cholesky's factorisation from failing.
    """
    ridge = jnp.finfo(positive.dtype).eps * jnp.trace(positive)
    lower = jnp.linalg.cholesky(positive + ridge * jnp.eye(len(positive)))
    unit = jnp.eye(len(positive), dtype=positive.dtype)
    return jax.scipy.linalg.solve_triangular(lower, unit, lower=True).T


def orthogonal_start(scale: float) -> Callable[..., jax.Array]:
    """`jax.nn.initializers.orthogonal(scale)`: `(key, shape, dtype) -> weights`."""
    start = jax.nn.initializers.orthogonal(scale)
    return lambda key, shape, dtype=jnp.float32: one_at_a_time(lambda k: start(k, shape, dtype))(
        key
    )
