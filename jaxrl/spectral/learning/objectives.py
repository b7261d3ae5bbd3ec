"""Objectives whose minima are eigenvectors of a graph Laplacian, from moments of features.

S states, d features, u_i(s) feature i, ρ the law of states, <u, v> = E_ρ[u v], L the Laplacian of
the walk that pairs (s, s') come from, so that E[(u(s) - u(s'))²] = 2 <u, L u>. Moments are either
exact, from the law of all pairs, or means over sampled pairs; the losses are the same code.

* ALLO, the augmented Lagrangian of Gomez, Bowling & Machado (ICLR 2024, arXiv 2310.10833, eq. 6):
  its fixed points are eigenvectors, and only their sorted order is stable, where the barrier b is
  above twice the largest λ that is learned (times the weight of the graph term).
* GDO, the graph drawing objective of Wu, Tucker & Nachum (2019): any rotation is a minimum.
* GGDO, its generalisation by Wang et al. (2021): decreasing weights break the rotation.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul
from jaxrl.spectral import reweighted

Method = Literal["allo", "no_duals", "ggdo", "gdo"]
SMOOTHING = 0.1  # weight of the newest penalty in its running mean
MEMORY = 0.02  # weight of the newest quotients in theirs
LARGEST = 2.0  # eigenvalue, where states begin as many pairs as they end; recordings may have more
SMALLEST_GAP = 1e-7  # between eigenvalues that float32 tells apart
FLOOR = 0.1  # least eigenvalue of a Gram matrix of features that a rotation divides by


class Moments(NamedTuple):
    """The moments of d features that the objectives use."""

    spread: jax.Array  # [d] E[(u_i(s) - u_i(s'))²], the graph term: twice the Dirichlet energy
    error: jax.Array  # [d, d] E[u_j u_k] - δ_jk
    other_error: jax.Array  # [d, d] the same from independent states; equal where exact
    effective_share: Any = ()  # of weighted pairs, see `reweighted.effective_share`


class Multipliers(NamedTuple):
    """The dual variables of the saddle-point problem, with their own step sizes."""

    duals: jax.Array  # β [d, d], lower triangle
    barrier: jax.Array  # b, the weight of squared errors
    penalty: jax.Array  # [d, d] running mean of error * other_error


def gram_error(u: jax.Array, weighted: jax.Array, ordered: bool) -> jax.Array:
    """Σ weighted_j u_k - δ_jk, `[d, d]`, for u `[S, d]` and `weighted`, u times its weights.

    `ordered` stops the gradient of the second factor, so that row j moves only u_j, towards
    orthogonality to those before it.
    """
    second = jax.lax.stop_gradient(u) if ordered else u
    return matmul(weighted.T, second) - jnp.eye(u.shape[1])


def exact_moments(u: jax.Array, graph: jax.Array, weight: jax.Array, ordered: bool) -> Moments:
    """Moments of u `[S, d]`, with `graph` `[S, S]` and the law of states `weight` of `graph_of`."""
    spread = jnp.sum(u * matmul(graph, u), axis=0)
    error = gram_error(u, u * weight[:, None], ordered)
    return Moments(spread, error, error)


def sampled_moments(
    u: jax.Array, u_next: jax.Array, u_a: jax.Array, u_b: jax.Array, ordered: bool
) -> Moments:
    """Moments from pairs (u, u_next) and two independent batches of states, each `[B, d]`."""
    spread = jnp.mean((u - u_next) ** 2, axis=0)
    error, other = (gram_error(x, x / len(x), ordered) for x in (u_a, u_b))
    return Moments(spread, error, other)


def weighted_moments(
    pair: tuple[jax.Array, jax.Array],
    states: tuple[jax.Array, jax.Array],
    weights: tuple[jax.Array, jax.Array, jax.Array],
    ordered: bool,
) -> Moments:
    """The same with weights `[B]` of the pairs and of both batches of states, of any scale."""
    pair_shares, *state_shares = (shares(weight)[:, None] for weight in weights)
    spread = jnp.sum(pair_shares * (pair[0] - pair[1]) ** 2, axis=0)
    error, other = (
        gram_error(x, x * w, ordered) for x, w in zip(states, state_shares, strict=True)
    )
    return Moments(spread, error, other, reweighted.effective_share(weights[0]))


def shares(weight: jax.Array) -> jax.Array:
    """Weights divided by their sum; equal ones if all are 0."""
    total = weight.sum()
    return jnp.where(total > 0, weight / jnp.where(total > 0, total, 1.0), 1 / len(weight))


def graph_of(pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`(graph [S, S], weight [S])` of a law of pairs M `[S, S]` that sums to 1.

    uᵀ graph u = E[(u(s) - u(s'))²], and weight is the law of s.
    """
    first, second = pairs.sum(axis=1), pairs.sum(axis=0)
    return jnp.diag(first + second) - pairs - pairs.T, first


