"""Stiffness that was measured at points: a table of x, perhaps y, and stiffness.

Axes: n points.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import interpolate

from train.durotaxis.field import refuse_stiffness
from train.durotaxis.tracks.files.columns import numbers, read_columns
from train.durotaxis.tracks.tracks import Tracks
from train.host.numbers import quantity

TABLE_COLUMNS = (("x", "stiffness"), ("x", "y", "stiffness"))
EXPECTED = "expected a table with columns x, stiffness or x, y, stiffness, of two points at least"
SUFFIXES = (".csv", ".txt", ".tsv")
LARGEST_BREADTH = 2.0
"""px across a line by which rounded places on it may differ; a hull so thin would hold no cell."""
PLACE_DIGITS = 6
"""Decimals of px to which places along a line are told apart."""


class Points(NamedTuple):
    """A table, in its own unit of length."""

    path: str
    places: np.ndarray  # float [n, 1] or [n, 2], x and perhaps y, all different
    stiffness: np.ndarray  # float [n], the mean of what was measured there
    num_averaged: int  # measurements at places with several of them
    scale: float  # px of a unit of x and y
    unit: str  # its name


def is_table(path: str) -> bool:
    return Path(path).suffix.lower() in SUFFIXES


def read_points(path: str, field_pixel_size: float | None, tracks: Tracks | None) -> Points:
    """The points of a table. Raises ValueError, in one line, for any other file.

    A unit of x and y is `field_pixel_size` px; None: that of the places in the file of tracks, and
    px without tracks.
    """
    scale, unit = 1.0, "px"
    if field_pixel_size is not None:
        scale, unit = field_pixel_size, f"units of {field_pixel_size:g} px"
    elif tracks is not None and tracks.pixel_size is not None:
        scale, unit = 1 / tracks.pixel_size, "µm"
    columns = {k.lower(): words for k, words in read_columns(path, EXPECTED).items()}
    names = next((x for x in TABLE_COLUMNS[::-1] if set(x) <= columns.keys()), None)
    if names is None:
        raise ValueError(f"{path} has the columns {', '.join(columns)}; {EXPECTED}")
    points = np.stack([numbers(path, name, columns[name]) for name in names], axis=1)
    if len(points) < 2:
        raise ValueError(f"{path} has {quantity(len(points), 'points')}; {EXPECTED}")
    if not np.isfinite(points[:, :-1]).all():
        row = int(np.argmin(np.isfinite(points[:, :-1]).all(axis=1)))
        raise ValueError(f"{path} has a point without a place, row {row + 1}: leave such rows out")
    refuse_stiffness(path, points[:, -1])
    return Points(path, *average_repeats(points[:, :-1], points[:, -1]), scale, unit)


def average_repeats(
    places: np.ndarray, stiffness: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Different places, sorted, the mean stiffness at each, and how many values went into means.

    An interpolation takes one value of a place, and would drop the others.
    """
    different, group, counts = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(group.reshape(-1), stiffness) / counts
    return different, means, int(counts[counts > 1].sum())


def fill(points: Points, width: int, height: int) -> np.ndarray:
    """Stiffness `[height, width]` in cells of 1 px, float32.

    Linear between points; beyond them that of the nearest one. Points on a line, or with x alone,
    tell it along that line, and it is the same across it.
    """
    places, stiffness = points.places * points.scale, points.stiffness
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    if 1 in places.shape:  # x alone, or one place
        row = along_line(x, places[:, 0], stiffness)
        return np.tile(row.astype(np.float32), (height, 1))
    at = np.stack(np.meshgrid(x, y), axis=-1)
    middle = places.mean(0)
    axes = np.linalg.svd(places - middle, full_matrices=False)[2]
    length, breadth = np.ptp((places - middle) @ axes.T, axis=0)
    if breadth <= min(LARGEST_BREADTH, length / 10):
        way = axes[0]
        return along_line((at - middle) @ way, (places - middle) @ way, stiffness).astype(
            np.float32
        )
    nearest = interpolate.NearestNDInterpolator(places, stiffness)(at)
    inside = interpolate.LinearNDInterpolator(places, stiffness)(at)
    return np.where(np.isnan(inside), nearest, inside).astype(np.float32)


def along_line(at: np.ndarray, places: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
    """Stiffness at coordinates along a line from that at places `[n]` on it."""
    # places beside each other across the line are one along it, but for an error of rounding
    places, stiffness, _ = average_repeats(places.round(PLACE_DIGITS)[:, None], stiffness)
    return np.interp(at, places[:, 0], stiffness)


def line(points: Points) -> str:
    """What a table was taken for: its unit, where its points lie, and their stiffness."""
    in_px = f" ({extents(points.places * points.scale)} px of the ground)" * (points.unit != "px")
    least, most = points.stiffness.min(), points.stiffness.max()
    measurements = quantity(points.num_averaged, "measurements")
    means = f"; {measurements} at places that were measured more than once are averaged"
    means *= points.num_averaged > 0
    return (
        f"{points.path}: {quantity(len(points.places), 'points')}, places in {points.unit}, "
        f"{extents(points.places)}{in_px}, stiffness from {least:g} to {most:g}{means}"
    )


def extents(places: np.ndarray) -> str:
    """Where points `[n, 1]` or `[n, 2]` lie, in words."""
    sides = zip("xy", places.T, strict=False)
    return " and ".join(f"{name} from {v.min():.4g} to {v.max():.4g}" for name, v in sides)


def refuse_beyond(tracks: Tracks, points: Points) -> None:
    """Raises ValueError for cells beside the box around all points: nothing was measured there."""
    unit = points.unit if points.unit in ("px", "µm") else "px"
    scale = points.scale if unit == "px" else 1.0
    size = points.scale / scale  # px of that unit
    for name, values, column in zip("xy", (tracks.x, tracks.y), points.places.T, strict=False):
        values, ends = values / size, scale * column
        low, high = ends.min(), ends.max()
        slack = 1e-6 * max(abs(low), abs(high), 1.0)  # of rounding, where units differ
        if values.min() < low - slack or values.max() > high + slack:
            way = "leave y out" if name == "y" and low == high else "measure there, too"
            raise ValueError(
                f"cells have {name} from {values.min():.4g} to {values.max():.4g} {unit}, and the "
                f"ground's points go from {low:.4g} to {high:.4g} in {points.path}: {way}, shift "
                f"{name}, or say how many px a unit of x and y is with --field-pixel-size"
            )
