"""Eigenvectors while they are learned, to be looked at in a report."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from envs.grid import drawing, frames
from train.allo import scores
from train.allo.config import learning_config
from train.allo.directed import directed_scene
from train.allo.scores import Truth
from train.allo.training import make_problem
from train.host.files import snapshots
from train.host.files.snapshots import SavedArrays
from train.host.program import EpisodeSelection, Run
from train.host.showing.episodes import Episode, Scene

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("allo.js")
SHOWN = 12
"""Eigenvectors that are drawn, from the first."""


def show(run: Run, selection: EpisodeSelection) -> Scene | None:
    """An episode for each seed: its moments are the snapshots taken while it learned.

    None for a run without snapshots, such as a policy, and for one on recorded data or in an
    environment.
    """
    if run.config.transitions or run.config.env.id:
        return None
    per_update = learning_config(run.config).steps_per_update
    chunk = run.config.run.chunk_updates(per_update)
    saved = snapshots.snapshots(run.directory, run.updates, chunk)
    if saved is None:
        return None
    problem = make_problem(run.config)
    if run.config.agent.directed:
        return directed_scene.show(run, selection, problem, saved, per_update)
    truth = jax.device_get(problem.truth)
    count = min(SHOWN, run.config.agent.num_features)
    seeds = list(enumerate(run.seeds))[: selection.count]
    steps = saved.updates * per_update
    return Scene(
        SCRIPTS,
        [_episode(saved, s, f"seed {seed}", truth, count, steps) for s, seed in seeds],
        frames.layout_data(problem.layout)
        | {"true": truth.vectors[:, :count].T, "values": [float(x) for x in truth.values[:count]]},
    )


def _episode(
    saved: SavedArrays, s: int, title: str, truth: Truth, count: int, steps: np.ndarray
) -> Episode:
    """One seed: `learned` `[M, count * S]`, each eigenvector with the sign of the true one."""
    features = saved.arrays["features"][:, s].astype(np.float32)  # [M, states, d]
    similarities = [_similarities(x, truth) for x in features]
    cosines = np.stack([x["cosines"] for x in similarities])  # [M, d]
    weight, true = np.asarray(truth.weight), np.asarray(truth.vectors)
    inner = np.einsum("msd,s,sd->md", features, weight, true[:, : features.shape[2]])
    signed_features = features * np.where(inner < 0, -1.0, 1.0)[:, None]
    score = np.array([x["similarity"] for x in similarities], np.float32)
    return Episode(
        title=f"{title}, similarity {score[-1]:.3f}",
        frames={
            "steps": steps.astype(np.int32),
            "learned": signed_features[:, :, :count]
            .swapaxes(1, 2)
            .reshape(len(signed_features), -1),
            "cosines": cosines[:, :count],
        },
        lines={"similarity": score, "worst cosine": cosines.min(1).astype(np.float32)},
    )


def _similarities(features: np.ndarray, truth: Truth) -> dict[str, Any]:
    return jax.device_get(scores.compiled_similarities(features, truth))
