"""The smallest eigenpairs of a graph Laplacian with many states: sparse, host, float64.

What `laplacian.eigensystem(laplacian.sampled_pairs(...))` gives for the first few eigenvectors,
without ever holding a matrix of states by states. S states, P a sparse transition matrix, K offsets
of pairs that are likely enough to count.

A symmetric P has the eigenvectors sought, and its largest eigenvalues are those of the inverse of
I - P + ε, which Lanczos iterations find soon (shift and invert; Saad 2011, §8.1). Other walks have
no such inverse: their operator Σ_k (B_k P^k + its transpose) / 2 is applied power by power.
"""

from collections.abc import Callable
from typing import cast

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from jaxrl.spectral import laplacian
from jaxrl.spectral.laplacian import NEGLIGIBLE, ROUNDING, Eigensystem

SHIFT = 1e-4  # ε: small beside the gaps that matter, large beside the rounding of a factorisation
SPARE = 4  # further eigenpairs that Lanczos iterations look for, so that fewer copies are missed

Apply = Callable[[np.ndarray], np.ndarray]


def eigensystem(
    P: sparse.csr_array, start: np.ndarray, steps: int, discount: float, count: int
) -> tuple[Eigensystem, np.ndarray | None]:
    """The `count` smallest eigenpairs of the operator that pairs of finite walks sample.

    With them the largest eigenvalues μ `[count]` of P, descending, where P is symmetric.

    Args:
      P: `[S, S]`, rows sum to 1.
      start: `[S]`, sums to 1; every state must begin a pair.
      steps: transitions of a trajectory, at least 1.
      discount: g, 0 to 1.
      count: at least 1 and below S - 4; a small part of S, or `laplacian` is faster.

    Raises:
      ValueError: a wrong shape, entries that are no probabilities, or a state that begins no pair.
    """
    _check(P, start, count)
    if is_symmetric(P) and np.ptp(start) == 0:
        mu, vectors = symmetric_eigenpairs(P, count)
        if mu[-1] >= 0:  # then 1 - E[μ^k] falls with μ, and these are the smallest
            values = np.maximum(laplacian.horizon_lambda(mu, discount, steps + 1), 0)
            size = len(start)
            vectors = laplacian.fix_signs(vectors * np.sqrt(size))
            return Eigensystem(values, vectors, np.full(size, 1 / size)), mu
    return _solve_any_walk(P, start, steps, discount, count), None


