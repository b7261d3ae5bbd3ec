"""Agreement of learned features with true eigenvectors, up to signs and repeated eigenvalues.

S states, d learned features, e >= d true vectors, `weight [S]` the law of states in whose L2 all
angles are measured, <u, v> = Σ weight ū v. Pure functions on float32, or on complex64 for the
eigenvectors of directed walks; groups and truth are data, so that mazes of equal
size share one compilation. Products are in full float32 (`linalg.matmul`).
"""

import jax
import jax.numpy as jnp

from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

FLOOR = 1e-3  # least eigenvalue of a Gram matrix of unit columns that still counts as a direction
PARALLEL = 0.9  # |cos| above which two features are the same one


def similarity(
    learned: jax.Array,
    truth: jax.Array,
    weight: jax.Array,
    learned_group: jax.Array,
    truth_group: jax.Array,
) -> jax.Array:
    """Mean over d of the cosines of the principal angles between learned and true eigenspaces.

    A group is a set of features that share one eigenspace. Of the singular values of Vᵀ D Q, with V
    the true columns of a group, D = diag(weight) and Q its learned columns made orthonormal, all
    count equally. For a simple eigenvalue that is |cos|; rotations within a group change nothing
    (Björck & Golub 1973). A feature that is 0, or repeats others of its group, adds 0.
    Within 1e-4 of exact arithmetic.

    Args:
      learned: `[S, d]`, of any scale.
      truth: `[S, e]`, orthonormal in L2(weight).
      weight: `[S]`, non-negative.
      learned_group: int `[d]`, the group of each learned column.
      truth_group: int `[e]`; a group of which only a part is among the d learned keeps all its
        columns here, and columns of groups without a learned one have the id -1.

    Returns:
      A scalar in 0..1.

    Raises:
      ValueError: the shapes do not fit together.
    """
    _check(learned, truth, weight)
    _check_groups(learned, truth, learned_group, truth_group)
    q = _unit_columns(learned, weight)
    v = truth * jnp.sqrt(weight)[:, None]
    gram = jnp.where(learned_group[:, None] == learned_group[None, :], _inner_products(q, q), 0.0)
    cross = jnp.where(truth_group[:, None] == learned_group[None, :], _inner_products(v, q), 0.0)
    # The floor keeps directions that the columns hardly span small, instead of amplifying rounding
    # errors to look like a direction.
    values, vectors = linalg.eigh(gram)
    root = vectors * jax.lax.rsqrt(jnp.maximum(values, FLOOR))[None, :]
    cosine = linalg.singular_values(matmul(cross, root))
    return jnp.sum(jnp.minimum(cosine, 1.0)) / learned.shape[1]


def cosines(learned: jax.Array, truth: jax.Array, weight: jax.Array) -> jax.Array:
    """|cos| between learned `[S, d]` and true `[S, e >= d]` columns of equal index, `[d]`.

    0 for a column that is 0. Raises ValueError if the shapes do not fit together.
    """
    _check(learned, truth, weight)
    q, v = _unit_columns(learned, weight), _unit_columns(truth[:, : learned.shape[1]], weight)
    return jnp.minimum(jnp.abs(jnp.sum(q.conj() * v, axis=0)), 1.0)


def is_collapsed(learned: jax.Array, weight: jax.Array, threshold: float = 0.5) -> jax.Array:
    """Which features have collapsed, bool `[d]`, for `learned [S, d]`.

    Those with E[φ²] below `threshold`, where the constraint is 1, and those parallel to an
    earlier one (|cos| > 0.9). Raises ValueError if the shapes do not fit together.
    """
    _check(learned, learned, weight)
    is_small = jnp.sum(weight[:, None] * jnp.abs(learned) ** 2, axis=0) < threshold
    q = _unit_columns(learned, weight)
    is_repeated = jnp.any(jnp.tril(jnp.abs(_inner_products(q, q)) > PARALLEL, -1), axis=1)
    return is_small | is_repeated


def eigenvalue_errors(learned: jax.Array, true: jax.Array) -> jax.Array:
    """|learned - true|, `[d]` each."""
    return jnp.abs(learned - true)


def is_close(
    learned: jax.Array, true: jax.Array, relative: float = 0.02, absolute: float = 0.001
) -> jax.Array:
    """Whether |learned - true| <= relative * |true| + absolute, bool `[d]`."""
    return eigenvalue_errors(learned, true) <= relative * jnp.abs(true) + absolute


def _inner_products(u: jax.Array, v: jax.Array) -> jax.Array:
    """Inner products of all columns, `[S, a]` and `[S, b]` to `[a, b]`."""
    return matmul(u.conj().T, v)


def _unit_columns(vectors: jax.Array, weight: jax.Array) -> jax.Array:
    """Columns `[S, d]` times √weight, of length 1; 0 where the length is 0."""
    # Times a power of 2, which rounds nothing, as squares of very large or small numbers are no
    # float32.
    largest = jnp.max(jnp.abs(vectors), axis=0, keepdims=True)
    scale = jnp.ldexp(jnp.ones_like(largest), -jnp.frexp(largest)[1])
    scaled = scale * vectors * jnp.sqrt(weight)[:, None]
    norm = jnp.linalg.norm(scaled, axis=0, keepdims=True)
    return scaled / jnp.where(norm == 0, 1.0, norm)


def _check(learned: jax.Array, truth: jax.Array, weight: jax.Array) -> None:
    shapes = (learned.shape, truth.shape, weight.shape)
    rows = [shape[:1] for shape in shapes]
    ranks = [len(shape) for shape in shapes]
    if ranks != [2, 2, 1] or len(set(rows)) > 1 or learned.shape[1] > truth.shape[1]:
        raise ValueError(
            f"learned, truth and weight have shapes {shapes[0]}, {shapes[1]} and {shapes[2]}, "
            "expected [S, d], [S, e >= d] and [S]: one row per state in each"
        )


def _check_groups(learned, truth, learned_group, truth_group) -> None:
    shapes = (learned_group.shape, truth_group.shape)
    if shapes != ((learned.shape[1],), (truth.shape[1],)):
        raise ValueError(
            f"learned_group and truth_group have shapes {shapes[0]} and {shapes[1]}, expected "
            f"{(learned.shape[1],)} and {(truth.shape[1],)}: one id per column"
        )
