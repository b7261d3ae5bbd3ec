"""Experiments on vector fields to be looked at sample by sample, in a report.

Axes: T samples, K snapshots, G points of the grid along each axis.
"""

from itertools import product
from pathlib import Path

import numpy as np

from train.host import snapshots
from train.host.episodes import Episode, Scene
from train.host.program import Run, Wanted
from train.host.snapshots import Kept
from train.vector_field import pictures
from train.vector_field.training import SAMPLES_PER_UPDATE, samples_of

SCRIPT = Path(__file__).with_name("vector_field.js")
CHANNELS = 6
"""Channels that are shown as time series."""


def show(run: Run, wanted: Wanted) -> Scene | None:
    """An episode for each policy and field, of one seed; None for fits to recorded data."""
    config = run.config
    if config.data:
        return None
    chunk = config.run.chunk_updates(SAMPLES_PER_UPDATE)
    looks = snapshots.snapshots(run.directory, run.updates, chunk)
    recorded = samples_of(run)
    if looks is None or recorded is None:
        return None
    _, true, _ = pictures.learned_fields(config, run.agents)
    s = wanted.member
    episodes = [
        _episode(
            f"{policy} on {field.replace('_', ' ')}",
            {name: x[s, p, f, : wanted.limit] for name, x in recorded.items()},
            Kept(looks.updates, {name: x[:, s, p, f] for name, x in looks.arrays.items()}),
            true[s, f],
            config.learner != "sequence_vae",
        )
        for (f, field), (p, policy) in product(
            enumerate(config.env.fields), enumerate(config.policies)
        )
    ]
    return Scene([SCRIPT], episodes[: wanted.count], {"box": float(config.box)})


def _episode(
    title: str, recorded: dict[str, np.ndarray], looks: Kept, true: np.ndarray, aligned: bool
) -> Episode:
    """One experiment. `look` `[T]` is the newest snapshot of the learned field at each sample.

    `aligned`: the learner's belief has the coordinates of the true state.
    """
    count = len(recorded["z"])
    look = np.searchsorted(looks.updates * SAMPLES_PER_UPDATE, np.arange(count), side="right") - 1
    velocity = looks.arrays["velocity"].astype(np.float32)  # [K, G, G, 2]
    deviation = looks.arrays["deviation"].astype(np.float32)  # [K, G, G]
    missed = np.sqrt(((velocity - true) ** 2).sum((1, 2, 3)) / (true**2).sum())
    frames = {"z": recorded["z"], "u": recorded["u"], "look": look.astype(np.int32)}
    if aligned:
        frames["belief"] = recorded["belief"]
    lines = {
        "error of the field": missed[look].astype(np.float32),
        "mean deviation": deviation.mean((1, 2))[look],
        **{f"input {k + 1}": x for k, x in enumerate(recorded["u"].T)},
        **{f"channel {k + 1}": x for k, x in enumerate(recorded["y"].T[:CHANNELS])},
    }
    return Episode(
        title=f"{title}, error {missed[look[-1]]:.2f}",
        frames=frames,
        lines=lines,
        constants={
            "true": true.reshape(-1, 2),
            "learned": velocity.reshape(len(velocity), -1),
            "deviation": deviation.reshape(len(deviation), -1),
            "points": true.shape[0],
            "strongest": float(np.abs(recorded["u"]).max()),
        },
    )
