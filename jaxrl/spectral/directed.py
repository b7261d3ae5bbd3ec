"""Left and right eigenvectors of walks that are not reversible: exact ones, and learned ones.

P r = μ r and lᴴ P = μ lᴴ for the transition matrix P `[S, S]` of a walk, μ complex. Doors, portals
and wind give states an order in time, which is lost in the self-adjoint part of P. Left vectors are
measures over states; they are kept as densities ψ relative to a law of states w, l = w ψ, and are
biorthonormal to the right ones φ: Σ w conj(ψ_j) φ_k = δ_jk.

No variational principle leads to the eigenvectors of such a P, but one leads to singular functions:
of all features of pairs (s, s') from P, or from a mean of its powers, those with E[u(s)²] =
E[v(s')²] = 1 and the least E[(u(s) - v(s'))²] are the leading ones (Wu & Noé 2020). They are the
eigenvectors of a Laplacian, that of the bipartite graph in which s and s' are different nodes, so
that ALLO learns them as it stands (`bipartite`). The leading right eigenvectors nearly lie in the
span of u, the left ones in that of v, the more nearly the more features there are; `ritz` finds
them there.

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

from jaxrl import linalg
from jaxrl.linalg import matmul
from jaxrl.spectral.laplacian import lambda_of_mu

TIE = 1e-9  # largest distance of equal eigenvalues
SMALL = 1e-30  # a norm that is not divided by
DEFECTIVE = 1e7  # condition of eigenvectors that rounding has kept from being dependent
FLOOR = 1e-4  # least cosine between the two spans, relative to the largest, that is divided by


class Eigenpairs(NamedTuple):
    """Eigenvalues μ of P and biorthonormal eigenvectors."""

    values: np.ndarray  # [E] complex, in the order of `order`
    right: np.ndarray  # [S, E] complex, E[|φ|²] = 1 under `weight`
    left: np.ndarray  # [S, E] complex densities relative to `weight`
    weight: np.ndarray  # [S] w, sums to 1


class Ritz(NamedTuple):
    """Eigenvectors within the span of m features of either side."""

    values: jax.Array  # [m] complex64 μ
    right: jax.Array  # [m, m] complex64, φ = u right
    left: jax.Array  # [m, m] complex64, ψ = v left


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
    solved: Any = lapack.eig(P)
    values, right = solved
    first = order(values, discount)
    values, right = values[first], right[:, first]
    if np.linalg.cond(right) > DEFECTIVE:
        raise ValueError(
            "the transition matrix has no basis of eigenvectors (it is defective); expected one: "
            "change a probability of a door, a portal or the wind a little"
        )
    right = phased(right / np.sqrt(weight @ np.abs(right) ** 2))
    left = np.linalg.inv(right).conj().T / weight[:, None]
    return Eigenpairs(values, right, left, weight)


def phased(vectors: np.ndarray) -> np.ndarray:
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
    near = absolute + relative * np.maximum(size[:, None], size[None, :])
    apart = lambda other: np.abs(values[:, None] - other[None, :]) <= near
    links = sparse.csr_array(apart(values) | apart(values.conj()))
    ids = csgraph.connected_components(links, directed=False)[1]
    _, firsts = np.unique(ids, return_index=True)
    return np.argsort(np.argsort(firsts))[ids].astype(np.int32)


def bipartite(pairs: jax.Array) -> jax.Array:
    """The law `[2 S, 2 S]` of pairs of nodes, from the law M `[S, S]` of pairs of states.

    The first S nodes are states that begin a pair, the others states that end one; either may come
    first. The Laplacian of this law has the eigenvalues 1 - σ and 1 + σ for the singular values σ.
    """
    none = jnp.zeros_like(pairs)
    return jnp.block([[none, pairs], [pairs.T, none]]) / 2


def stacked(features: jax.Array) -> jax.Array:
    """Features of the 2 S nodes of `bipartite`, `[2 S, m]`, from `[S, 2, m]` of states."""
    return features.swapaxes(0, 1).reshape(-1, features.shape[-1])


def ritz(features: jax.Array, chain: jax.Array, weight: jax.Array, discount) -> Ritz:
    """The eigenpairs of P in the span of features `[S, 2, m]`: two-sided Rayleigh-Ritz.

    φ in the span of u = features[:, 0] and μ such that P φ - μ φ is orthogonal, under `weight`, to
    all v = features[:, 1], and ψ in the span of v likewise for the adjoint of P (Petrov-Galerkin;
    Saad 2011, chapter 4). Exact where the spans hold the eigenvectors; the error of μ is of the
    order of the product of the errors of both spans.

    Args:
      features: `[S, 2, m]`.
      chain: P `[S, S]`.
      weight: `[S]` w, non-negative, the law of states that end a pair.
      discount: γ, for the order.

    Returns:
      `Ritz`, in the order of `order`; biorthonormal, with E[|φ|²] = 1. All 0 where the features
      are too few or too alike for a solution.
    """
    u, v = features[:, 0], features[:, 1] * weight[:, None]
    gram, moved = matmul(v.T, u), matmul(v.T, matmul(chain, u))  # [m, m]
    x, size, y = linalg.svd(jnp.nan_to_num(gram))
    scale = jax.lax.rsqrt(jnp.maximum(size, FLOOR * size[0] + SMALL))[None, :]
    whiten, whiten_left = y.T * scale, x * scale  # in which the Gram matrix is the identity
    within = matmul(whiten_left.T, matmul(moved, whiten))
    values, mixing = linalg.eig(jnp.nan_to_num(within))
    place = jnp.real((1 - values) / (1 - discount * values))
    first = jnp.lexsort((-jnp.imag(values), place))
    values, mixing = values[first], mixing[:, first]
    length = jnp.sqrt(weight @ jnp.abs(matmul(u, matmul(whiten, mixing))) ** 2)
    mixing = mixing / jnp.maximum(length, SMALL)[None, :]
    found = Ritz(
        values, matmul(whiten, mixing), matmul(whiten_left, linalg.inverse(mixing).conj().T)
    )
    is_finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in found]))
    return jax.tree.map(lambda x: jnp.where(is_finite, x, 0), found)


def read(features: jax.Array, found: Ritz) -> tuple[jax.Array, jax.Array]:
    """Right eigenvectors and left densities, complex `[..., m]` each, at features `[..., 2, m]`."""
    return matmul(features[..., 0, :], found.right), matmul(features[..., 1, :], found.left)


def _check_chain(P: np.ndarray) -> None:
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.size == 0:
        raise ValueError(f"P has shape {P.shape}, expected [S, S]: one row per state")
    off = np.abs(P.sum(axis=1) - 1).max()
    if not off <= TIE or not np.all(P >= 0):
        raise ValueError(f"rows of P must be distributions, but a sum is off by {off:.2g}")
    count, _ = csgraph.connected_components(sparse.csr_array(P), connection="strong")
    if count > 1:
        raise ValueError(
            f"the states fall into {count} classes that cannot all be reached from each other; "
            "expected one: give one-way passages a way back"
        )
