"""Closed curves that orbits of a few points each fill together, as of 7.5 steps a lap (NumPy).

Letters: S orbits, P points of each, d dimensions of the state.
"""

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from jaxrl.dynamics.phase_portrait.loops import POINTS, SAME, SAME_PERIOD, Loop

NEAR = 0.2
"""Distance of neighbouring points on one curve, at most, relative to the extent of an orbit."""
WIDEST = np.pi / 3
"""The widest gap between them, in radians about their middle."""
LONGEST = 5.0
"""Length of the curve, at most, relative to its extent, of which a circle has π times as much: from
point to point in a cloud it is much longer."""


def lies_on(loop: Loop, curve: Loop) -> bool:
    """Whether an orbit of a few points goes round the curve a whole number of times."""
    laps = loop.period / curve.period
    if abs(laps - round(laps)) > SAME_PERIOD * laps:
        return False
    distances, _ = KDTree(curve.points).query(loop.points)
    return bool(distances.max() <= SAME * np.ptp(curve.points, axis=0).max())


def groups_of_neighbours(orbits: np.ndarray) -> list[np.ndarray]:
    """The orbits `[S, P, d]` in groups that hang together, each as the numbers of its orbits."""
    reach = NEAR * np.median(np.ptp(orbits, axis=1).max(-1))
    pairs = KDTree(orbits.reshape(-1, orbits.shape[2])).query_pairs(reach, output_type="ndarray")
    touches = np.eye(len(orbits), dtype=bool)
    touches[tuple(pairs.T // orbits.shape[1])] = True
    count, groups = connected_components(touches, directed=False)
    return [np.flatnonzero(groups == group) for group in range(count)]


def curve_through(orbits: np.ndarray, period: float) -> Loop | None:
    """The closed curve that the points of orbits `[S, P, d]` fill, None if they fill none.

    It goes round the middle of the points, in the plane in which they spread most. An orbit comes
    back after `period` steps, in which it goes round in P / 2 laps at most.
    """
    _, count, d = orbits.shape
    if d == 1:
        return None
    points = orbits.reshape(-1, d)
    centred = points - points.mean(0)
    plane = np.linalg.eigh(centred.T @ centred)[1][:, -2:]
    angles = np.arctan2(*(centred @ plane).T)
    order = np.argsort(angles)
    gaps = np.diff(angles[order], append=angles[order[0]] + 2 * np.pi)
    closed = points[np.append(order, order[0])]
    length = np.linalg.norm(np.diff(closed, axis=0), axis=1).sum()
    if gaps.max() > WIDEST or length > LONGEST * np.ptp(points, axis=0).max():
        return None
    own = angles[:count]
    laps = round(float(np.sum((np.roll(own, -1) - own) % (2 * np.pi)) / (2 * np.pi)))
    laps = min(laps, count - laps)
    if laps < 1:
        return None
    sample = np.linspace(0, len(points), min(POINTS, len(points) + 1)).round().astype(int)
    return Loop(period / laps, closed[sample], True)
