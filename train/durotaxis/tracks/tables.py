"""What happened in tracks, as tables for the likelihood: displacements, deaths, births.

Of every place that was seen one thing is computed: the frames of a cell are shared out among its
own birth and those of its children. So errors of displacements are independent, and the likelihood
of `envs.durotaxis.tracks.spawning` is exact. Axes: B displacements, n rows, C cells, T frames, K
covariates.
"""

from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.durotaxis.tracks import events
from envs.durotaxis.tracks.events import Events
from envs.durotaxis.tracks.simulation import Ground
from envs.durotaxis.tracks.spawning import Displacements
from train.durotaxis.tracks.ground import inner
from train.durotaxis.tracks.tracks import Tracks


class Table(NamedTuple):
    """All that a fit is given, and what of it was left out."""

    displacements: Displacements  # NumPy, without padding
    child: np.ndarray  # int [B], the cell whose birth each is
    deaths: Events
    births: Events
    num_edge: int  # births near an edge of the ground, where children are held back
    num_short: int  # births whose parent was seen too seldom
    num_twins: int  # births beyond the first of a parent in a frame


def tabulate(tracks: Tracks, ground: Ground) -> Table:
    """The tables of tracks."""
    x, y = tracks.places
    stiffness = np.asarray(ground.stiffness(x.astype(np.float32), y.astype(np.float32)))
    # Means of the frames of each use of a cell.
    uses, num_short = share_frames(tracks)
    child, mean, inverse, squares, freedom = measure(tracks, uses)
    # Displacements far enough from the edges.
    offset = mean[:, 1] - mean[:, 0]
    distance = np.hypot(offset[:, 0], offset[:, 1])
    parent = tracks.parent[child]
    reach = distance.max(initial=0.0)
    is_inner = inner(ground, x[parent], y[parent], reach)
    child, offset, distance, inverse, parent = (
        v[is_inner] for v in (child, offset, distance, inverse, parent)
    )
    displacements = Displacements(
        distance=distance.astype(np.float32),
        angle=np.arctan2(offset[:, 1], offset[:, 0]).astype(np.float32),
        stiffness=stiffness[parent].astype(np.float32),
        variance=inverse.astype(np.float32),
        weight=np.ones(len(child), np.float32),
        squares=np.float32(squares),
        freedom=np.float32(freedom),
    )
    deaths, births, num_twins = tabulate_events(tracks, ground, x, y, stiffness)
    num_edge = int(np.sum(~is_inner))
    return Table(displacements, child, deaths, births, num_edge, num_short, num_twins)


def share_frames(tracks: Tracks) -> tuple[dict[tuple[int, int], np.ndarray], int]:
    """The rows of each `(cell, child whose birth they tell of)`, -1 for none, and births left out.

    A cell's frames go in their order to its own birth, then to those of its children.
    """
    begins = np.searchsorted(tracks.cell, np.arange(len(tracks.parent) + 1))
    children = defaultdict(list)
    for child in np.argsort(tracks.first, kind="stable").tolist():
        if tracks.parent[child] >= 0:
            children[int(tracks.parent[child])].append(child)
    rows: dict[tuple[int, int], np.ndarray] = {}
    num_short = 0
    for cell, (begin, end) in enumerate(pairwise(begins)):
        own = [cell] if tracks.parent[cell] >= 0 else []
        purposes = [*own, *children[cell]]
        num_short += max(0, len(purposes) - (end - begin))
        purposes = purposes[: end - begin] or [-1]
        for purpose, share in zip(
            purposes, np.array_split(np.arange(begin, end), len(purposes)), strict=True
        ):
            rows[cell, purpose] = share
    return rows, num_short


def measure(
    tracks: Tracks, uses: dict[tuple[int, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """`(child [B], mean places of parent and child [B, 2, 2], variance [B], squares, freedom)`.

    The variance of a coordinate is in squared errors of a single observation.
    """
    places = np.stack([tracks.x, tracks.y], axis=1)
    order = list(uses)
    group = np.empty(len(places), int)
    for number, use in enumerate(order):
        group[uses[use]] = number
    size = np.bincount(group, minlength=len(order))
    mean = np.stack([np.bincount(group, v, len(order)) / size for v in places.T], axis=1)
    squares = float(np.sum((places - mean[group]) ** 2))
    freedom = 2.0 * float(len(places) - len(order))
    number = {use: i for i, use in enumerate(order)}
    pairs = [
        (child, number[parent, child], number[child, child])
        for child, parent in enumerate(tracks.parent.tolist())
        if parent >= 0 and (parent, child) in number
    ]
    child, of_parent, of_child = np.array(pairs, int).reshape(-1, 3).T
    variance = 1 / size[of_parent] + 1 / size[of_child]
    return child, np.stack([mean[of_parent], mean[of_child]], axis=1), variance, squares, freedom


def tabulate_events(
    tracks: Tracks, ground: Ground, x: np.ndarray, y: np.ndarray, stiffness: np.ndarray
) -> tuple[Events, Events, int]:
    """`(deaths, births, twins)`: a row for every cell and frame but the last."""
    cells, frames = len(tracks.parent), tracks.frames
    place = np.asarray(ground.place(x, y), np.float32)
    time = np.arange(frames - 1)
    alive = (tracks.first <= time[:, None]) & (time[:, None] <= tracks.last)  # [T - 1, C]
    covariates = all_covariates(
        *(pad(v, cells) for v in (alive.T, place, stiffness.astype(np.float32), tracks.first))
    )[:, :cells]
    dies = alive & (tracks.last == time[:, None])
    children = np.zeros((frames, cells), int)
    born = np.flatnonzero(tracks.parent >= 0)
    np.add.at(children, (tracks.first[born] - 1, tracks.parent[born]), 1)
    children = children[:-1]
    survives = alive & ~dies
    rows = lambda where, what: Events(
        covariates[where], what[where].astype(np.float32), np.ones(where.sum(), np.float32)
    )
    twins = int(np.sum(np.maximum(children - 1, 0)))
    return rows(alive, dies), rows(survives, children > 0), twins


@jax.jit
def _covariates(alive: Any, place: Any, stiffness: Any, first: Any, time: Any) -> jax.Array:
    one = lambda now, t: events.covariates(now, place, stiffness, t - first)
    return jax.vmap(one)(alive, time)


def all_covariates(
    alive: np.ndarray, place: np.ndarray, stiffness: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """The covariates `[T, C, K]` of all frames; `alive` is `[C, T]`. Compiled for powers of two."""
    frames = alive.shape[1]
    alive = pad(alive.T, frames)
    time = np.arange(len(alive), dtype=np.int32)
    result = _covariates(alive, place, stiffness, first.astype(np.int32), time)
    return np.asarray(result)[:frames]


def pad(values: np.ndarray, size: int) -> np.ndarray:
    """Values `[size, ...]` with zeros behind, up to a power of two of 64 at least."""
    room = 1 << max(6, (size - 1).bit_length())
    return np.pad(values, [(0, room - size)] + [(0, 0)] * (values.ndim - 1))


def pad_displacements(data: Displacements) -> Displacements:
    """Displacements with padding, so that few sizes are compiled."""
    size = len(data.distance)
    padded = data._replace(**{name: pad(getattr(data, name), size) for name in data._fields[:5]})
    is_row = padded.weight > 0
    one = lambda values: np.where(is_row, values, np.float32(1))
    return padded._replace(stiffness=one(padded.stiffness), variance=one(padded.variance))


def pad_events(data: Events) -> Events:
    """Events with padding, so that few sizes are compiled."""
    return Events(*(pad(v, len(data.happened)) for v in data))
