"""Another library's model on the simulated recordings: dynamax's linear Gaussian model, by EM.

python -m bench.recording_peers --python VENV/bin/python [--systems stuart_landau lorenz]

VENV has dynamax (`pip install dynamax`), which is no dependency of this project. It is given what
`bench.recordings` gives to models, standardised, with as many latent dimensions as the truth and
with twice as many, and R² is that of the same held-out forecasts. Counts are numbers to it.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from bench.recordings import AHEAD, SHARE, SHOWN
from bench.snake_speed import append, machine
from tests.recordings.systems import SYSTEMS, record
from train.vector_field.data import episodes, recordings
from train.vector_field.data.recordings import Data
from train.vector_field.recorded import baselines

WORKER = Path(__file__).parent / "dynamax_forecasts.py"
RESULTS = Path(__file__).parent / "results" / "recording_peers.json"
ITERATIONS, PIECE = 100, 200
"""Of EM, and steps of the pieces that episodes are cut into, as it takes equal ones alone."""


def pieces(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of y `[E, PIECE, n]` and u `[E, PIECE, m]`; shorter ends are left out."""
    y, u = [], []
    for e, length in enumerate(data.lengths):
        for begin in range(0, int(length) - PIECE + 1, PIECE):
            y.append(data.y[e, begin : begin + PIECE])
            u.append(data.u[e, begin : begin + PIECE])
    return np.stack(y), np.stack(u)


def measure(python: str, system: str, seed: int, factor: int) -> dict[str, Any]:
    """One row: R² of dynamax's model with `factor` times the true number of dimensions."""
    recording = record(system, seed)
    pairs = [
        (y[:n], np.nan_to_num(u[:n]))
        for y, u, n in zip(recording.y, recording.u, recording.lengths, strict=True)
    ]
    training, held_out = episodes.split(recordings.join_episodes(pairs), SHARE, AHEAD + 30)
    if not training.is_complete:
        raise ValueError(f"{system} has missing values, which this model does not take")
    scaled, scaled_held_out = (baselines.standardise(x, training) for x in (training, held_out))
    dims = min(factor * recording.model.dims, recording.y.shape[-1])
    y, u = pieces(scaled)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(
            source,
            **{"training": y, "inputs": u, "dims": dims, "ahead": AHEAD, "iterations": ITERATIONS},
            held_out=scaled_held_out.y,
            held_out_inputs=scaled_held_out.u,
        )
        started = time.perf_counter()
        subprocess.run([python, str(WORKER), str(source), str(target)], check=True)
        seconds = time.perf_counter() - started
        with np.load(target) as file:
            r2 = np.asarray(episodes.r2(scaled_held_out, jnp.asarray(file["forecasts"])))
    return {
        "system": system,
        "seed": seed,
        "model": "dynamax_lgssm",
        "dims": dims,
        "r2": {str(k): float(r2[k]) for k in SHOWN},
        "seconds": seconds,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="a Python that has dynamax")
    usual = ["stuart_landau", "lorenz"]
    parser.add_argument("--systems", nargs="+", default=usual, choices=list(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args(arguments)
    for system in options.systems:
        for seed in range(options.seeds):
            for factor in (1, 2):
                row = measure(options.python, system, seed, factor)
                append(options.out, {**machine(), **row})
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
