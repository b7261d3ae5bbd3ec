"""How close learned left and right eigenvectors of a directed walk are to the true ones.

The true ones are those of the walk itself, its transition matrix P; the ceiling is the score of the
exact eigenvectors of the transition frequencies that were recorded. S states, d eigenvectors.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table
from scipy import sparse

from jaxrl.spectral import directed, hitting_times, laplacian, subspace
from jaxrl.spectral.control import potentials
from jaxrl.spectral.directed import Eigenpairs
from jaxrl.spectral.sparse_laplacian import num_states
from train.allo.scores import NEAR, columns_needed, seeds_table

MOST_STATES = 2_000
"""States up to which all left and right eigenvectors are computed."""
SIDES = ("right", "left")


class Side(NamedTuple):
    """True eigenvectors on one side, complex64."""

    eigenvectors: Any  # [S, d]
    tied: Any  # [S, e] orthonormal within groups of equal eigenvalues and conjugates
    near: Any  # [S, e] the same, near ties included


class Truth(NamedTuple):
    """What learned eigenpairs are compared with; e >= d true columns."""

    right: Side
    left: Side
    weight: Any  # [S] law of the second state of a pair
    values: Any  # [d] complex64 μ
    group: Any  # int [d], equal values and conjugates
    column_group: Any  # int [e], the same for the true columns; -1 beyond the learned groups
    near_group: Any  # int [d], near ties included
    near_column_group: Any  # int [e]


class EigenpairEstimate(NamedTuple):
    """What one seed learned or what its data make likely, m >= d eigenpairs."""

    values: Any  # [m] complex μ
    right: Any  # [S, m]
    left: Any  # [S, m] densities relative to `weight`
    weight: Any  # [S]


def eigenpairs_of(chain: sparse.csr_array, steps: int, discount: float) -> Eigenpairs:
    """Eigenpairs of P `[S, S]`, relative to the law of second states in walks of `steps`.

    Raises ValueError for what has no such eigenpairs, and for too many states.
    """
    P = dense_chain(chain)
    start = np.full(len(P), 1 / len(P))
    arrivals = laplacian.sampled_pairs(P, start, steps, discount).sum(axis=0)
    return directed.eigenpairs(P, arrivals, discount)


def dense_chain(chain: sparse.csr_array) -> np.ndarray:
    """P `[S, S]` as a dense array."""
    count = num_states(chain)
    if count > MOST_STATES:
        raise ValueError(
            f"agent.directed in a maze of {count:,} states; expected at most {MOST_STATES:,}, as "
            "the true left and right eigenvectors of more are not computed"
        )
    return chain.toarray()


def truth_of(exact: Eigenpairs, d: int, discount: float) -> Truth:
    """The first d eigenpairs, on the device."""
    e = min(len(exact.values), columns_needed(d))
    slowness = laplacian.lambda_of_mu(exact.values[:e], discount)
    ties, near = directed.groups(slowness), directed.groups(slowness, relative=NEAR)
    keep_learned = lambda ids: np.where(np.isin(ids, ids[:d]), ids, -1)

    def side(vectors: np.ndarray) -> Side:
        bases = [_orthonormal(vectors[:, :e], exact.weight, group) for group in (ties, near)]
        return Side(*(jnp.asarray(x, jnp.complex64) for x in (vectors[:, :d], *bases)))

    return Truth(
        side(exact.right),
        side(exact.left),
        jnp.asarray(exact.weight, jnp.float32),
        jnp.asarray(exact.values[:d], jnp.complex64),
        *map(jnp.asarray, (ties[:d], keep_learned(ties), near[:d], keep_learned(near))),
    )


def _orthonormal(vectors: np.ndarray, weight: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The columns of every group made orthonormal in L2(weight), float64."""
    root, out = np.sqrt(weight)[:, None], np.empty_like(vectors)
    for one in np.unique(group):
        members = group == one
        out[:, members] = np.linalg.qr(vectors[:, members] * root)[0] / root
    return out


def similarities(estimate: EigenpairEstimate, truth: Truth) -> dict[str, jax.Array]:
    """Scores of both sides, and their means; jittable."""
    d, scores = len(truth.values), dict[str, jax.Array]()
    for name in SIDES:
        learned, true = getattr(estimate, name)[:, :d], getattr(truth, name)
        ties = truth.weight, truth.group, truth.column_group
        near = truth.weight, truth.near_group, truth.near_column_group
        scores[name] = subspace.similarity(learned, true.tied, *ties)
        scores[f"near_{name}"] = subspace.similarity(learned, true.near, *near)
        scores[f"cosines_{name}"] = subspace.cosines(learned, true.eigenvectors, truth.weight)
    right, left = SIDES
    mean_of_sides = lambda prefix: (scores[prefix + right] + scores[prefix + left]) / 2
    return scores | {
        "similarity": mean_of_sides(""),
        "near_similarity": mean_of_sides("near_"),
        "cosines": mean_of_sides("cosines_"),
    }


compiled_similarities = jax.jit(similarities)
"""The same, compiled."""


@jax.jit
def times_of(estimate: EigenpairEstimate) -> jax.Array:
    """Hitting times `[S, S]` from all m eigenpairs."""
    return hitting_times.from_eigenpairs(*estimate)


