"""Where orbits of a map without noise end: at rest, in a loop, elsewhere, or outside the region.

Letters: S orbits, T recorded states, d dimensions of the state. Places are in units of the data's
spread (see `region`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.phase_portrait import orbits, rhythm
from jaxrl.dynamics.phase_portrait.fixed_points import Step
from jaxrl.dynamics.phase_portrait.loops import SAMPLES, Loop, crossings_of, loop_of
from jaxrl.dynamics.phase_portrait.region import Region, subsample

EDGE = 5.0
"""Orbits that come so many times further from the mean than the data have left the region."""
RESTING = 1e-3
"""An orbit whose last quarter has this extent is at rest."""
SETTLED = 0.005
"""How much a loop's size may still change, relative to its extent: a seventh of what makes it
another loop."""
FINE, COARSE = 1.0, 5.0
"""Changes that are nothing but parts of steps at the ends of laps, in extents per recorded step: of
many steps a lap, and of few."""
FEW = 8
"""Crossings of the section in a record, as the median of open orbits: where there are fewer, the
next record takes every fourth step of what the last one took."""


class Effort(NamedTuple):
    """How much is computed: memory grows with orbits × window, time with both and the rounds."""

    orbits: int = 64
    """S, visited states that are followed."""
    window: int = 4096
    """T, states of each orbit that are recorded at a time."""
    settling: int = 2048
    """Steps before the first record; before each later one twice as many as before the last."""
    rounds: int = 3
    """Records, at most, while an orbit neither rests nor goes round in a loop."""
    starts: int = 1024
    """Starts of Newton's method, at most, beside the ends of the orbits."""


class Ends(NamedTuple):
    """What became of the orbits."""

    places: np.ndarray  # [S, d], where each was last
    path: np.ndarray  # [T, S, d], its last record
    has_left: np.ndarray  # bool [S]
    rests: np.ndarray  # bool [S]
    loops: list[Loop | None]  # of those in a loop
    drifts: np.ndarray  # bool [S], those whose loop still changes, on the way to another one
    steps: int  # of the last record

    @property
    def is_open(self) -> np.ndarray:
        """Orbits `[S]` that stay within the region, but neither rest nor repeat."""
        return ~self.has_left & ~self.rests & ~self.is_loop

    @property
    def is_loop(self) -> np.ndarray:
        """Whether each goes round in a loop, bool `[S]`."""
        return np.array([loop is not None for loop in self.loops])


def ends_of(step: Step, region: Region, frame: tuple, u: jax.Array, effort: Effort) -> Ends:
    """Follows orbits from visited states, longer where they have not settled."""
    places = jnp.asarray(subsample(region.visited, effort.orbits), u.dtype)
    edge = jnp.asarray(EDGE * np.linalg.norm(region.visited, axis=1).max(), u.dtype)
    settling, stride = effort.settling, 1
    for turn in range(effort.rounds):
        durations = (jnp.asarray(settling, jnp.int32), jnp.asarray(stride, jnp.int32))
        recording = orbits.follow(step, frame, places, u, edge, *durations, effort.window)
        ends = _classify(np.asarray(recording[0], float), np.asarray(recording[1]), stride)
        if turn == effort.rounds - 1 or not (ends.is_open | ends.drifts).any():
            break
        settling, places = 2 * settling, recording[0][-1]
        if _few_crossings(ends):
            stride *= 4
    return ends  # pyright: ignore[reportPossiblyUnboundVariable]


def _classify(path: np.ndarray, has_left: np.ndarray, stride: int) -> Ends:
    late = path[-max(2, len(path) // 4) :]
    rests = ~has_left & (np.ptp(late, axis=0).max(-1) <= RESTING)
    loops: list[Loop | None] = []
    drifts = np.zeros(path.shape[1], bool)
    for s in range(path.shape[1]):
        loop = None if has_left[s] or rests[s] else loop_of(path[:, s])
        drifts[s] = loop is not None and is_drifting(path[:, s], loop.period)
        loops.append(loop and loop._replace(period=loop.period * stride))
    return Ends(path[-1], path, has_left, rests, loops, drifts, len(path) * stride)


def is_drifting(path: np.ndarray, period: float) -> bool:
    """Whether the laps of a path `[T, d]`, of so many of its steps, lead to another loop.

    Where they do, their size changes from one third of the last half to the next by a and then by
    b, in the ratio at which the orbit is attracted: a geometric series, of which b² / (a - b) is
    still to come.
    """
    sizes = lap_sizes(path, period)
    if sizes is None:
        return False
    before, after = np.abs(np.diff(sizes, axis=0)).max(1) / np.ptp(path, axis=0).max()
    if after <= (COARSE if period < SAMPLES else FINE) / len(path):
        return False
    return bool(after >= before or after**2 / (before - after) > SETTLED)


def lap_sizes(path: np.ndarray, period: float) -> np.ndarray | None:
    """Mean and deviation of each coordinate `[3, 2 d]` over whole laps, of a path `[T, d]`.

    In three stretches of equal length, together its last half, or three laps if it has no more;
    None where it has fewer, and where few steps a lap do not come to all parts of it in a stretch.
    """
    times = np.arange(len(path))
    length = max(1, int(len(path) / (6 * period))) * period
    bounds = times[-1] - length * np.arange(3, -1, -1)
    if bounds[0] < 0:
        return None
    powers = np.concatenate([path, path**2], axis=1)
    if period < SAMPLES:
        stretches = np.split(powers[len(path) - 3 * int(length) :], 3)
        means = [rhythm.mean_over_phases(x, period) for x in stretches]
        known_means = [x for x in means if x is not None]
        return _sizes(np.stack(known_means)) if len(known_means) == len(means) else None
    integral = np.cumsum((powers[1:] + powers[:-1]) / 2, axis=0)
    integral = np.concatenate([np.zeros_like(powers[:1]), integral])
    ends = np.stack([np.interp(bounds, times, x) for x in integral.T], axis=-1)
    return _sizes(np.diff(ends, axis=0) / length)


def _sizes(powers: np.ndarray) -> np.ndarray:
    """Mean and deviation of each coordinate, from means of them and of their squares `[3, 2 d]`."""
    mean, square = np.split(powers, 2, axis=1)
    return np.concatenate([mean, np.sqrt(np.maximum(square - mean**2, 0))], axis=1)


def _few_crossings(ends: Ends) -> bool:
    """Whether an open orbit has hardly come round while it was recorded."""
    if ends.path.shape[2] == 1:
        return False
    which = np.flatnonzero(ends.is_open | ends.drifts)
    return bool(np.median([len(crossings_of(ends.path[:, s]).times) for s in which]) < FEW)


def is_contracting(ends: Ends, s: int, place: np.ndarray) -> bool:
    """Whether orbit s comes nearer to a place `[d]`, about which it turns."""
    away = np.linalg.norm(ends.path[:, s] - place, axis=1)
    quarter = len(away) // 4
    return bool(away[-quarter:].max() < 0.7 * away[:quarter].max())
