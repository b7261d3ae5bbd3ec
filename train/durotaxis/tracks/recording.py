"""Recordings simulated from known laws: tracks as a microscope would give them, and their files."""

from functools import partial
from pathlib import Path

import jax
import numpy as np

from envs.durotaxis import rules
from envs.durotaxis.tracks import events, simulation
from envs.durotaxis.tracks.simulation import Ground, Laws, Register
from envs.durotaxis.tracks.spawning import Spawning
from train.durotaxis.tracks.tracks import Rows, Tracks, assemble
from train.host.files.whole_files import write_whole

EXAMPLE = Path(__file__).parent / "example.csv"
EXAMPLE_GROUND = {"exponential": False, "slope": 0.05, "base": 0.5, "width": 300, "height": 200}
EXAMPLE_KEY = 4
FOUNDERS, FRAMES, CAPACITY = 12, 40, 512
DEATHS = (events.logit(0.08), 3.0, 0.5, 1.0, 0.0)
BIRTHS = (events.logit(0.15), 0.0, 0.0, -0.5, 0.0)
TRUTH = Laws(
    Spawning(gamma=9.0, alpha=2.5, noise=0.5, theta=0.0, kappa=2.0, error=0.4, scatter=0.3),
    np.array(DEATHS, np.float32),
    np.array(BIRTHS, np.float32),
)
"""The laws of the committed example, which `simulate` writes with the seed `EXAMPLE_KEY`."""


@partial(jax.jit, static_argnames=("frames", "law", "capacity", "founders"))
def simulate_founded(
    key: jax.Array,
    laws: Laws,
    ground: Ground,
    founders: int = FOUNDERS,
    frames: int = FRAMES,
    capacity: int = CAPACITY,
    law: str = "directed",
) -> Register:
    """A colony from founders where `Durotaxis` has them; consumes the key."""
    start_key, key = jax.random.split(key)
    colony = rules.founders(start_key, capacity, founders, ground.width, ground.height)
    return simulation.simulate(
        key, laws, ground, colony.x, colony.y, np.int32(founders), frames, law
    )


def observe(register: Register, frames: int, error: float, rng: np.random.Generator) -> Rows:
    """What a microscope sees of a colony: every cell in every frame, with an error, px.

    Raises ValueError if the register was too small for all cells.
    """
    count, room = int(register.count), len(register.x)
    if count > room:
        raise ValueError(f"the colony has {count} cells; there is room for {room}")
    x, y, parent, first, last = (np.asarray(v)[:count] for v in register[:5])
    last = np.minimum(last, frames - 1)
    length = last - first + 1
    cell = np.repeat(np.arange(count), length)
    frame = np.arange(len(cell)) - np.repeat(np.cumsum(length) - length, length) + first[cell]
    x, y = (v[cell] + rng.normal(0, error, len(cell)) for v in (x, y))
    named = {str(child): str(parent[child]) for child in np.flatnonzero(parent >= 0)}
    return Rows([str(c) for c in cell], frame.astype(float), x, y, named)


def tracks_of(register: Register, frames: int, error: float, rng: np.random.Generator) -> Tracks:
    """The tracks of a simulated colony, as they would be read from a file of it."""
    return assemble("the simulated colony", observe(register, frames, error, rng))


def write(rows: Rows, path: Path) -> None:
    """Writes a table of frame, cell, parent, x, y; places with two decimals, px."""
    lines = ["frame,cell,parent,x,y"]
    for i in np.lexsort((np.array(rows.cell, int), rows.frame)):
        cell = rows.cell[int(i)]
        parent = rows.parent.get(cell, "")
        lines.append(f"{rows.frame[i]:.0f},{cell},{parent},{rows.x[i]:.2f},{rows.y[i]:.2f}")
    write_whole(path, "\n".join(lines) + "\n")