def allo_loss(
    moments: Moments, multipliers: Multipliers, mask: jax.Array, graph_weight: float | jax.Array
) -> jax.Array:
    """The augmented Lagrangian as the features see it (eq. 6), for `mask` `[d]`.

    `graph_weight` scales the first term: at 1 it is 2 <u, L u>, as in the code of the paper, and β
    converges to -4 λ; at ½ it is <u, L u>, as in the text, and β converges to -2 λ.
    """
    error = (moments.error + moments.other_error) / 2
    squared = moments.error * moments.other_error
    rows = jnp.tril(multipliers.duals * error + multipliers.barrier * squared)
    return jnp.sum(mask * (graph_weight * moments.spread + rows.sum(axis=1)))


def graph_drawing_loss(
    moments: Moments, barrier: jax.Array, weights: jax.Array, graph_weight: float | jax.Array
) -> jax.Array:
    """Σ c_i E[(u_i(s) - u_i(s'))²] + b Σ min(c_j, c_k) E_jk² for `weights` c `[d]`.

    The second sum is scaled to a mean weight of 1. c = 1 is GDO, c = d, d-1, …, 1 GGDO.
    """
    pairwise = jnp.minimum(weights[:, None], weights[None, :])
    squared = moments.error * moments.other_error
    penalty = jnp.sum(pairwise * squared) / jnp.mean(pairwise)
    return graph_weight * jnp.sum(weights * moments.spread) + barrier * penalty


def drawing_weights(method: Method, d: int) -> jax.Array:
    """c of `graph_drawing_loss`, `[d]`."""
    return jnp.arange(d, 0, -1.0) if method == "ggdo" else jnp.ones(d)


def previous_rows_mask(error: jax.Array, threshold: float | None) -> jax.Array:
    """1 for each feature if all errors in earlier rows of the constraint are below `threshold`.

    A curriculum: feature i learns once those before it are orthonormal. `[d]`; all 1 for None.
    """
    d = error.shape[0]
    if threshold is None:
        return jnp.ones(d)
    is_good = jnp.all(jnp.abs(jnp.tril(error)) < threshold, axis=1)
    mask = jnp.concatenate([jnp.ones(1), jnp.cumprod(is_good)[:-1]])
    return jax.lax.stop_gradient(mask)


def dual_update(
    multipliers: Multipliers,
    moments: Moments,
    mask: jax.Array,
    dual_step: float | jax.Array,
    dual_limit: float | jax.Array,
    barrier_step: float | jax.Array,
    barrier_limit: float | jax.Array,
) -> Multipliers:
    """Dual ascent: β grows by the errors, b by their smoothed, unbiased mean square."""
    error = jnp.tril(moments.error + moments.other_error) / 2
    duals = multipliers.duals + dual_step * mask[:, None] * error
    squared = jnp.tril(moments.error * moments.other_error)
    penalty = multipliers.penalty + SMOOTHING * (squared - multipliers.penalty)
    growth = barrier_step * jnp.mean(mask[:, None] * jnp.maximum(penalty, 0.0))
    barrier = jnp.minimum(multipliers.barrier + growth, barrier_limit)
    return Multipliers(jnp.clip(duals, -dual_limit, dual_limit), barrier, penalty)


def measured_duals(
    multipliers: Multipliers,
    moments: Moments,
    graph_weight: float | jax.Array,
) -> jax.Array:
    """The duals `[d, d]` of methods whose loss has none: they follow -4 λ, as those of ALLO do.

    λ are the Rayleigh quotients ½ E[(u_i(s) - u_i(s'))²] / E[u_i²], in a running mean, each at most
    `LARGEST`; 0 for features that are 0.
    """
    square = 1 + jnp.diag(moments.error + moments.other_error) / 2
    quotient = jnp.where(square > 0, moments.spread / 2 / jnp.where(square > 0, square, 1.0), 0.0)
    duals = -4 * graph_weight * jnp.diag(jnp.minimum(quotient, LARGEST))
    return multipliers.duals + MEMORY * (duals - multipliers.duals)


