"""Maps of learned vector fields: streamlines, errors and uncertainty.

Axes: F fields, G points of the grid along each axis, T newest states. Axis 0 of the grid is the
first coordinate, as in `reach.grid_points`. Every picture is a PNG, written whole or not at
all.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, LogNorm, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from train.host.showing import pictures
from train.host.showing.pictures import VERMILLION

SPEEDS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0, 0.9, 128)))
"""viridis without its yellow, which is hard to see on white."""
MISSED, UNCERTAIN = "YlOrBr", "cividis"
LEAST_SHARE = 1e-3
"""Of the largest deviation, below which all have one colour: those of a family are 0 at a point
where all its fields are alike, and would leave no colours for the others."""
SIDE = 2.6
"""Side of a panel, in inches."""


def fields(
    path: str | Path,
    names: Sequence[str],
    true: np.ndarray,
    learned: dict[str, np.ndarray],
    trails: dict[str, np.ndarray],
    box: float,
    title: str,
    measure: str = "error",
) -> None:
    """Draws a row for each field: the true one, the learned ones, and the error of each.

    `names` are those of the fields; `true`, and `learned` by policy, `[F, G, G, 2]` within ± `box`;
    `trails` by policy, if any, `[F, T, 2]`, are drawn over what that policy learned;
    `measure` names the root mean square of the error on this grid.
    """
    policies = list(learned)
    edge = _edge(len(true[0]), box)
    figure, grid = _panels(len(names), 1 + 2 * len(policies), edge, title)
    for f, (name, row) in enumerate(zip(names, grid, strict=True)):
        streams, maps = row[: 1 + len(policies)], row[1 + len(policies) :]
        norm = PowerNorm(0.5, 0, float(speed(true[f]).max()))  # most speeds are low
        streamlines(streams[0], true[f], box, norm)
        streams[0].set_title("true", size=10)
        streams[0].set_ylabel(name.replace("_", " "), size=11, weight="bold")
        for policy, axes, map_axes in zip(policies, streams[1:], maps, strict=True):
            streamlines(axes, learned[policy][f], box, norm)
            axes.set_title(f"{policy}: learned", size=10)
            if policy in trails:
                trail = break_at_jumps(trails[policy][f], box)
                axes.plot(*trail.T, color=VERMILLION, linewidth=0.7, alpha=0.5)
            errors = relative_errors(learned[policy][f], true[f])
            heat_map = _heat(map_axes, errors, box, MISSED, Normalize(0, 1))
            total = np.sqrt(np.mean(errors**2))
            map_axes.set_title(f"{policy}: {measure} {total:.2f}", size=10)
        _bar(figure, ScalarMappable(norm, SPEEDS), streams, "speed")
        _bar(figure, heat_map, maps, "error / RMS speed", extend="max")
    if trails:
        newest = Line2D([], [], color=VERMILLION, alpha=0.6, label="newest states")
        pictures.legend_below(figure, [newest], 2)
    pictures.save(figure, path)


def information(
    path: str | Path,
    names: Sequence[str],
    deviation: dict[str, np.ndarray],
    trails: dict[str, np.ndarray],
    within: np.ndarray | None,
    box: float,
    title: str,
) -> None:
    """Draws a row for each field: the uncertainty of the field that each policy learned.

    `deviation` `[F, G, G]` by policy is the standard deviation of the learned velocity; `within`
    bool `[F, G, G]` are the cells to be outlined; `trails` `[F, T, 2]` as in `fields`.
    """
    points = next(iter(deviation.values())).shape[1]
    figure, grid = _panels(len(names), len(deviation), _edge(points, box), title)
    for f, (name, row) in enumerate(zip(names, grid, strict=True)):
        values = np.stack([policy_deviation[f] for policy_deviation in deviation.values()])
        low, high = uncertainty_range(values)
        norm = LogNorm(low, high)
        row[0].set_ylabel(name.replace("_", " "), size=11, weight="bold")
        for axes, (policy, policy_deviation) in zip(row, deviation.items(), strict=True):
            # a logarithmic axis leaves 0 white
            heat_map = _heat(axes, np.maximum(policy_deviation[f], low), box, UNCERTAIN, norm)
            axes.set_title(policy, size=10)
            if policy in trails:
                trail = break_at_jumps(trails[policy][f], box)
                axes.plot(*trail.T, color="white", linewidth=0.5, alpha=0.6)
            if within is not None:
                lines = outline(within[f], box)
                axes.add_collection(LineCollection(list(lines), colors=VERMILLION, linewidths=1.4))
        extend = "min" if values.min() < low else "neither"
        bar = _bar(figure, heat_map, row, "standard deviation\nof a velocity", extend=extend)
        bar.set_ticks(ticks(low, high), minor=False)
        bar.set_ticks([], minor=True)
        bar.ax.yaxis.set_major_formatter("{x:g}")
    handles = [Line2D([], [], color="#bbbbbb", label="newest states")] if trails else []
    if within is not None:
        handles.append(Line2D([], [], color=VERMILLION, label="within reach"))
    pictures.legend_below(figure, handles, 2)
    pictures.save(figure, path)


def uncertainty_range(deviation: np.ndarray) -> tuple[float, float]:
    """The least and the largest standard deviation that colours tell apart; see `LEAST_SHARE`."""
    high = max(float(deviation.max()), 2e-9)
    low = max(float(deviation.min()), LEAST_SHARE * high)
    return low, max(high, 1.001 * low)


def streamlines(axes: Axes, field: np.ndarray, box: float, norm: Normalize) -> None:
    """Draws streamlines of a field `[G, G, 2]`, coloured by speed; none for a field of 0."""
    axis = np.linspace(-box, box, len(field))
    velocity = np.transpose(field, (2, 1, 0))  # matplotlib wants the second coordinate first
    if not np.any(velocity):
        axes.text(0.5, 0.5, "nothing yet", ha="center", transform=axes.transAxes)
        return
    style = {"density": 1.0, "linewidth": 1.1, "arrowsize": 0.8, "zorder": 2}
    axes.streamplot(axis, axis, *velocity, color=speed(field).T, cmap=SPEEDS, norm=norm, **style)


def break_at_jumps(trail: np.ndarray, box: float) -> np.ndarray:
    """The states `[T, 2]` with a row of NaN, which is not drawn, between any two that are farther
    apart than `box`: an angle went round at ±π."""
    return np.insert(trail, 1 + np.flatnonzero(jumps(trail, box)), np.nan, axis=0)


def jumps(trail: np.ndarray, box: float) -> np.ndarray:
    """Bool `[T - 1]`: where the next of the states `[T, 2]` is farther away than `box`."""
    return np.linalg.norm(np.diff(trail, axis=0), axis=1) > box


def speed(field: np.ndarray) -> np.ndarray:
    """The speed `[...]` of velocities `[..., 2]`."""
    return np.linalg.norm(field, axis=-1)


def relative_errors(learned: np.ndarray, true: np.ndarray) -> np.ndarray:
    """`[G, G]`: errors over the RMS true speed; their root mean square is the field error."""
    return speed(learned - true) / np.sqrt(np.mean(speed(true) ** 2))


def error_name(dimension: int, name: str = "error") -> str:
    """What the error on the grid is called, which may be but a plane of the state.

    The scores of a state of more dimensions are those of points in all of its box.
    """
    return name if dimension == 2 else f"{name} in this plane"


def outline(within: np.ndarray, box: float) -> np.ndarray:
    """`[edges, 2, 2]`: the ends of all edges between a cell `within` `[G, G]` and one that is not.

    Cells lie around the points of a grid within ± `box`.
    """
    size = 2 * box / (len(within) - 1)
    inside = np.pad(within, 1)
    edges = []
    for axis, along in ((0, (0, 1)), (1, (1, 0))):
        corner = np.argwhere(np.diff(inside.astype(int), axis=axis))
        corner = corner - np.array(along)  # the padding moved cells by one along the edge
        edges.append(np.stack([corner, corner + np.array(along)], axis=1))
    return np.concatenate(edges) * size - box - size / 2


def ticks(low: float, high: float) -> list[float]:
    """Two or more round numbers from `low` to `high` for a logarithmic axis.

    The more decades, the fewer in each.
    """
    decades = math.log10(high / low)
    digits = (1, 1.5, 2, 3, 4, 5, 6, 8) if decades < 1 else (1, 2, 5) if decades < 2.5 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [digit * 10.0**power for power in powers for digit in digits]
    inside = [value for value in values if low <= value <= high]
    if len(inside) > 1:
        return inside
    between = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)  # a part of one decade
    return [float(value) for value in between if low <= value <= high]


def _heat(axes: Axes, values: np.ndarray, box: float, colours: str, norm: Normalize) -> Any:
    """Draws each of the values `[G, G]` as a cell around its point."""
    edge = _edge(len(values), box)
    extent = (-edge, edge, -edge, edge)
    return axes.imshow(
        values.T, colours, norm=norm, origin="lower", extent=extent, interpolation="nearest"
    )


def _edge(points: int, box: float) -> float:
    """The outer edge of the outermost cells."""
    return box * (1 + 1 / (points - 1))


def _panels(rows: int, columns: int, edge: float, title: str) -> tuple[Figure, np.ndarray]:
    size = (SIDE * columns + 1.2, (SIDE + 0.35) * rows + 0.8)
    figure = pictures.titled_figure(size, title)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat:
        axes.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal")
        axes.locator_params(nbins=5, integer=True)
        axes.tick_params(length=2, labelsize=8)
    return figure, grid


def _bar(figure: Figure, mappable: Any, axes: Sequence[Axes], label: str, **options: Any) -> Any:
    bar = figure.colorbar(mappable, ax=list(axes), aspect=25, pad=0.01, **options)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize=8, length=2)
    bar.set_label(label, size=9)
    return bar
