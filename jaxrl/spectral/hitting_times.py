"""Hitting times: expected steps of a walk from a state until it first enters another one.

h(i, j) = (Z_jj - Z_ij) / π_j with the stationary distribution π and the fundamental matrix Z =
(I - P + 1 πᵀ)⁻¹ (Kemeny & Snell 1960, theorem 4.4.7). Unlike commute times they know the way: far
from i to j may be near from j to i. S states, E eigenpairs.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxrl.numerics.linalg import matmul
from jaxrl.spectral.directed import num_classes

LEAST_GAP = 1e-4  # of |μ| below 1, unless states are so many that a path of them is slower
LEAST = 1e-9  # share of the uniform distribution below which π is not divided by


class Ranks(NamedTuple):
    """Spearman's rank correlations between two tables of hitting times, the diagonal left out."""

    goal_correlations: np.ndarray  # [S] over all sources, for each goal
    source_correlations: np.ndarray  # [S] over all goals, for each source


def exact_times(P: np.ndarray) -> np.ndarray:
    """h(i, j) in row i and column j, float64 `[S, S]`, by one linear solve.

    Raises ValueError if P has several closed classes, or a state that is not visited for ever.
    """
    P = np.asarray(P, float)
    size = len(P)
    stationary = np.zeros(size)
    if num_classes(P) == 1:  # rounding may hide a singular matrix
        # π (I - P + 1 1ᵀ) = 1ᵀ has one solution where P has one closed class.
        stationary = np.linalg.solve((np.eye(size) - P + 1).T, np.ones(size))
    if not np.all(stationary > 0):
        raise ValueError(
            "some states are never entered from others, so that hitting times are infinite; "
            "expected a walk that can get from every state to every other one"
        )
    fundamental = np.linalg.inv(np.eye(size) - P + stationary[None, :])
    times = (np.diag(fundamental)[None, :] - fundamental) / stationary[None, :]
    np.fill_diagonal(times, 0)
    return times


def from_eigenpairs(
    values: jax.Array, right: jax.Array, left: jax.Array, weight: jax.Array
) -> jax.Array:
    """h(i, j), float32 `[S, S]`, from the first eigenpairs of P; see `jaxrl.spectral.directed`.

    Z = Σ_{k>1} φ_k ψ_kᴴ w / (1 - μ_k) over all S eigenpairs but the first, whose ψ w is π. Modes
    that are not among the E given are taken to die out in one step, μ = 0: they add I - Σ_k φ_k
    ψ_kᴴ w, the sum over all E. With all S eigenpairs the times are exact. Without that completion
    the diagonal Z_jj, which all sources share but goals do not, is far too small.

    Slower modes than those of any symmetric walk on S cells with four moves, |μ| above 1 - sin²(π /
    2S) and above 0.9999, count as that slow: so a learned μ of 1 or more gives finite times.

    Args:
      values: `[E]` complex μ, that of the constant right vector first.
      right: `[S, E]` complex φ.
      left: `[S, E]` complex ψ, densities relative to `weight`; biorthonormal to φ.
      weight: `[S]` w.

    Returns:
      Times of at least 1, and 0 on the diagonal.
    """
    measures = left.conj() * weight[:, None]  # [S, E]
    size, largest = jnp.abs(values), 1 - _least_gap(len(weight))
    clipped_values = values * jnp.minimum(1.0, largest / jnp.maximum(size, largest))
    slowness = 1 / (1 - clipped_values[1:])
    slow_modes = matmul(right[:, 1:] * slowness[None, :], measures[:, 1:].T)
    projector = matmul(right, measures.T)
    fundamental = jnp.eye(len(weight)) + jnp.real(slow_modes - projector)
    pi = jnp.real(measures[:, 0] * jnp.mean(right[:, 0]))
    pi = jnp.maximum(pi / jnp.sum(pi), LEAST / len(pi))
    times = (jnp.diag(fundamental)[None, :] - fundamental) / pi[None, :]
    return jnp.maximum(times, 1.0) * (1 - jnp.eye(len(pi)))


def rank_correlations(estimated: np.ndarray, true: np.ndarray) -> Ranks:
    """Spearman's correlation of each column and of each row of two tables `[S, S]`; host code.

    NaN where all times are equal. Raises ValueError for other shapes or fewer than 3 states.
    """
    estimated, true = np.asarray(estimated, float), np.asarray(true, float)
    if (
        estimated.shape != true.shape
        or estimated.ndim != 2
        or not len(estimated) == estimated.shape[1] >= 3
    ):
        raise ValueError(
            f"found and true have shapes {estimated.shape} and {true.shape}, expected [S, S] of at "
            "least 3 states: a row per source and a column per goal"
        )
    goals, sources = (
        _rank_correlation(_off_diagonal(x), _off_diagonal(y))
        for x, y in ((estimated.T, true.T), (estimated, true))
    )
    return Ranks(goals, sources)


def _least_gap(num_states: int) -> float:
    """The least 1 - |μ| that is taken at its word: that of a path (Fiedler 1973), or 0.0001."""
    return min(LEAST_GAP, float(np.sin(np.pi / (2 * num_states)) ** 2))


def _off_diagonal(table: np.ndarray) -> np.ndarray:
    """`[S, S]` to `[S, S - 1]`."""
    size = len(table)
    return table[~np.eye(size, dtype=bool)].reshape(size, size - 1)


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of each row of x with that of y, `[S, n]` to `[S]`."""
    x, y = (stats.rankdata(rows, axis=1) for rows in (x, y))
    x, y = (rows - rows.mean(axis=1, keepdims=True) for rows in (x, y))
    with np.errstate(invalid="ignore"):
        return np.sum(x * y, axis=1) / np.sqrt(np.sum(x**2, axis=1) * np.sum(y**2, axis=1))
