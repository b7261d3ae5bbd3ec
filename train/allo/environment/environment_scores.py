"""How good eigenvectors are of which nobody knows the truth: what other walks say of them.

Pairs are of walks that nothing was learned from. A feature u keeps the share ρ = E[u(s) u(s')] /
E[u²] of itself from s to s', a geometric time later: 1 - ρ is its Rayleigh quotient λ, and of all
functions the first d eigenvectors keep most together (Ky Fan). Axes: B pairs, d features.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table
from scipy.linalg import orth, svdvals

from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul
from train.allo.scores import seeds_table

SMALL = 1e-4
"""Directions of the features with a smaller share of their largest mean square do not count."""
MOST_NUMBERS = 500
"""Numbers of an observation up to which linear functions of it are a measure."""


def second_moments(u: Any, u_next: Any, product: Any = matmul) -> tuple[Any, Any]:
    """`(gram, energy)`, `[d, d]` each, of features `[B, d]` at both ends of pairs.

    Both ends count alike, so that energy is <u_j, L u_k> of the self-adjoint part of the walk and
    no λ exceeds 2: gram = ½ E[u uᵀ + u' u'ᵀ], energy = ½ E[(u - u') (u - u')ᵀ].
    """
    difference, count = u - u_next, 2 * len(u)
    gram = (product(u.T, u) + product(u_next.T, u_next)) / count
    return gram, product(difference.T, difference) / count


def row_measures(u: jax.Array, u_next: jax.Array) -> dict[str, jax.Array]:
    """The measures of a row of the record; jittable.

    * `persistence`: the mean over d of the ρ of the best vectors in the span of the features,
      whatever their scale; 0 for what they do not span.
    * `orthogonality`: the largest |E[u_j u_k] - δ_jk|.
    * `rayleigh` `[d]`: the λ that each feature has itself.
    """
    gram, energy = second_moments(u, u_next)
    size, axes = linalg.eigh(gram)
    is_whole = size > SMALL * size[-1]
    whiten = axes * jnp.where(is_whole, jax.lax.rsqrt(jnp.where(is_whole, size, 1.0)), 0.0)[None]
    total_share = jnp.trace(matmul(whiten.T, matmul(gram - energy, whiten)))  # the sum of all ρ
    norm = jnp.maximum(jnp.diag(gram), 1e-12)
    return {
        "persistence": jnp.clip(total_share / len(gram), -1.0, 1.0),
        "orthogonality": jnp.max(jnp.abs(gram - jnp.eye(len(gram)))),
        "rayleigh": jnp.diag(energy) / norm,
    }


def kept_shares(u: np.ndarray, u_next: np.ndarray, count: int) -> np.ndarray:
    """ρ `[count]` of the best vectors in the span of the columns `[B, D]`, from the largest.

    Time-lagged independent component analysis (Molgedey & Schuster 1994): the eigenvalues of the
    lagged covariance relative to the instantaneous one, without subtracting means. 0 for what the
    columns do not span. Float64.
    """
    shares = shares_of(*second_moments(u.astype(float), u_next.astype(float), np.matmul))
    return np.pad(np.clip(shares, -1, 1)[:count], (0, max(0, count - len(shares))))


def shares_of(gram: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """ρ of the best vectors in the span of features, from the largest, of `second_moments`.

    As many as the features have directions, whatever their scale.
    """
    size, axes = np.linalg.eigh(gram)
    whole = size > SMALL * size[-1]
    whiten = axes[:, whole] / np.sqrt(size[whole])
    return 1 - np.linalg.eigvalsh(whiten.T @ energy @ whiten)


def seed_measures(
    u: np.ndarray, u_next: np.ndarray, obs: np.ndarray, next_obs: np.ndarray
) -> dict[str, Any]:
    """The measures of one seed in `eval.json`: those of a row in float64, and

    * `shares` `[d]`: the ρ that `persistence` is the mean of.
    * `linear`: the same mean of the best functions that are linear in what is observed
      `[B, ...]`, a constant included; None for more than `MOST_NUMBERS` numbers.
    """
    d = u.shape[1]
    gram, energy = second_moments(u.astype(float), u_next.astype(float), np.matmul)
    shares = kept_shares(u, u_next, d)
    flat = [np.asarray(x, float).reshape(len(x), -1) for x in (obs, next_obs)]
    linear = None
    if flat[0].shape[1] <= MOST_NUMBERS:
        both = np.concatenate(flat)  # what is constant at one end may vary at the other
        middle, scale = both.mean(axis=0), np.maximum(both.std(axis=0), 1e-12)
        first, second = (np.insert((x - middle) / scale, 0, 1.0, axis=1) for x in flat)
        linear = float(kept_shares(first, second, d).mean())
    return {
        "persistence": float(shares.mean()),
        "linear": linear,
        "orthogonality": float(np.abs(gram - np.eye(d)).max()),
        "rayleigh": (np.diag(energy) / np.maximum(np.diag(gram), 1e-12)).tolist(),
        "shares": shares.tolist(),
    }


def agreement(features: list[np.ndarray], index: int) -> dict[str, float]:
    """How well seed `index` agrees with the others, from features `[B, d]` of the same states.

    * `agreement`: the mean cosine of the principal angles between the spans.
    * `cosine`: the mean |cos| of features of equal index, which mixing of near ties lowers.
    """
    mine = np.asarray(features[index], float)
    spans, cosines = [], []
    for other in (x for i, x in enumerate(features) if i != index):
        bases = [orth(np.asarray(x, float), SMALL) for x in (mine, other)]
        angles = svdvals(bases[0].T @ bases[1])
        spans.append(np.minimum(angles, 1).sum() / mine.shape[1])
        lengths = np.linalg.norm(mine, axis=0) * np.linalg.norm(other, axis=0)
        cosines.append(np.mean(np.abs((mine * other).sum(axis=0)) / np.maximum(lengths, 1e-12)))
    return {"agreement": float(np.mean(spans)), "cosine": float(np.mean(cosines))}


def table(content: dict[str, Any]) -> Table:
    """A row for each seed, and one for their mean."""
    caption = (
        "Nobody knows the true eigenvectors here; measured on walks that nothing was learned from. "
        "persistence: what the span of the features keeps of itself over a pair, at most 1; "
        "linear: the same of the best linear functions of what is observed; orthogonality: largest "
        "error of the Gram matrix; agreement, |cos|: with the spans and the features of other seeds"
    )
    columns = {
        "persistence": "persistence",
        "linear": "linear",
        "orthogonality": "orthogonality",
        "agreement": "agreement",
        "cosine": "|cos|",
    }
    rows = [{k: x for k, x in row.items() if x is not None} for row in content["seeds"]]
    return seeds_table(f"learned eigenvectors of {content['environment']}", caption, columns, rows)
