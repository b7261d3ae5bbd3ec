"""How close learned eigenvectors are to the true ones, and how close the data allow them to be.

The true ones are those of the operator that is sampled: pairs from walks of a known length. The
ceiling is the score of the exact eigenvectors of the empirical operator, estimated from the
recorded transitions, which learning can only beat by luck. The gap below the ceiling is due to
learning, the gap above it to the data.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.table import Table

from jaxrl.spectral import laplacian, subspace
from jaxrl.spectral.laplacian import Eigensystem

NEAR = 0.01  # eigenvalues with a smaller relative difference count as equal in `near_similarity`
CEILING = 3_000
"""States above which there is no ceiling, as it needs all eigenvectors of the data's operator."""
MORE = 10  # further true columns, for a group of equal eigenvalues that the last learned one cuts


class Truth(NamedTuple):
    """What learned features `[S, d]` are compared with; e >= d true columns."""

    vectors: Any  # [S, e] orthonormal in L2(weight)
    weight: Any  # [S] law of states
    values: Any  # [d] λ of the sampled operator
    group: Any  # int [d], exact ties
    column_group: Any  # int [e], the same for the true columns; -1 beyond the learned groups
    near_group: Any  # int [d], near ties included
    near_column_group: Any  # int [e]


def columns_needed(d: int) -> int:
    """True columns that d learned features are compared with, if there are so many."""
    return 2 * d + MORE


def truth_of(eigensystem: Eigensystem, d: int) -> Truth:
    """The first d eigenvectors, as float32 on the device."""
    e = min(eigensystem.vectors.shape[1], columns_needed(d))
    values = eigensystem.values[:e]
    ties = columns_of(laplacian.groups(values), d)
    near = columns_of(laplacian.groups(values, relative=NEAR), d)
    arrays = (eigensystem.vectors[:, :e], eigensystem.weight, values[:d])
    return Truth(*(jnp.asarray(x, jnp.float32) for x in arrays), *map(jnp.asarray, ties + near))


def columns_of(group: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """`(group [d], group [e])` of the first d components; -1 for groups beyond them."""
    return group[:d], np.where(group <= group[d - 1], group, -1)


def similarities(features: jax.Array, truth: Truth) -> dict[str, jax.Array]:
    """Scores of features `[S, d]`: scalars, and `cosines` `[d]`; jittable."""
    arrays = (features, truth.vectors, truth.weight)
    return {
        "similarity": subspace.similarity(*arrays, truth.group, truth.column_group),
        "near_similarity": subspace.similarity(*arrays, truth.near_group, truth.near_column_group),
        "cosines": subspace.cosines(*arrays),
        "collapsed": jnp.sum(subspace.is_collapsed(features, truth.weight)),
    }


compiled_similarities = jax.jit(similarities)
"""The same, compiled."""


def seed_scores(
    features: jax.Array, eigenvalues: jax.Array, pairs: jax.Array | None, truth: Truth
) -> dict[str, Any]:
    """The measures of one seed in `eval.json`.

    `features` `[S, d]` and `eigenvalues` `[d]` were learned; `pairs` `[S, S]` is the
    distribution of state pairs estimated from the recorded transitions. A state in which no pair
    begins was never left: its features are the network's extrapolation. `pairs` is NaN where
    nothing was recorded, as for a policy: then there is no ceiling and no eigenvalue. It is None
    where S is above `CEILING`: then there is no ceiling.
    """
    learned = jax.device_get(compiled_similarities(features, truth))
    row: dict[str, Any] = {
        "similarity": float(learned["similarity"]),
        "near_similarity": float(learned["near_similarity"]),
        "cosine": float(learned["cosines"].mean()),
        "collapsed": int(learned["collapsed"]),
        "cosines": learned["cosines"].tolist(),
    }
    if pairs is not None and not np.isfinite(pairs).all():
        return row
    error = np.abs(eigenvalues - np.asarray(truth.values))
    row |= {
        "eigenvalues_within": int(np.sum(subspace.is_close(eigenvalues, truth.values))),
        "eigenvalue_error": float(error.max()),
        "eigenvalues": np.asarray(eigenvalues).tolist(),
    }
    lacks_ceiling = pairs is None or len(pairs) > CEILING
    return row if lacks_ceiling else row | _ceilings(np.asarray(pairs, float), truth)


def _ceilings(pairs: np.ndarray, truth: Truth) -> dict[str, Any]:
    """The scores of the exact eigenvectors of the law `[S, S]` that the data make likely.

    Where fewer states than features begin a pair there are no others: those are 0.
    """
    empirical, d = laplacian.eigensystem(pairs, missing="drop"), len(truth.values)
    vectors = empirical.vectors[:, :d]
    best = np.pad(vectors, ((0, 0), (0, d - vectors.shape[1])))
    ceiling = jax.device_get(compiled_similarities(jnp.asarray(best, jnp.float32), truth))
    return {
        "ceiling": float(ceiling["similarity"]),
        "near_ceiling": float(ceiling["near_similarity"]),
        "never_left": int(np.sum(np.sum(pairs, axis=1) == 0)),
    }


def scores_table(seeds: list[dict[str, Any]], d: int) -> Table:
    """A row per seed, and one for their mean."""
    caption = (
        "score: similarity with the true eigenspaces; near ties: the same with eigenvalues within "
        "1 % taken as equal; ceiling: the best the data allow; λ: how many are right"
    )
    never_left = {row["seed"]: row["never_left"] for row in seeds if row.get("never_left")}
    if never_left:
        counts = ", ".join(f"{count} with seed {seed}" for seed, count in never_left.items())
        caption += (
            f"\nStates that no recorded transition leaves: {counts}. Record more transitions."
        )
    if "eigenvalues" in seeds[0] and "ceiling" not in seeds[0]:
        caption += f"\nNo ceiling: it is computed for up to {CEILING:,} numbered states."
    columns = {
        "similarity": "score",
        "ceiling": "ceiling",
        "near_similarity": "near ties",
        "near_ceiling": "ceiling",
        "cosine": "|cos|",
        "eigenvalues_within": f"λ of {d}",
        "collapsed": "collapsed",
    }
    return seeds_table("learned against true eigenvectors", caption, columns, seeds)


def seeds_table(
    title: str, caption: str, columns: dict[str, str], seeds: list[dict[str, Any]]
) -> Table:
    """A row per seed, and one for their mean; `columns` maps names of measures to headings.

    There are no lines between columns, so that nine of them fit into 80 characters.
    """
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("seed", *columns.values()):
        table.add_column(heading, justify="right")
    for row in seeds:
        cells = (number(row[name]) if name in row else "" for name in columns)
        table.add_row(str(row["seed"]), *cells)
    if len(seeds) > 1:
        column_values = ([row[name] for row in seeds if name in row] for name in columns)
        table.add_section()
        table.add_row("mean", *(number(float(np.mean(x))) if x else "" for x in column_values))
    return table


def number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
