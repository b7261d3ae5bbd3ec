"""Left and right eigenvectors of walks that are not reversible: exact ones, and learned ones.

P r = μ r and lᴴ P = μ lᴴ for the transition matrix P `[S, S]` of a walk, μ complex. Doors, portals
and wind give states an order in time, which is lost in the self-adjoint part of P. Left vectors are
measures over states; they are kept as densities ψ relative to a law of states w, l = w ψ, and are
biorthonormal to the right ones φ: Σ w conj(ψ_j) φ_k = δ_jk.

No variational principle leads to the eigenvectors of such a P, but one leads to singular functions:
of all features of pairs (s, s') from P, or from a mean of its powers, those with E[u(s)²] =
E[v(s')²] = 1 and the least E[(u(s) - v(s'))²] are the leading ones (Wu & Noé 2020). They are the
eigenvectors of a Laplacian, that of the bipartite graph in which s and s' are different nodes, so
that ALLO learns them as it stands (`bipartite_law`). The leading eigenvectors of both sides nearly
lie in the span of u and v together, the more nearly the more features there are; `ritz` finds them
there, and `eigenpair_errors` says how far from it they may be.

S states, m features, E eigenpairs.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg as lapack
from scipy import sparse
from scipy.sparse import csgraph

from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul
from jaxrl.spectral.laplacian import lambda_of_mu

TIE = 1e-9  # largest distance of equal eigenvalues
SMALL = 1e-30  # a norm that is not divided by
DEFECTIVE = 1e7  # condition of eigenvectors that rounding has kept from being dependent
CONVERGED = 0.05  # rad; eigenvectors nearer than this to the exact ones cost a score 0.01 or so
FLOOR = 1e-3  # least size of a direction of the features, relative to the largest, that counts


class Eigenpairs(NamedTuple):
    """Eigenvalues μ of P and biorthonormal eigenvectors."""

    values: np.ndarray  # [E] complex, in the order of `order`
    right: np.ndarray  # [S, E] complex, E[|φ|²] = 1 under `weight`
    left: np.ndarray  # [S, E] complex densities relative to `weight`
    weight: np.ndarray  # [S] w, sums to 1


class Ritz(NamedTuple):
    """Eigenvectors within the span of m features of both sides, E = min(S, 2 m)."""

    values: jax.Array  # [E] complex64 μ
    right: jax.Array  # [2 m, E] complex64, φ = (u, v) right
    left: jax.Array  # [2 m, E] complex64, ψ = (u, v) left


def order(values: ArrayLike, discount: float) -> np.ndarray:
    """Indices `[E]` that sort eigenvalues μ by the real part of (1 - μ) / (1 - γ μ), ascending.

    Slow ones come first, as λ does; of a conjugate pair the one with positive imaginary part.
    """
    values = np.asarray(values, complex)
    return np.lexsort((-np.imag(values), np.real(lambda_of_mu(values, discount))))


def eigenpairs(P: np.ndarray, weight: np.ndarray, discount: float) -> Eigenpairs:
    """All eigenpairs of P `[S, S]` by LAPACK, in float64, relative to `weight` `[S]`.

    Left vectors are rows of the inverse of the matrix of right ones, so that they are biorthonormal
    where eigenvalues are equal, too.

    Raises:
      ValueError: P is no transition matrix, `weight` is not positive everywhere, some state cannot
        be reached from another, or P has no basis of eigenvectors.
    """
    P, weight = np.asarray(P, float), np.asarray(weight, float)
    _check_chain(P)
    if weight.shape != P.shape[:1] or not np.all(weight > 0):
        raise ValueError(
            f"weight has shape {weight.shape} and the least entry {weight.min():.2g}; expected "
            f"{P.shape[:1]}, all positive: a density needs a law that reaches every state"
        )
    solution: Any = lapack.eig(P)
    values, right = solution
    indices = order(values, discount)
    values, right = values[indices], right[:, indices]
    if np.linalg.cond(right) > DEFECTIVE:
        raise ValueError(
            "the transition matrix has no basis of eigenvectors (it is defective); expected one: "
            "change a probability of a door, a portal or the wind a little"
        )
    right = fix_phases(right / np.sqrt(weight @ np.abs(right) ** 2))
    left = np.linalg.inv(right).conj().T / weight[:, None]
    return Eigenpairs(values, right, left, weight)


def fix_phases(vectors: np.ndarray) -> np.ndarray:
    """Columns `[S, E]` times a phase, such that the first entry that is not small is positive."""
    size = np.abs(vectors)
    first = np.argmax(size > 0.3 * size.max(axis=0), axis=0)
    lead = vectors[first, np.arange(vectors.shape[1])]
    return vectors * (np.conj(lead) / np.abs(lead))


def groups(values: ArrayLike, absolute: float = TIE, relative: float = 0.0) -> np.ndarray:
    """Ids int32 `[E]`, the same for eigenvalues whose vectors form one space.

    λ and its conjugate belong together, and so do λ that differ by at most `absolute + relative *
    larger`, through others if need be. Ids rise with the first member.
    """
    values = np.asarray(values, complex)
    size = np.abs(values)
    tolerance = absolute + relative * np.maximum(size[:, None], size[None, :])
    is_near = lambda other: np.abs(values[:, None] - other[None, :]) <= tolerance
    links = sparse.csr_array(is_near(values) | is_near(values.conj()))
    ids = csgraph.connected_components(links, directed=False)[1]
    _, first_indices = np.unique(ids, return_index=True)
    return np.argsort(np.argsort(first_indices))[ids].astype(np.int32)


def bipartite_law(pairs: jax.Array) -> jax.Array:
    """The law `[2 S, 2 S]` of pairs of nodes, from the law M `[S, S]` of pairs of states.

    The first S nodes are states that begin a pair, the others states that end one; either may come
    first. The Laplacian of this law has the eigenvalues 1 - σ and 1 + σ for the singular values σ.
    """
    zeros = jnp.zeros_like(pairs)
    return jnp.block([[zeros, pairs], [pairs.T, zeros]]) / 2


def stack_sides(features: jax.Array) -> jax.Array:
    """Features of the 2 S nodes of `bipartite_law`, `[2 S, m]`, from `[S, 2, m]` of states."""
    return features.swapaxes(0, 1).reshape(-1, features.shape[-1])


def ritz(features: jax.Array, chain: jax.Array, weight: jax.Array, discount) -> Ritz:
    """The eigenpairs of P in the span of features `[S, 2, m]`, of both sides together.

    Rayleigh-Ritz with an orthonormal basis b of that span (Saad 2011, chapter 4): φ and μ such that
    P φ - μ φ is orthogonal, under `weight`, to all of the span, and ψ likewise for the adjoint of
    P. Exact where the span holds the eigenvectors; the error of μ is of the order of the product of
    the errors of both sides. Projecting along one side onto the other would need fewer numbers, but
    has no bound: where some of u is nearly orthogonal to all of v, it finds eigenvalues that P does
    not have, anywhere in the plane. Here every μ is a mean of P over a function of length 1.

    Args:
      features: `[S, 2, m]`, u of states that begin a pair and v of states that end one.
      chain: P `[S, S]`.
      weight: `[S]` w, non-negative, the law of states that end a pair.
      discount: γ, for the order.

    Returns:
      `Ritz`, in the order of `order`; biorthonormal, with E[|φ|²] = 1. Pairs that features which
      are too alike leave over are 0, and so are all of them where there is no solution.
    """
    combined = jnp.nan_to_num(both_sides(features))
    _, size, axes = linalg.svd(combined * jnp.sqrt(weight)[:, None])
    is_spanned = size > FLOOR * size[0]
    whiten = axes.T * jnp.where(is_spanned, 1 / jnp.where(is_spanned, size, 1.0), 0.0)[None, :]
    basis = matmul(combined, whiten)  # [S, E]
    within = matmul((basis * weight[:, None]).T, matmul(chain, basis))
    values, mixing = linalg.eig(jnp.nan_to_num(within))
    slowness = jnp.real((1 - values) / (1 - discount * values))
    indices = jnp.lexsort((-jnp.imag(values), slowness))
    values, mixing = values[indices], mixing[:, indices]
    length = jnp.sqrt(matmul(weight, jnp.abs(matmul(basis, mixing)) ** 2))
    mixing = mixing / jnp.where(length > FLOOR, length, 1.0)[None, :]
    ritz_pairs = Ritz(
        values, matmul(whiten, mixing), matmul(whiten, linalg.inverse(mixing).conj().T)
    )
    is_finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in ritz_pairs]))
    return jax.tree.map(lambda x: jnp.where(is_finite, x, 0), ritz_pairs)


def both_sides(features: jax.Array) -> jax.Array:
    """Features of both sides as one row, `[..., 2 m]` from `[..., 2, m]`."""
    return features.reshape(*features.shape[:-2], -1)


def read(features: jax.Array, ritz_pairs: Ritz) -> tuple[jax.Array, jax.Array]:
    """Right eigenvectors and left densities, complex `[..., E]` each, at features `[..., 2, m]`."""
    combined = both_sides(features)
    return matmul(combined, ritz_pairs.right), matmul(combined, ritz_pairs.left)


def eigenpair_errors(
    pairs: tuple[jax.Array, jax.Array, jax.Array],
    chain: jax.Array,
    weight: jax.Array,
    num_features: int,
) -> jax.Array:
    """Angles between Ritz vectors and eigenvectors, `[E]`, to first order, in radians.

    The larger one of both sides: the residual |P φ - μ φ| / |φ|, and for ψ the same of the adjoint
    of P, over a gap. What a vector lacks lies outside the span of the features, where eigenvalues
    are about the first for which those of one side have no room. Where the span is the whole space
    the gap is taken as 1.

    Args:
      pairs: μ `[E]`, right vectors and left densities `[S, E]`.
      chain: P `[S, S]`.
      weight: `[S]` w.
      num_features: m, features of one side.
    """
    values, right, left = pairs
    length = lambda x: jnp.sqrt(matmul(weight, jnp.abs(x) ** 2))
    adjoint_image = (
        matmul(chain.T, left * weight[:, None]) / jnp.where(weight > 0, weight, 1.0)[:, None]
    )
    relative_size = lambda miss, vectors: length(miss) / jnp.maximum(length(vectors), SMALL)
    residual = relative_size(matmul(chain, right) - right * values[None, :], right)
    residual_left = relative_size(adjoint_image - left * values.conj()[None, :], left)
    is_whole = len(values) == len(right)
    gap = jnp.ones(()) if is_whole else jnp.abs(values - values[num_features])
    angle = jnp.maximum(residual, residual_left) / jnp.maximum(gap, TIE)
    return jnp.where(length(right) > FLOOR, angle, jnp.pi / 2)  # features left no room for it


def num_classes(P: np.ndarray) -> int:
    """How many classes P `[S, S]` has, in each of which all states can reach each other."""
    return csgraph.connected_components(sparse.csr_array(P), connection="strong")[0]


def _check_chain(P: np.ndarray) -> None:
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.size == 0:
        raise ValueError(f"P has shape {P.shape}, expected [S, S]: one row per state")
    error = np.abs(P.sum(axis=1) - 1).max()
    if not error <= TIE or not np.all(P >= 0):
        raise ValueError(f"rows of P must be distributions, but a sum is off by {error:.2g}")
    if (count := num_classes(P)) > 1:
        raise ValueError(
            f"the states fall into {count} classes that cannot all be reached from each other; "
            "expected one: give one-way passages a way back"
        )
