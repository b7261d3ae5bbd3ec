"""Exact eigenvectors of a graph Laplacian, the ground truth for learned ones: host, float64.

S states, P a transition matrix, μ an eigenvalue of P, λ the same one of a Laplacian I - f(P), with
f(P) the mean of P^k over random offsets k and g the discount in their distribution. Three λ:

* `lambda_of_mu`: k >= 1 with probability (1-g) g^(k-1). That of pairs sampled without horizon.
* `successor_lambda`: k >= 0, the convention of the successor representation and of published
  tables (Gomez, Bowling & Machado 2024, Table 3). It is g times the first.
* `horizon_lambda`: k >= 1, cut at the end of a trajectory of known length. The duals learn it.

Where P is symmetric and states are visited equally often, P gives the eigenvectors of all three.
Otherwise `sampled_pairs` gives the law of a training pair and `eigensystem` the solution. All of
these hold matrices of states by states; `jaxrl.spectral.sparse_laplacian` is for many states.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

ROUNDING = 1e-9  # by which a probability or a symmetric matrix may be off
NEGLIGIBLE = 1e-20  # probability of an offset below which it is left out
SPARSE = 0.1  # share of entries that are not 0 below which products skip the others


class Eigensystem(NamedTuple):
    """Eigenvalues λ and eigenvectors, orthonormal in L2(weight): `V.T @ diag(weight) @ V = I`.

    E is the number of states of positive weight: all S unless some were dropped.
    """

    values: np.ndarray  # [E] float64, ascending
    vectors: np.ndarray  # [S, E] float64, one column each; the sign is fixed by `fix_signs`
    weight: np.ndarray  # [S] float64, the law of the first state of a pair; sums to 1


def lambda_of_mu(mu: ArrayLike, discount: float) -> np.ndarray:
    """(1 - μ) / (1 - g μ), elementwise: k >= 1, no horizon. Raises ValueError unless 0 <= g < 1.

    μ may be complex, as those of walks are that are not reversible.
    """
    _check_endless(discount)
    mu = np.asarray(mu)
    return (1 - mu) / (1 - discount * mu)


def successor_lambda(mu: ArrayLike, discount: float) -> np.ndarray:
    """g (1 - μ) / (1 - g μ), elementwise: k >= 0. Raises ValueError unless 0 <= g < 1."""
    return discount * lambda_of_mu(mu, discount)


def horizon_lambda(mu: ArrayLike, discount: float, horizon: int) -> np.ndarray:
    """1 - E[μ^k], elementwise, for pairs from trajectories of `horizon` states; see `offset_law`.

    The start of a pair is uniform over the horizon - 1 transitions. Raises ValueError unless
    0 <= g <= 1 and horizon >= 2.
    """
    mean_law = offset_law(horizon - 1, discount).mean(axis=0)
    # 1 - Σ p(k) μ^k = (1 - μ) Σ P(offset > j) μ^j: exactly 0 at μ = 1, and accurate close to it.
    survival = np.cumsum(mean_law[::-1])[::-1]
    mu = np.asarray(mu, float)
    return (1 - mu) * np.polynomial.polynomial.polyval(mu, survival)


def offset_law(steps: int, discount: float) -> np.ndarray:
    """Row n - 1, column k - 1: probability of offset k with n transitions left, `[steps, steps]`.

    g^(k-1) / (1 + g + … + g^(n-1)) for k <= n, else 0: always k = 1 at g = 0, uniform at g = 1.
    Raises ValueError unless 0 <= g <= 1 and steps >= 1.
    """
    if not 0 <= discount <= 1:
        raise ValueError(f"discount is {discount}, expected 0 to 1: choose one in that range")
    if steps < 1:
        raise ValueError(
            f"trajectories have {steps} transitions, expected at least 1: a pair needs two states"
        )
    powers = float(discount) ** np.arange(steps)
    return np.tril(powers[None, :] / np.cumsum(powers)[:, None])


def sampled_pairs(P: np.ndarray, start: np.ndarray, steps: int, discount: float) -> np.ndarray:
    """The exact law of a training pair, M `[S, S]`: M[s, s'] = P(first is s, second is s').

    A trajectory makes `steps` transitions from a state drawn from `start`; the pair begins at a
    uniform one of them, and its offset follows `offset_law`. Costs at most `steps` products of
    S × S matrices, with one operation for each entry of P that is not 0 where these are few, as in
    mazes; offsets less likely than 1e-20 are left out.

    Args:
      P: `[S, S]`, rows sum to 1.
      start: `[S]`, sums to 1.
      steps: transitions of a trajectory, at least 1.
      discount: g, 0 to 1.

    Raises:
      ValueError: a wrong shape, or entries that are no probabilities.
    """
    P, start = np.asarray(P, float), np.asarray(start, float)
    _check_square("P", P)
    _check_law("every row of P", P)
    if start.shape != P.shape[:1]:
        raise ValueError(f"start has shape {start.shape}, expected {P.shape[:1]} to suit P")
    _check_law("start", start)
    law = offset_law(steps, discount)
    visits = [start]  # visits[t][s]: probability of state s after t transitions
    for _ in range(steps - 1):
        visits.append(visits[-1] @ P)
    # The pair of offset k begins at s with probability begins[k - 1, s], and M = Σ diag(.) P^k.
    begins = law.T @ np.stack(visits[::-1]) / steps
    begins = begins[: np.count_nonzero(begins.sum(axis=1) > NEGLIGIBLE)]
    step = csr_array(P) if np.count_nonzero(P) < SPARSE * P.size else P
    M = np.zeros_like(P)
    for begin in begins[::-1]:  # Horner's rule
        M[np.diag_indices_from(M)] += begin
        M = M @ step
    return M


def eigensystem(M: np.ndarray, missing: str = "raise") -> Eigensystem:
    """What training on pairs of the law M converges to: λ and u of the problem A u = λ D u.

    ½ E[(u(s) - u(s'))²] = uᵀ A u with A = ½ diag(row + col) - ½ (M + Mᵀ), and E[u(s)²] = uᵀ D u
    with D = diag(row), where row and col are the sums of M. For a reversible chain that is the
    Laplacian itself; otherwise (doors, wind, short trajectories) its self-adjoint part in L2(row).

    Args:
      M: `[S, S]`, non-negative; scaled to the sum 1, so counts will do.
      missing: "raise", or "drop" to solve the problem on the states that begin a pair, with weight
        0 and zeros in every vector elsewhere. States that only end pairs have no constraint: u
        takes the value there that minimises the loss, which A accounts for.

    Raises:
      ValueError: M is no such matrix, or a state never begins a pair and `missing` is "raise".
    """
    M = np.asarray(M, float)
    _check_square("M", M)
    if missing not in ("raise", "drop"):
        raise ValueError(f'missing is {missing!r}, expected "raise" or "drop"')
    if not np.all(M >= 0) or not 0 < M.sum() < np.inf:
        raise ValueError("M has entries that are negative, not finite or all 0: give pair counts")
    M = M / M.sum()
    weight = M.sum(axis=1)
    is_start = weight > 0
    if not is_start.all() and missing == "raise":
        raise ValueError(
            f"{np.count_nonzero(~is_start)} of {len(M)} states never begin a pair (the first is "
            f'{np.argmin(is_start)}): sample more, or pass missing="drop"'
        )
    A = (np.diag(weight + M.sum(axis=0)) - M - M.T) / 2
    only_end = ~is_start & (M.sum(axis=0) > 0)
    end_pairs = M[np.ix_(is_start, only_end)]
    A = A[np.ix_(is_start, is_start)] - end_pairs / end_pairs.sum(axis=0) @ end_pairs.T / 2
    scale = np.sqrt(weight[is_start])
    values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
    full = np.zeros((len(M), len(values)))
    full[is_start] = vectors / scale[:, None]
    return Eigensystem(np.maximum(values, 0), fix_signs(full), weight)


def published_eigensystem(P: np.ndarray, discount: float) -> Eigensystem:
    """Eigenvectors of a symmetric P `[S, S]`, `successor_lambda` as values, weight 1/S.

    The truth of published tables. Raises ValueError if P is no symmetric transition matrix, and
    unless 0 <= g < 1.
    """
    P = np.asarray(P, float)
    _check_square("P", P)
    _check_law("every row of P", P)
    asymmetry = np.abs(P - P.T).max()
    if asymmetry > ROUNDING:
        raise ValueError(
            f"P differs from its transpose by up to {asymmetry:.2g}, expected a symmetric P: "
            "use eigensystem(sampled_pairs(...)) for doors, portals and wind"
        )
    mu, vectors = np.linalg.eigh(P)
    values = successor_lambda(np.minimum(mu[::-1], 1), discount)
    values = np.maximum.accumulate(values)  # rounding may swap what is equal
    vectors = fix_signs(vectors[:, ::-1] * np.sqrt(len(P)))
    return Eigensystem(values, vectors, np.full(len(P), 1 / len(P)))


def groups(values: ArrayLike, absolute: float = 1e-9, relative: float = 0.0) -> np.ndarray:
    """Ids 0, 0, 1, 2, 2, … int32 `[E]` of eigenvalues that count as one.

    Neighbours belong together when they differ by at most `absolute + relative * larger`, so groups
    may be chains. Raises ValueError unless `values [E]` ascend (but for rounding).
    """
    values = np.asarray(values, float)
    if values.ndim != 1 or not np.all(np.diff(values) >= -ROUNDING):
        raise ValueError("values do not ascend, expected a sorted row of eigenvalues: sort them")
    larger = np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    splits = np.diff(values) > absolute + relative * larger
    return np.concatenate([np.zeros(min(1, len(values))), np.cumsum(splits)]).astype(np.int32)


def fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Signs such that the first entry of each column that is not small is positive.

    Not the largest: an odd vector has two of equal size, and rounding would choose between them.
    """
    size = np.abs(vectors)
    first = np.argmax(size > 0.3 * size.max(axis=0), axis=0)
    return vectors * np.sign(vectors[first, np.arange(vectors.shape[1])])


def _check_endless(discount: float) -> None:
    if not 0 <= discount < 1:
        raise ValueError(
            f"discount is {discount}, expected 0 <= discount < 1 without a horizon: "
            "lower it, or use horizon_lambda"
        )


def _check_square(name: str, matrix: np.ndarray) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"{name} has shape {matrix.shape}, expected [S, S]: one row per state")


def _check_law(name: str, law: np.ndarray) -> None:
    error = np.abs(law.sum(axis=-1) - 1).max()
    if not error <= ROUNDING or not np.all(law >= 0):
        raise ValueError(
            f"{name} must hold probabilities that sum to 1, but the sum is off by {error:.2g} "
            f"and the least entry is {law.min():.2g}: normalise it"
        )
