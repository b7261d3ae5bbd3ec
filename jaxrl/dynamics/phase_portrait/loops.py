"""Closed loops in recorded paths of a map, by their returns to a Poincaré section (NumPy).

The period of a map's cycle is no whole number of steps in general: the points of its orbit fill a
closed curve, and where this crosses the section lies between two of them. Crossings are therefore
interpolated, by polynomials through six neighbours.

Letters: T steps, d dimensions of the state, J crossings, P points of a loop.
"""

from typing import NamedTuple

import numpy as np

from jaxrl.dynamics.phase_portrait import rhythm

RETURNS = 32
"""Returns to the section in one period, at most."""
WHOLE = 64
"""Periods of a whole number of steps that are tried, at most."""
CLOSED = 0.01
"""How far returns may lie apart, relative to the extent of the path, beyond interpolation."""
STEADY = 0.02
"""How much the times between returns may differ, relative to their mean."""
SAMPLES = 8
"""Steps between crossings, at least, for paths that are interpolated."""
POINTS = 200
"""P, of a loop that is interpolated."""
SAME, SAME_PERIOD = 0.05, 0.02
"""Distance of two loops that are one, at most, relative to their extent, and of their periods."""
PHASES = 61
"""P, of a loop whose points fill it."""


class Loop(NamedTuple):
    """A path that comes back to where it was."""

    period: float  # steps
    points: np.ndarray  # [P, d], one period; of a curve the last is the first again
    is_curve: bool  # whether the map goes along a closed curve, not between so many points


class Crossings(NamedTuple):
    """Where a path crosses a plane in one direction."""

    times: np.ndarray  # [J] steps
    points: np.ndarray  # [J, d]
    errors: np.ndarray  # [J] of interpolation, as by four and by six neighbours


def loop_of(path: np.ndarray) -> Loop | None:
    """The loop in which a path `[T, d]` goes round, or None."""
    # An orbit may have come from afar: what counts is how it went in the later half.
    extent = float(np.ptp(path[len(path) // 2 :], axis=0).max())
    if not extent > 0:
        return None
    is_line = path.shape[1] == 1  # no curve can close there
    loop = None if is_line else _loop_by_returns(path, extent)
    loop = loop or _loop_by_steps(path, extent)
    return loop or (None if is_line else _loop_by_phase(path))


def _loop_by_phase(path: np.ndarray) -> Loop | None:
    """A cycle of few steps, along a curve that its points fill."""
    curve = rhythm.closed_curve(path[len(path) // 2 :], PHASES)
    return curve and Loop(*curve, True)


def _loop_by_returns(path: np.ndarray, extent: float) -> Loop | None:
    times, points, errors = crossings_of(path)
    if len(times) < 4 or (times[-1] - times[0]) / (len(times) - 1) < SAMPLES:
        return None
    half = len(times) // 2
    near = min(max(CLOSED * extent, 3 * errors[half:].max()), 0.1 * extent)
    for k in range(1, min(RETURNS, len(times) - 3) + 1):
        late = slice(max(0, (len(times) - k) // 2), None)
        if _recurs(times[late], points[late], k, near):
            laps = max(1, (len(times) - 1) // (2 * k))
            period = (times[-1] - times[-1 - k * laps]) / laps
            sample_times = np.linspace(times[-1 - k], times[-1], POINTS)
            return Loop(float(period), interpolate(path, sample_times), True)
    return None


def _recurs(times: np.ndarray, points: np.ndarray, k: int, near: float) -> bool:
    """Whether each point `[J, d]` lies near the one k later, and the first near the last.

    And after equal times: a path in space may come close to itself without being closed.
    """
    if len(points) <= k:
        return False
    laps = times[k:] - times[:-k]
    each = np.linalg.norm(points[k:] - points[:-k], axis=1)
    drift = np.linalg.norm(points[-1] - points[(len(points) - 1) % k])
    return bool(each.max() <= near and drift <= 2 * near and np.ptp(laps) <= STEADY * laps.mean())


def _loop_by_steps(path: np.ndarray, extent: float) -> Loop | None:
    """A cycle of a whole number of steps, to within rounding."""
    late = path[len(path) // 2 :]
    for k in range(1, min(WHOLE, len(late) // 4) + 1):
        if np.abs(late[k:] - late[:-k]).max() <= 2e-4 * extent:
            return Loop(float(k), late[-k:], False)
    return None


def crossings_of(path: np.ndarray) -> Crossings:
    """Upward crossings of the plane through the mean of a path `[T, d]`, where it moves fastest.

    The plane is across the main direction of the displacements.
    """
    middle, velocity = path.mean(0), np.diff(path, axis=0)
    normal = np.linalg.eigh(velocity.T @ velocity)[1][:, -1]
    height = (path - middle) @ normal
    before = np.flatnonzero((height[:-1] < 0) & (height[1:] >= 0))
    before = before[(before >= 2) & (before <= len(path) - 4)]
    low, high = before.astype(float), before + 1.0
    for _ in range(40):
        half = (low + high) / 2
        is_below = interpolate(height[:, None], half)[:, 0] < 0
        low, high = np.where(is_below, half, low), np.where(is_below, high, half)
    times = (low + high) / 2
    points = interpolate(path, times)
    errors = np.linalg.norm(points - interpolate(path, times, neighbours=4), axis=1)
    return Crossings(times, points, errors)


def interpolate(path: np.ndarray, times: np.ndarray, neighbours: int = 6) -> np.ndarray:
    """A path `[T, d]` at `times` `[J]` in steps: Lagrange's polynomials through its neighbours."""
    first = np.floor(times).astype(int) - neighbours // 2 + 1
    first = np.clip(first, 0, len(path) - neighbours)
    offset = times - first
    total = np.zeros((len(times), path.shape[1]))
    for i in range(neighbours):
        others = [j for j in range(neighbours) if j != i]
        weight = np.prod([(offset - j) / (i - j) for j in others], axis=0)
        total += weight[:, None] * path[first + i]
    return total


def are_same(loop: Loop, other: Loop) -> bool:
    """Whether two loops are one: equal periods, and everywhere as near as `SAME` says."""
    if (
        abs(loop.period - other.period) > SAME_PERIOD * other.period
        or loop.is_curve != other.is_curve
    ):
        return False
    extent = np.ptp(other.points, axis=0).max()
    distances = np.linalg.norm(loop.points[:, None] - other.points[None], axis=-1)
    farthest = max(distances.min(0).max(), distances.min(1).max())
    return bool(farthest <= SAME * extent)


def groups_of(loops: list[Loop]) -> np.ndarray:
    """Which loops are one: a number for each, counted from 0."""
    representatives: list[Loop] = []
    groups = np.zeros(len(loops), int)
    for i, loop in enumerate(loops):
        matches = (k for k, other in enumerate(representatives) if are_same(loop, other))
        groups[i] = next(matches, len(representatives))
        if groups[i] == len(representatives):
            representatives.append(loop)
    return groups
