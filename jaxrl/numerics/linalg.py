"""Linear algebra of small matrices: full-precision products, factorisations safe under `vmap`.

jaxlib's batched LAPACK calls wait for XLA's thread pool on a thread of that same pool: with two
cores, two such calls at once deadlock (seen with jaxlib 0.10.2). A single matrix is factorised on
the calling thread, so `vmap` of LAPACK is a loop here. Functions of positive definite matrices do
not use LAPACK and handle a whole batch at once. Factorisations are not differentiable.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint

PyTree = Any

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


def one_at_a_time(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Makes `vmap` of `function` a loop; on Explicit axes, over the examples of each device."""

    @jax.custom_batching.custom_vmap
    def apply(*args: PyTree) -> PyTree:
        return function(*args)

    @apply.def_vmap
    def loop_over_examples(
        size: int, is_batched: list[PyTree], *args: PyTree
    ) -> tuple[PyTree, PyTree]:
        leaves, structure = jax.tree.flatten(args)
        mapped = jax.tree.leaves(is_batched)
        examples = [x for x, own in zip(leaves, mapped, strict=True) if own]
        shared = [x for x, own in zip(leaves, mapped, strict=True) if not own]

        def loop(examples: list[jax.Array], shared: list[jax.Array]) -> PyTree:
            def apply_to_example(example: list[jax.Array]) -> PyTree:
                own, same = iter(example), iter(shared)
                mixed = [next(own if is_own else same) for is_own in mapped]
                return apply(*jax.tree.unflatten(structure, mixed))

            return jax.lax.map(apply_to_example, examples)

        out = _shard_by_examples(loop, examples)(examples, shared)
        return out, jax.tree.map(lambda _: True, out)

    return apply


def _shard_by_examples(loop: Callable, examples: list[jax.Array]) -> Callable:
    """`loop` on each device's share of `examples`, if their first axis lies on Explicit ones."""
    shardings = [jax.typeof(x).sharding for x in examples]
    axes = next((s.spec[0] for s in shardings if len(s.spec) and s.spec[0] is not None), None)
    if axes is None:
        return loop
    spec = jax.P(axes)
    return jax.shard_map(
        loop, mesh=shardings[0].mesh, in_specs=(spec, jax.P()), out_specs=spec, check_vma=False
    )


def all_at_once(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Makes `function` of arrays `[a, b, B]` one of `[..., a, b]`, however they are batched.

    The batch lies last, where processors work on neighbours together; `vmap` would put it first.
    """
    function = jax.jit(function)

    @jax.custom_batching.custom_vmap
    def apply(*matrices: jax.Array) -> jax.Array:
        batch = jnp.broadcast_shapes(*(x.shape[:-2] for x in matrices))
        broadcast = (jnp.broadcast_to(x, batch + x.shape[-2:]) for x in matrices)
        flat = (x.reshape(math.prod(batch), *x.shape[-2:]) for x in broadcast)
        out = function(*(jnp.moveaxis(x, 0, -1) for x in flat))
        return jnp.moveaxis(out, -1, 0).reshape(batch + out.shape[:-1])

    @apply.def_vmap
    def apply_to_batch(size, is_batched, *matrices):
        ndim = max(x.ndim - is_mapped for x, is_mapped in zip(matrices, is_batched, strict=True))
        # Axes of 1 behind the new one, where another matrix has more axes of its own.
        add_axes = lambda x: x.reshape(size, *(ndim + 1 - x.ndim) * (1,), *x.shape[1:])
        pairs = zip(matrices, is_batched, strict=True)
        return apply(*(add_axes(x) if is_mapped else x for x, is_mapped in pairs)), True

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
