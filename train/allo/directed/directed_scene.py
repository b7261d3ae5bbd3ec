"""Left and right eigenvectors of a directed walk while they are learned, for a report."""

from pathlib import Path

import jax
import numpy as np

from envs.grid import drawing, frames
from train.allo.directed import directed_maps, directed_scores
from train.allo.directed.directed_scores import SIDES, EigenpairEstimate, Truth
from train.allo.problem import Problem
from train.host.files.snapshots import SavedArrays
from train.host.program import EpisodeSelection, Run
from train.host.showing.episodes import Episode, Scene

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("directed.js")
SHOWN = 9
"""Eigenvectors that are drawn, from the first."""


def show(
    run: Run, selection: EpisodeSelection, problem: Problem, saved: SavedArrays, per_update: int
) -> Scene:
    """An episode for each seed: its moments are the snapshots taken while it learned."""
    truth = jax.device_get(problem.truth)
    count = min(SHOWN, run.config.agent.num_features)
    seeds = list(enumerate(run.seeds))[: selection.count]
    steps = saved.updates * per_update
    true_arrays = {
        f"true_{side}": parts(getattr(truth, side).eigenvectors[:, :count]) for side in SIDES
    } | {"values": [[float(x.real), float(x.imag)] for x in truth.values[:count]]}
    episodes = [_episode(saved, s, f"seed {seed}", truth, count, steps) for s, seed in seeds]
    return Scene(SCRIPTS, episodes, frames.layout_data(problem.layout) | true_arrays)


def parts(vectors: np.ndarray) -> np.ndarray:
    """Parts of complex `[..., S, n]`, float32 `[..., 2 n, S]`, real ones first."""
    both = np.concatenate([np.real(vectors), np.imag(vectors)], axis=-1)
    return both.swapaxes(-1, -2).astype(np.float32)


def _episode(
    saved: SavedArrays, s: int, title: str, truth: Truth, count: int, steps: np.ndarray
) -> Episode:
    """One seed: `right` and `left` `[M, 2 count * S]`, in the phases of the true ones."""
    arrays = {name: x[:, s].astype(np.float32) for name, x in saved.arrays.items()}
    learned = {side: arrays[f"{side}_real"] + 1j * arrays[f"{side}_imag"] for side in SIDES}
    estimates = [
        EigenpairEstimate(truth.values, *sides, truth.weight)
        for sides in zip(learned["right"], learned["left"], strict=True)
    ]
    measures = [
        jax.device_get(directed_scores.compiled_similarities(one, truth)) for one in estimates
    ]
    line = lambda name: np.array([one[name] for one in measures], np.float32)
    frame_arrays: dict[str, np.ndarray] = {"steps": steps.astype(np.int32)}
    for side in SIDES:
        true = getattr(truth, side).eigenvectors[:, :count]
        aligned = [directed_maps.align_phases(true, x[:, :count]) for x in learned[side]]
        frame_arrays[side] = parts(np.stack(aligned)).reshape(len(aligned), -1)
        frame_arrays[f"cosines_{side}"] = line(f"cosines_{side}")[:, :count]
    return Episode(
        title=f"{title}, similarity {line('similarity')[-1]:.3f}",
        frames=frame_arrays,
        lines={name: line(name) for name in ("similarity", *SIDES)},
    )