def symmetric_eigenpairs(P: sparse.csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues μ `[count]` of a symmetric P, descending, and vectors `[S, count]`.

    The vectors are orthonormal.
    """
    size = num_states(P)
    shifted = sparse.csc_array(sparse.eye_array(size) * (1 + SHIFT) - P)
    factors = linalg.splu(
        shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True}
    )
    _, vectors = largest_eigenpairs(factors.solve, size, count)
    mu = np.minimum(np.sum(vectors * (P @ vectors), axis=0), 1)
    order = np.argsort(-mu, kind="stable")
    return mu[order], vectors[:, order]


def num_states(P: sparse.csr_array) -> int:
    """S, the rows of P."""
    return cast(tuple[int, int], P.shape)[0]


def is_symmetric(P: sparse.csr_array) -> bool:
    """Whether P `[S, S]` is its own transpose, but for rounding."""
    return np.abs(P - P.T).max() <= ROUNDING


def _solve_any_walk(
    P: sparse.csr_array, start: np.ndarray, steps: int, discount: float, count: int
) -> Eigensystem:
    """See `laplacian.eigensystem`, whose matrices A and D are applied here, not built."""
    transposed = sparse.csr_array(P.T)
    begins = _start_probabilities(transposed, start, steps, discount)

    def apply_law(x: np.ndarray) -> np.ndarray:  # M x
        total = np.zeros_like(x)
        for begin in begins:
            x = P @ x
            total += begin * x
        return total

    def apply_adjoint(x: np.ndarray) -> np.ndarray:  # Mᵀ x, by Horner's rule
        total = np.zeros_like(x)
        for begin in begins[::-1]:
            total = transposed @ (total + begin * x)
        return total

    ones = np.ones(len(start))
    weight, ends = apply_law(ones), apply_adjoint(ones)
    if not np.all(weight > 0):
        raise ValueError(
            f"{np.count_nonzero(weight <= 0)} states never begin a pair: start in all of them"
        )
    scale, diagonal = np.sqrt(weight), (weight + ends) / (2 * weight)
    scaled = lambda x: (
        diagonal * x - (apply_law(x / scale) + apply_adjoint(x / scale)) / (2 * scale)
    )
    upper_bound = 2 * diagonal.max()  # no eigenvalue is larger (Gershgorin)
    values, vectors = largest_eigenpairs(lambda x: upper_bound * x - scaled(x), len(start), count)
    values = np.array([vector @ scaled(vector) for vector in vectors.T])
    order = np.argsort(values, kind="stable")
    vectors = laplacian.fix_signs(vectors[:, order] / scale[:, None])
    return Eigensystem(np.maximum(values[order], 0), vectors, weight)


def _start_probabilities(
    transposed: sparse.csr_array, start: np.ndarray, steps: int, discount: float
) -> np.ndarray:
    """Probability that the pair of offset k begins at s, `[K, S]`, as in `sampled_pairs`."""
    law = laplacian.offset_law(steps, discount)
    law = law[:, : np.count_nonzero(law.sum(axis=0) > NEGLIGIBLE * steps)]
    begins, visits = np.zeros((law.shape[1], len(start))), np.asarray(start, float)
    for steps_left in range(steps, 0, -1):  # transitions left
        begins += np.outer(law[steps_left - 1], visits) / steps
        visits = transposed @ visits
    return begins


def largest_eigenpairs(apply: Apply, size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues `[count]` of a symmetric operator, descending, and their vectors.

    Lanczos iterations may miss copies of a repeated eigenvalue. So the operator without what was
    found is asked for its largest eigenvalue, until that is no larger than the least of those
    wanted.
    """
    rng = np.random.default_rng(0)
    values, vectors = _add_eigenpairs(apply, np.zeros((size, 0)), count + SPARE, rng)
    while True:
        least = values[count - 1]
        vectors = vectors[:, : count + SPARE]
        values, vectors = _add_eigenpairs(apply, vectors, 1, rng)
        if values[count - 1] <= least * (1 + 1e-9):  # the one added is not larger
            return values[:count], vectors[:, :count]


def _add_eigenpairs(
    apply: Apply, vectors: np.ndarray, num_new: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Ritz values and vectors of `vectors` `[S, n]` and of the `num_new` largest beside them."""
    size, deflated = len(vectors), _deflate(apply, vectors)
    operator = linalg.LinearOperator((size, size), matvec=deflated, dtype=float)  # pyright: ignore
    _, new_vectors = linalg.eigsh(operator, num_new, which="LA", v0=rng.normal(size=size))
    return _ritz(apply, np.concatenate([vectors, new_vectors], axis=1))


def _deflate(apply: Apply, vectors: np.ndarray) -> Apply:
    """The operator on the complement of some of its eigenvectors `[S, n]`; 0 on them."""

    def apply_deflated(x: np.ndarray) -> np.ndarray:
        y = apply(x - vectors @ (vectors.T @ x))
        return y - vectors @ (vectors.T @ y)

    return apply_deflated


def _ritz(apply: Apply, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ritz values, descending, and orthonormal Ritz vectors in the span of `basis` `[S, n]`."""
    basis, _ = np.linalg.qr(basis)
    image = np.stack([apply(vector) for vector in basis.T], axis=1)
    values, rotation = np.linalg.eigh(basis.T @ image)
    return values[::-1], basis @ rotation[:, ::-1]


def _check(P: sparse.csr_array, start: np.ndarray, count: int) -> None:
    size = num_states(P)
    if P.shape != (size, size) or np.shape(start) != (size,):
        raise ValueError(
            f"P and start have shapes {P.shape} and {np.shape(start)}, expected [S, S] and [S]"
        )
    if not 1 <= count < size - SPARE:
        raise ValueError(f"count is {count}, expected 1 to {size - SPARE - 1} of {size} states")
    error = max(np.abs(P.sum(axis=1) - 1).max(), abs(np.sum(start) - 1))
    if not error <= ROUNDING or P.min() < 0 or np.min(start) < 0:
        raise ValueError(
            f"P and start must hold probabilities that sum to 1, but a sum is off by {error:.2g} "
            "or an entry is negative: normalise them"
        )
