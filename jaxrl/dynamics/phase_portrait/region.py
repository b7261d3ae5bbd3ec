"""The region of state space that data visited: its own coordinates, and distances from it.

Lengths are in units of the data's spread: coordinates x are along the principal axes of the visited
states, each in its standard deviation, so that z = mean + basis x. An axis along which the data
hardly spread counts as a tenth of the widest, or noise there would pass for structure.

Letters: N visited states, d dimensions of the state, K directions.
"""

from typing import NamedTuple

import numpy as np

THINNEST = 0.1
"""Unit of length along an axis, relative to that of the widest, at least."""
DIRECTIONS = 512
"""Random directions in which the extent of the data is known; with the axes, both ways, they are
K."""


class Region(NamedTuple):
    """Where data were."""

    mean: np.ndarray  # [d]
    basis: np.ndarray  # [d, d]; its columns are the principal axes, one unit long
    inverse: np.ndarray  # [d, d] of `basis`
    visited: np.ndarray  # [N, d] in units of the spread
    directions: np.ndarray  # [K, d] of length 1, in the same coordinates
    reach: np.ndarray  # [K], how far the data go in each direction

    def to_coordinates(self, states: np.ndarray) -> np.ndarray:
        """Coordinates `[..., d]`, in units of the spread, of states `[..., d]`."""
        return np.einsum("ij,...j->...i", self.inverse, states - self.mean)

    def to_states(self, places: np.ndarray) -> np.ndarray:
        """The states `[..., d]` at coordinates `[..., d]`."""
        return self.mean + np.einsum("ij,...j->...i", self.basis, places)

    def distance_outside(self, places: np.ndarray) -> np.ndarray:
        """How far coordinates `[M, d]` lie outside the convex hull of the data `[M]`; 0 within.

        The largest excess over the data's extent among K directions and that of the place itself,
        which is the distance from the hull, or a little less.
        """
        excess = np.max(places @ self.directions.T - self.reach, axis=1, initial=0.0)
        length = np.linalg.norm(places, axis=1, keepdims=True)
        direction = places / np.maximum(length, 1e-12)
        farthest = np.max(direction @ self.visited.T, axis=1)
        return np.maximum(excess, length[:, 0] - farthest)

    def nearest_distance(self, places: np.ndarray) -> np.ndarray:
        """The distance `[M]` of coordinates `[M, d]` from the nearest visited state."""
        rows = (np.linalg.norm(self.visited - place, axis=1).min() for place in places)
        return np.array([*rows], float)


def region_of(states: np.ndarray) -> Region:
    """The region of visited states `[N, d]`.

    Raises ValueError unless they are two different finite states or more.
    """
    states = np.asarray(states, float)
    if states.ndim != 2 or states.shape[1] < 1 or len(states) < 2:
        raise ValueError(
            f"visited states have the shape {states.shape}; expected [N, d], two states or more"
        )
    if not np.isfinite(states).all():
        rows = int((~np.isfinite(states)).any(1).sum())
        raise ValueError(
            f"{rows:,} of {len(states):,} visited states are not finite; leave padding out"
        )
    mean = states.mean(0)
    _, spread, axes = np.linalg.svd((states - mean) / len(states) ** 0.5, full_matrices=False)
    d = states.shape[1]
    if spread[0] <= 1e-6 * max(1e-30, np.abs(states).max()):
        raise ValueError("the visited states are all the same; expected some that differ")
    if len(axes) < d:  # fewer states than dimensions
        axes = np.linalg.svd(axes)[2]
        spread = np.pad(spread, (0, d - len(spread)))
    unit = np.maximum(spread, THINNEST * spread[0])
    basis, inverse = axes.T * unit, axes / unit[:, None]
    visited = (states - mean) @ inverse.T
    random_directions = np.random.default_rng(0).normal(size=(DIRECTIONS * (d > 1), d))
    directions = np.concatenate([np.eye(d), -np.eye(d), random_directions])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = (visited @ directions.T).max(0)
    return Region(mean, basis, inverse, visited, directions, reach)


def subsample(rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many rows, evenly spaced, first and last among them."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))]


def grid(region: Region, most: int) -> np.ndarray:
    """At most so many coordinates `[M, d]` on a grid over the bounding box of the data.

    One point, the middle, where not even two an axis are allowed.
    """
    d = region.visited.shape[1]
    count = max(1, int(most ** (1 / d) + 1e-9))
    low, high = region.visited.min(0), region.visited.max(0)
    share = np.linspace(0, 1, count) if count > 1 else np.full(1, 0.5)
    unit = np.stack(np.meshgrid(*[share] * d, indexing="ij"), -1).reshape(-1, d)
    return low + unit * (high - low)
