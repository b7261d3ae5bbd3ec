"""How good eigenvectors of recorded data are."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.spectral.learning import allo_state
from jaxrl.types import AgentState
from train.allo import scores
from train.allo.environment.environment_scores import shares_of

PAIRS = 200_000
"""Recorded pairs that measures of vectors are averaged over."""


def measures(problem: Any, agent: AgentState, key: jax.Array) -> dict[str, Any]:
    """The measures of one seed in `eval.json`; `problem` is a `recorded_training.Problem`.

    * `similarity`, `cosines`, eigenvalues: against the eigenvectors of the recorded law of pairs,
      at ids or at the middles of cells.
    * `orthogonality`: the largest |E[u_j u_k] - δ_jk|.
    * `rayleigh` `[d]`: ½ E[(u(s) - u(s'))²] / E[u²], the λ that a feature itself has.
    * `explained`: Σ (1 - λ) of the best vectors within the span of the features, as a share of the
      same sum of the eigenvectors compared with, whatever the scale of the features. Above 1 the
      features are smoother than cells can be (the generalised matrix Rayleigh quotient of McGibbon
      & Pande 2015).
    * `residual` `[d]`: |E[u(s') | s] - (1 - λ) u(s)| relative to |u|, averaged over places; 0 for
      eigenvectors of a reversible walk.
    """
    network, config, truth = problem.network, problem.agent, problem.truth
    features = allo_state.features(network, config, agent, jnp.asarray(problem.points))
    row = scores.seed_scores(features, allo_state.eigenvalues(config, agent), None, truth)
    energy, gram, conditional = moments(problem, agent, key)
    norm = np.maximum(np.diag(gram), 1e-12)
    rayleigh = np.diag(energy) / norm
    values = np.asarray(truth.values, float)
    return row | {
        "orthogonality": float(np.abs(gram - np.eye(len(gram))).max()),
        "rayleigh": rayleigh.tolist(),
        "explained": float(np.sum(shares_of(gram, energy)) / np.sum(1 - values)),
        "residual": residuals(conditional, rayleigh).tolist(),
    }


def moments(
    problem: Any, agent: AgentState, key: jax.Array
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """`(energy [d, d], gram [d, d], (first, second, weight))` of the recorded pairs, float64.

    The last are means of u(s) and u(s') by the place of s, `[P, d]`, and the weights of places.
    """
    recording, pairs = problem.recording, problem.pairs
    apply = partial(jax.jit(partial(allo_state.features, problem.network, problem.agent)), agent)
    if recording.num_ids:
        u, weight = np.asarray(apply(jnp.asarray(problem.points)), float), pairs.sum(axis=1)
        graph = np.diag(weight + pairs.sum(axis=0)) - pairs - pairs.T
        after = pairs @ u / np.where(weight > 0, weight, 1.0)[:, None]
        return u.T @ graph @ u / 2, (u * weight[:, None]).T @ u, (u, after, weight)
    begin, end = drawn_pairs(recording.left, problem.agent.discount, key)
    u, after = (
        np.asarray(apply(jnp.asarray(x)), float)
        for x in (recording.state[begin], recording.next_state[end])
    )
    difference, place = u - after, problem.cells.first_cells[begin]
    count = np.bincount(place, minlength=len(pairs)).astype(float)
    mean = lambda x: (
        np.stack([np.bincount(place, column, minlength=len(pairs)) for column in x.T], axis=1)
        / np.maximum(count, 1)[:, None]
    )
    energy, gram = difference.T @ difference / (2 * len(u)), u.T @ u / len(u)
    return energy, gram, (mean(u), mean(after), count / len(u))


def drawn_pairs(left: np.ndarray, discount: float, key: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """The transitions that `PAIRS` pairs of the recorded law begin and end with, int `[B]` each."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    begin = rng.integers(0, len(left), PAIRS)
    share, n = rng.random(PAIRS), left[begin]
    if discount == 0:
        return begin, begin
    offsets = np.log1p(-share * (1 - float(discount) ** n)) / np.log(discount)
    return begin, begin + np.minimum(np.floor(offsets).astype(int), n - 1)


def residuals(
    conditional: tuple[np.ndarray, np.ndarray, np.ndarray], values: np.ndarray
) -> np.ndarray:
    """Residual of each feature `[d]`, from means of u(s) and u(s') by place; `values` are the λ."""
    first, second, weight = conditional
    miss = np.sum(weight[:, None] * (second - (1 - values) * first) ** 2, axis=0)
    size = np.sum(weight[:, None] * first**2, axis=0)
    return np.sqrt(miss / np.maximum(size, 1e-12))


def table(problem: Any, content: dict[str, Any]) -> Table:
    """A row for each seed."""
    is_ids = content["kind"] == "ids"
    places = (
        "the recorded ids" if is_ids else f"a division of the data into {content['states']} cells"
    )
    scores_table = Table(
        title="learned eigenvectors of recorded data",
        caption=(
            f"score: similarity with the eigenvectors of {places}; explained: Σ (1 - λ) in the "
            "span of the features, as a share of theirs; orthogonality: largest error of their "
            "Gram matrix; "
            "residual: largest of the slower half"
        ),
    )
    d = len(problem.truth.values)
    for heading in (
        "seed",
        "score",
        "|cos|",
        f"λ of {d}",
        "explained",
        "orthogonality",
        "residual",
    ):
        scores_table.add_column(heading, justify="right")
    for row in content["seeds"]:
        numbers = (row["similarity"], row["cosine"], row["eigenvalues_within"], row["explained"])
        slow = max(row["residual"][: max(1, d // 2)])
        cells = [scores.number(x) for x in (*numbers, row["orthogonality"], slow)]
        scores_table.add_row(str(row["seed"]), *cells)
    return scores_table