def seed_scores(
    estimate: EigenpairEstimate,
    chain: np.ndarray | None,
    truth: Truth,
    true_times: np.ndarray,
    discount: float,
) -> dict[str, Any]:
    """The measures of one seed in `eval.json`.

    `chain` `[S, S]` are the recorded transition frequencies, None where nothing was recorded, as
    for a policy: then there is no ceiling. `true_times` `[S, S]` are the exact hitting times.
    """
    learned = jax.device_get(compiled_similarities(estimate, truth))
    d = len(truth.values)
    values, true = np.asarray(estimate.values)[:d], np.asarray(truth.values)
    slowness = lambda mu: jnp.asarray(laplacian.lambda_of_mu(mu, discount))
    row: dict[str, Any] = {
        name: float(x) for name, x in learned.items() if not name.startswith("cosines")
    }
    row |= {name: x.tolist() for name, x in learned.items() if name.startswith("cosines_")}
    row |= {
        "eigenvalues_within": int(np.sum(subspace.is_close(slowness(values), slowness(true)))),
        "eigenvalue_error": float(np.abs(values - true).max()),
        "eigenvalues": [[float(x.real), float(x.imag)] for x in values],
    }
    row |= ranks("", np.asarray(times_of(estimate)), true_times)
    return row if chain is None else row | _ceilings(estimate, chain, truth, true_times, discount)


def ranks(prefix: str, times: np.ndarray, true_times: np.ndarray) -> dict[str, float]:
    """Mean and least rank correlation with the exact hitting times, over goals and over sources."""
    goals, sources = hitting_times.rank_correlations(times, true_times)
    return {
        f"{prefix}rank_goals": float(goals.mean()),
        f"{prefix}rank_goals_least": float(goals.min()),
        f"{prefix}rank_sources": float(sources.mean()),
        f"{prefix}rank_sources_least": float(sources.min()),
    }


def _ceilings(
    estimate: EigenpairEstimate,
    chain: np.ndarray,
    truth: Truth,
    true_times: np.ndarray,
    discount: float,
) -> dict[str, Any]:
    """Scores of the exact solution for the recorded walk, and of its commute times.

    Nothing if the recorded walk is not one whose eigenpairs can be computed.
    """
    chain = chain / chain.sum(axis=1, keepdims=True)  # float32 adds up to 1 only nearly
    try:
        best = directed.eigenpairs(chain, np.asarray(estimate.weight, float), discount)
        times = hitting_times.exact_times(chain)
    except ValueError:
        return {}
    d = len(truth.values)
    values, right, left = (jnp.asarray(x[..., :d], jnp.complex64) for x in best[:3])
    ceiling = jax.device_get(
        compiled_similarities(EigenpairEstimate(values, right, left, estimate.weight), truth)
    )
    names = (*SIDES, "similarity", "near_similarity")
    row = {f"ceiling_{name}": float(ceiling[name]) for name in names}
    row |= ranks("ceiling_", times, true_times)
    return row | ranks("symmetric_", commute_times(chain, estimate), true_times)


def symmetric_eigenpairs(
    chain: np.ndarray, estimate: EigenpairEstimate
) -> tuple[jax.Array, jax.Array]:
    """Eigenvectors `[S, m]` and eigenvalues 1 - μ `[m]` of the self-adjoint part of a walk.

    As many exact ones as `estimate` has, so that direction is all that they lack.
    """
    m = len(estimate.values)
    whole = laplacian.eigensystem(np.asarray(estimate.weight, float)[:, None] * chain)
    leading = whole.vectors[:, :m], whole.values[:m]
    return tuple(jnp.asarray(x, jnp.float32) for x in leading)  # pyright: ignore[reportReturnType]


def commute_times(chain: np.ndarray, estimate: EigenpairEstimate) -> np.ndarray:
    """Commute times `[S, S]` from `symmetric_eigenpairs`."""
    eigenpairs = symmetric_eigenpairs(chain, estimate)
    times_to_goal = lambda goal: potentials.commute_time(*eigenpairs, goal)
    return np.asarray(jax.vmap(times_to_goal, out_axes=1)(jnp.arange(len(chain))))


def unfinished_seeds(seeds: list[dict[str, Any]]) -> str:
    """The seeds whose eigenvectors may be wrong, as a few words; empty if there are none."""
    names = [str(row["seed"]) for row in seeds if not row.get("is_converged", True)]
    return f"not converged: seed {', '.join(names)}" if names else ""


def scores_table(seeds: list[dict[str, Any]], d: int) -> Table:
    """A row per seed, and one for their mean."""
    caption = (
        "score: similarity with the true eigenspaces, mean of right and left; ceiling: the best "
        "the data allow; angle: by which a vector may miss that of the data, in radians; μ: how "
        "many are right; goals, sources: rank correlation of hitting times with the exact ones, "
        "mean over goals and over sources; commute: that of commute times, mean over goals"
    )
    if unfinished := unfinished_seeds(seeds):
        caption += (
            f"\n{unfinished}; eigenvectors may be off by more than {directed.CONVERGED} rad: raise "
            "--run.total-steps or --agent.spare-features"
        )
    columns = {
        "similarity": "score",
        "ceiling_similarity": "ceiling",
        "near_similarity": "near ties",
        "eigenpair_angle": "angle",
        "eigenvalues_within": f"μ of {d}",
        "rank_goals": "goals",
        "rank_sources": "sources",
        "symmetric_rank_goals": "commute",
    }
    title = "learned against true left and right eigenvectors"
    return seeds_table(title, caption, columns, seeds)
