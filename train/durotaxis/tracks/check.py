"""Whether colonies that are simulated from a fit do what the recorded one did.

Axes: R simulated colonies, M slots for cells, T frames.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.durotaxis.tracks import simulation
from envs.durotaxis.tracks.simulation import Ground, Laws, Register
from train.durotaxis.tracks.goodness import Test
from train.durotaxis.tracks.tracks import Tracks

MOST_SLOTS = 4096
AT_ONCE = 200
"""Colonies that are simulated side by side: each takes memory for all slots in all frames."""
BAND = (0.05, 0.5, 0.95)
"""Quantiles of the simulated colonies that are shown."""
FAILURES = {
    "cells": "the number of cells over time is not that of colonies with these laws",
    "front": "the front does not advance as that of colonies with these laws",
    "middle": "the middle of the colony does not advance as that of colonies with these laws",
    "rear": "the rear does not advance as that of colonies with these laws",
}


class Curves(NamedTuple):
    """A colony over time, `[..., T]` each; places are along the way to the goal, px."""

    cells: Any
    front: Any  # NaN where no cell is left
    middle: Any
    rear: Any


class Check(NamedTuple):
    """The recorded curves, and what simulated colonies did from the same start."""

    recorded: Curves  # [T]
    simulated: Curves  # [R, T]
    overflow: float  # share of simulated colonies with more cells than slots
    tests: list[Test]


def check(
    tracks: Tracks, ground: Ground, laws: Laws, law: str, count: int, key: jax.Array
) -> Check:
    """Simulates `count` colonies from the cells of the first frame. Consumes the key."""
    founders = np.flatnonzero(tracks.first == 0)
    room = 1 << max(8, (2 * len(tracks.parent)).bit_length())
    room = min(room, max(MOST_SLOTS, 1 << len(founders).bit_length()))
    x, y = (np.zeros(room, np.float32) for _ in range(2))
    x[: len(founders)], y[: len(founders)] = (v[founders] for v in tracks.places)
    start = (x, y, np.int32(len(founders)))
    keys = jax.random.split(key, count)
    registers, curves = _simulate(keys, laws, ground, *start, tracks.frames, law)
    simulated = Curves(*map(np.asarray, curves))
    recorded = recorded_curves(tracks, ground)
    overflow = float(np.mean(np.asarray(registers.count) > room))
    return Check(recorded, simulated, overflow, envelope_tests(recorded, simulated))


@partial(jax.jit, static_argnames=("frames", "law"))
def _simulate(
    keys: jax.Array, laws: Laws, ground: Ground, x: Any, y: Any, count: Any, frames: int, law: str
) -> tuple[Register, Curves]:
    def one(key: jax.Array) -> tuple[Register, Curves]:
        register = simulation.simulate(key, laws, ground, x, y, count, frames, law)
        place = ground.place(register.x, register.y)
        time = jnp.arange(frames)
        alive = jax.vmap(lambda t: simulation.is_alive(register, t))(time)
        return register, curves_of(alive, place)

    return jax.lax.map(one, keys, batch_size=min(AT_ONCE, len(keys)))


def curves_of(alive: Any, place: Any) -> Any:
    """The curves of a colony, for `alive` bool `[T, C]` and `place` `[C]`; NumPy or JAX arrays."""
    cells = jnp.sum(alive, axis=1)
    masked = lambda fill: jnp.where(alive, place[None], fill)
    has_any = cells > 0
    middle = jnp.sum(masked(0.0), axis=1) / jnp.maximum(cells, 1)
    while_any = lambda values: jnp.where(has_any, values, jnp.nan)
    front, rear = jnp.max(masked(-jnp.inf), axis=1), jnp.min(masked(jnp.inf), axis=1)
    return Curves(cells, while_any(front), while_any(middle), while_any(rear))


def recorded_curves(tracks: Tracks, ground: Ground) -> Curves:
    """The curves of the recorded colony, with every cell at its mean place."""
    time = np.arange(tracks.frames)[:, None]
    alive = (tracks.first <= time) & (time <= tracks.last)
    place = np.asarray(ground.place(*tracks.places), np.float32)
    return Curves(*map(np.asarray, curves_of(alive, place)))


def envelope_tests(recorded: Curves, simulated: Curves) -> list[Test]:
    """A test of each curve as a whole: how far it leaves the mean of the simulated ones.

    The largest deviation over time in standard deviations is ranked among those of the simulated
    curves (a global envelope; Myllymäki et al. 2017, *JRSS B* 79, 381).
    """
    tests = []
    for name, curve, curves in zip(Curves._fields, recorded, simulated, strict=True):
        together = np.concatenate([curve[None], curves]).astype(float)
        with np.errstate(invalid="ignore"):
            counts = np.isfinite(together).sum(0)
            filled = np.where(np.isfinite(together), together, 0.0)
            mean = filled.sum(0) / np.maximum(counts, 1)
            deviation = np.where(np.isfinite(together), np.abs(together - mean), 0.0)
            spread = np.sqrt((deviation**2).sum(0) / np.maximum(counts - 1, 1))
            reach = np.max(deviation / np.where(spread > 0, spread, np.inf), axis=1)
        p = float(np.mean(reach >= reach[0]))
        tests.append(Test(f"{name} over time", p, FAILURES[name]))
    return tests


def band(curves: np.ndarray) -> np.ndarray:
    """The quantiles `BAND` `[3, T]` of simulated curves `[R, T]`, those without cells left out."""
    has_any = np.isfinite(curves).any(0)
    out = np.full((len(BAND), curves.shape[1]), np.nan)
    out[:, has_any] = np.nanquantile(curves[:, has_any].astype(float), BAND, axis=0)
    return out
