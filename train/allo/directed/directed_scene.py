"""Left and right eigenvectors of a directed walk while they are learned, for a report."""

from pathlib import Path

import jax
import numpy as np

from envs.grid import drawing, frames
from train.allo import directed_scores
from train.allo.directed import directed_maps
from train.allo.directed_scores import SIDES, Found, Truth
from train.allo.problem import Problem
from train.host.files.snapshots import Kept
from train.host.program import Run, Wanted
from train.host.showing.episodes import Episode, Scene

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("directed.js")
SHOWN = 9
"""Eigenvectors that are drawn, from the first."""


def show(run: Run, wanted: Wanted, problem: Problem, taken: Kept, per_update: int) -> Scene:
    """An episode for each seed: its moments are the snapshots taken while it learned."""
    truth = jax.device_get(problem.truth)
    count = min(SHOWN, run.config.agent.num_features)
    seeds = list(enumerate(run.seeds))[: wanted.count]
    steps = taken.updates * per_update
    known = {
        f"true_{side}": parts(getattr(truth, side).eigenvectors[:, :count]) for side in SIDES
    } | {"values": [[float(x.real), float(x.imag)] for x in truth.values[:count]]}
    episodes = [_episode(taken, s, f"seed {seed}", truth, count, steps) for s, seed in seeds]
    return Scene(SCRIPTS, episodes, frames.of_layout(problem.layout) | known)


def parts(vectors: np.ndarray) -> np.ndarray:
    """Parts of complex `[..., S, n]`, float32 `[..., 2 n, S]`, real ones first."""
    both = np.concatenate([np.real(vectors), np.imag(vectors)], axis=-1)
    return both.swapaxes(-1, -2).astype(np.float32)


def _episode(
    taken: Kept, s: int, title: str, truth: Truth, count: int, steps: np.ndarray
) -> Episode:
    """One seed: `right` and `left` `[M, 2 count * S]`, in the phases of the true ones."""
    arrays = {name: x[:, s].astype(np.float32) for name, x in taken.arrays.items()}
    learned = {side: arrays[f"{side}_real"] + 1j * arrays[f"{side}_imag"] for side in SIDES}
    moments = [
        Found(truth.values, *sides, truth.weight)
        for sides in zip(learned["right"], learned["left"], strict=True)
    ]
    found = [jax.device_get(directed_scores.measured(one, truth)) for one in moments]
    line = lambda name: np.array([one[name] for one in found], np.float32)
    shown: dict[str, np.ndarray] = {"steps": steps.astype(np.int32)}
    for side in SIDES:
        true = getattr(truth, side).eigenvectors[:, :count]
        drawn = [directed_maps.aligned(true, x[:, :count]) for x in learned[side]]
        shown[side] = parts(np.stack(drawn)).reshape(len(drawn), -1)
        shown[f"cosines_{side}"] = line(f"cosines_{side}")[:, :count]
    return Episode(
        title=f"{title}, similarity {line('similarity')[-1]:.3f}",
        frames=shown,
        lines={name: line(name) for name in ("similarity", *SIDES)},
    )