def rayleigh_ritz(energy: jax.Array, gram: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The best eigenpairs in the span of d features, `(rotation [d, d], values [d])`.

    u rotation are the stationary points of <v, L v> / <v, v> over v in the span of u, in ascending
    order, for `energy` = <u_j, L u_k> and `gram` = <u_j, u_k>, both `[d, d]`. Signs stay as near to
    those of u as they can. A direction that u hardly spans comes last, with a short vector.
    """
    size, axes = linalg.eigh(gram)
    whiten = matmul(axes * jax.lax.rsqrt(jnp.maximum(size, FLOOR))[None, :], axes.T)
    symmetric = lambda x: matmul(whiten, matmul((x + x.T) / 2, whiten))
    missing = jnp.eye(len(gram)) - symmetric(gram)  # 0 except in directions hardly spanned,
    values, within = linalg.eigh(symmetric(energy) + LARGEST * missing)  # which are sorted last
    rotation = matmul(whiten, within)
    return rotation * jnp.where(jnp.diag(rotation) < 0, -1.0, 1.0)[None, :], values


def exact_eigenpairs(
    u: jax.Array, graph: jax.Array, weight: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`rayleigh_ritz` of features `[S, d]` of all states, and `eigenvector_errors` `[d]`.

    `graph` `[S, S]` and `weight` `[S]` are those of `graph_of`.
    """
    weight = weight[:, None]
    slope = matmul(graph, u) / 2  # ρ L u
    energy, gram = matmul(u.T, slope), matmul((u * weight).T, u)
    rotation, values = rayleigh_ritz(energy, gram)
    # States that no recorded pair begins in have no weight, and no part in L2(ρ).
    laplacian = slope / jnp.where(weight > 0, weight, 1.0)  # L u
    miss = matmul(laplacian, rotation) - values[None, :] * matmul(u, rotation)
    residual = jnp.sqrt(jnp.sum(weight * miss**2, axis=0))
    is_whole = len(values) == len(u)  # nothing lies beyond the span of as many features
    return rotation, values, eigenvector_errors(residual, values, is_whole)


def sampled_eigenpairs(
    u: jax.Array, u_next: jax.Array, weight: jax.Array | tuple = ()
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`rayleigh_ritz` from features `[B, d]` of sampled pairs; errors are unknown, so 90°.

    `weight` `[B]` is of any scale; () for none.
    """
    if isinstance(weight, tuple):
        energy, gram = pair_moments(u, u_next)
    else:
        difference, share = u - u_next, shares(weight)[:, None]
        energy = matmul((difference * share).T, difference) / 2
        gram = matmul((u * share).T, u)
    rotation, values = rayleigh_ritz(energy, gram)
    return rotation, values, jnp.full(values.shape, jnp.pi / 2)


def pair_moments(u: jax.Array, u_next: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`energy` and `gram` for `rayleigh_ritz`, from features `[B, d]` of sampled pairs."""
    difference = u - u_next
    return matmul(difference.T, difference) / (2 * len(u)), matmul(u.T, u) / len(u)


def eigenvector_errors(residual: jax.Array, values: jax.Array, is_whole: bool = False) -> jax.Array:
    """Angles between Ritz vectors and eigenvectors, `[d]`, to first order, in radians.

    `residual` `[d]` is |L u - λ u| for u of length 1, `values` `[d]` the Ritz values λ, ascending.
    The missing part of a vector lies outside the span of all d, where eigenvalues are at least
    about the last Ritz value: the angle is residual over gap, which is of little use for the last
    few. Within the span two vectors mix only through their missing parts (Parlett 1998, chapter
    11). Where the span is the whole space (`is_whole`), nothing lies outside, and the bound is
    `LARGEST` instead, or twice an eigenvalue that exceeds it.
    """
    bound = values[-1]
    if is_whole:
        bound = jnp.where(bound > LARGEST, 2 * bound, LARGEST)
    outer_gap = jnp.maximum(bound - values, SMALLEST_GAP)
    distances = jnp.abs(values[:, None] - values[None, :])
    inner_gaps = jnp.where(
        jnp.eye(len(values), dtype=bool), jnp.inf, jnp.maximum(distances, SMALLEST_GAP)
    )
    mixed = residual[:, None] * residual[None, :] / (inner_gaps * outer_gap[:, None])
    return residual / outer_gap + jnp.max(mixed, axis=1)
