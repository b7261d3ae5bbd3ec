"""Curves of a run that learns Laplacian eigenvectors: similarity and eigenvalues over steps.

d components. Rows are those of `metrics.jsonl` (see `train.host.files.metrics_file`), whose
"agent" holds the number `similarity` and the lists `cosines` and `eigenvalues` `[d]`; None in them
is left out. Every picture is a PNG, written whole or not at all.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from train.allo.drawings.maps import check_shape
from train.host.showing import pictures
from train.host.showing.pictures import GREY, STEPS, VERMILLION, Curve, Row

UNIT = "gradient steps"
LEAST = 1e-6  # distance from 1 below which similarities are drawn as one
TICKS = np.array([0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 0.99999])


def similarity_curves(
    rows: Sequence[Row], path: str | Path, ceiling: float | None, title: str
) -> None:
    """Draws the similarity of every seed, and the mean |cos| of each component, over steps.

    The axis is logarithmic in 1 - similarity. `ceiling` is the best similarity the data allow.
    Raises ValueError if there are rows, but none with a similarity.
    """
    _check_known(rows, "similarity")
    figure, (left, right) = _panels(f"Learned against true eigenvectors: {title}", sharey=True)
    end = max((row["steps"] for row in rows), default=0)
    scale = pictures.style_axes(left, label(rows), STEPS, end)
    pictures.style_axes(right, label(rows), STEPS, end)
    lowest = _draw_similarity(left, rows, scale, ceiling)
    components = component_curves(rows, "cosines")
    colours = component_colours(len(components))
    lowest += _draw_cosines(right, components, colours, scale)
    # One logarithmic axis of 1 - similarity for both panels, labelled by the similarity.
    left.set_yscale("log")
    left.set_yticks(_gap(TICKS), [f"{tick:g}" for tick in TICKS])
    left.set_yticks([], minor=True)
    left.set_ylim(1.1, 0.7 * min([0.02, *lowest]))  # inverted: the axis is 1 - similarity
    left.set_ylabel("similarity")
    right.tick_params(labelleft=True)
    right.set_ylabel("|cos|" + ", mean of the seeds" * _has_many_seeds(rows))
    colour_bar(figure, right, colours)
    pictures.legend_below(figure, left.get_legend_handles_labels()[0])
    pictures.save(figure, path)


def _draw_similarity(
    axes: Axes, rows: Sequence[Row], scale: float, ceiling: float | None
) -> list[float]:
    """The similarity of each seed, and the ceiling of the data; returns heights to be seen."""
    lines = [(x / scale, _gap(y)) for x, y in pictures.curves(rows, "similarity", "steps")]
    heights = [y.min() for _, y in lines]
    if lines:
        pictures.draw_lines(axes, lines)
    else:
        pictures.say_empty(axes)
    if ceiling is not None:
        height = float(_gap(ceiling))
        heights.append(height)
        style: dict[str, Any] = {"color": VERMILLION, "linestyle": "--", "linewidth": 1.3}
        axes.axhline(height, **style, label=f"ceiling of the data, {ceiling:.4f}")
    return heights


def _draw_cosines(
    axes: Axes, components: Sequence[Sequence[Curve]], colours: np.ndarray, scale: float
) -> list[float]:
    """The mean |cos| of each component; returns heights to be seen."""
    heights: list[float] = []
    for lines, colour in zip(components, colours, strict=True):
        if lines:
            x, mean, _ = pictures.mean_curve(lines)
            axes.plot(x / scale, _gap(mean), pictures.line_style(x), color=colour, linewidth=1.4)
            heights += _gap(mean).tolist()
    if not any(components):
        pictures.say_empty(axes)
    return heights


def eigenvalue_curves(
    rows: Sequence[Row],
    path: str | Path,
    truth: np.ndarray,
    published: np.ndarray | None,
    title: str,
) -> None:
    """Draws learned λ over steps, and those of the last row against the true ones.

    `truth` and `published` are `[d]`: λ of the operator that is learned, and λ as papers define it.
    Raises ValueError if shapes do not fit the rows, and if there are rows, but none with
    eigenvalues.
    """
    truth = np.asarray(truth, float)
    _check_known(rows, "eigenvalues")
    components = component_curves(rows, "eigenvalues") or [[] for _ in truth]
    check_shape("truth", truth, (len(components),))
    if published is not None:
        check_shape("published", published, truth.shape)
    figure, (left, right) = _panels(f"Learned eigenvalues: {title}")
    colours = component_colours(len(truth))
    _draw_eigenvalues(left, rows, components, truth, published, colours)
    _draw_ends(right, truth, components, colours)
    colour_bar(figure, right, colours)
    handles: list[Artist] = [Line2D([], [], color=GREY, label="learned")]
    if max(map(len, components)) > 2:
        handles.append(
            Patch(color=GREY, alpha=0.25, linewidth=0, label="95 % interval of the mean")
        )
    handles.append(Line2D([], [], color=GREY, linestyle="--", label="true"))
    if published is not None:
        style = {"color": GREY, "marker": "d", "markersize": 4, "linestyle": ""}
        handles.append(Line2D([], [], **style, label="true, as papers print it"))
    pictures.legend_below(figure, handles)
    pictures.save(figure, path)


def component_curves(rows: Sequence[Row], name: str) -> list[list[Curve]]:
    """The curves (`pictures.curves`) of each component of the agent's list `name`.

    Raises ValueError if the lists of the rows differ in length.
    """
    scored_rows = [row for row in rows if row["agent"].get(name) is not None]
    lengths = {len(row["agent"][name]) for row in scored_rows}
    if len(lengths) > 1:
        raise ValueError(f"{name} has {sorted(lengths)} components; expected the same in all rows")
    components = []
    for i in range(max(lengths, default=0)):
        component_rows = [
            {**row, "finished": {}, "agent": {name: row["agent"][name][i]}} for row in scored_rows
        ]
        components.append(pictures.curves(component_rows, name, "steps"))
    return components


def _draw_eigenvalues(axes: Axes, rows, components, truth, published, colours) -> None:
    """Draws λ over steps; the true and published values to the right of the curves."""
    end = max((row["steps"] for row in rows), default=0)
    scale = pictures.style_axes(axes, label(rows), STEPS, end)
    end = end / scale or 1
    for lines, colour in zip(components, colours, strict=True):
        draw_component(axes, [(x / scale, y) for x, y in lines], colour)
    if not any(components):
        pictures.say_empty(axes)
    axes.hlines(truth, 1.01 * end, 1.08 * end, colours, "--", linewidth=1.3)
    if published is not None:
        axes.scatter(np.full(len(truth), 1.11 * end), published, 14, colours, marker="d")
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 1.01 * end])
    axes.set_xlim(0, 1.14 * end)
    axes.set_ylabel("λ" + ", mean of the seeds" * _has_many_seeds(rows))
    _limit(axes, components, truth if published is None else np.append(truth, published))


def draw_component(axes: Axes, lines: Sequence[Curve], colour) -> None:
    """Draws the mean of the seeds, from three seeds on with its interval."""
    if not lines:
        return
    pictures.draw_mean(axes, lines, color=colour, linewidth=1.4)
    x, mean, margin = pictures.mean_curve(lines)
    if np.isfinite(margin).any():
        axes.fill_between(x, mean - margin, mean + margin, color=colour, alpha=0.2, linewidth=0)


def _limit(axes: Axes, components: Sequence[Sequence[Curve]], true_values: np.ndarray) -> None:
    """Fits the y axis to the true λ and the later half of the curves.

    Wild first values are cut, which a line above the axes then says.
    """
    late = [y[len(y) // 2 :] for lines in components for _, y in lines]
    all_values = np.concatenate([true_values, *late])
    room = 0.06 * (all_values.max() - all_values.min()) or 0.1
    low, high = all_values.min() - room, all_values.max() + room
    axes.set_ylim(low, high)
    means = [pictures.mean_curve(lines)[1] for lines in components if lines]
    if any(np.any((mean < low) | (mean > high)) for mean in means):
        axes.set_title("first values beyond the axis are cut", size=8, loc="left", color=GREY)


def _draw_ends(axes: Axes, truth: np.ndarray, components, colours) -> None:
    """Draws the λ of the last row against the true one, from three seeds on with an interval.

    A row has the mean over its chunk, which is above λ at the end where that still falls.
    """
    pictures.style_axes(axes, "true λ", ((1, ""),), 1)
    axes.axline((0, 0), slope=1, color=GREY, linestyle="--", linewidth=1)
    all_values = truth.tolist()
    for true, lines, colour in zip(truth, components, colours, strict=True):
        if not lines:
            continue
        ends = np.array([y[-1] for _, y in lines])
        style = {"color": colour, "fmt": "o", "markersize": 5, "capsize": 3}
        axes.errorbar(true, ends.mean(), pictures.interval(ends), **style)
        all_values.append(ends.mean())
    room = 0.08 * (max(all_values) - min(all_values)) or 0.1
    axes.set_xlim(min(all_values) - room, max(all_values) + room)
    axes.set_ylim(axes.get_xlim())
    axes.locator_params(nbins=6)
    axes.set_ylabel("learned λ, mean of the last chunk")


def _panels(title: str, **shared) -> tuple[Figure, np.ndarray]:
    figure = pictures.titled_figure((10, 4.2), title)
    return figure, figure.subplots(1, 2, **shared)


def _has_many_seeds(rows: Sequence[Row]) -> bool:
    return len({row["seed"] for row in rows}) > 1


def label(rows: Sequence[Row]) -> str:
    """The label of an axis of steps."""
    return UNIT + " of each seed" * _has_many_seeds(rows)


def _gap(similarity):
    """1 - similarity, at least `LEAST`."""
    return np.maximum(1 - np.asarray(similarity, float), LEAST)


def component_colours(count: int) -> np.ndarray:
    """One for each component, from dark to light, `[count, 4]`."""
    return matplotlib.colormaps["viridis"](np.linspace(0, 0.9, count))


def colour_bar(figure: Figure, axes: Axes, colours: np.ndarray) -> None:
    """A colour bar of the components, from 1; none for a single component."""
    d = len(colours)
    if d < 2:
        return
    norm = BoundaryNorm(np.arange(d + 1) + 0.5, d)
    bar = figure.colorbar(ScalarMappable(norm, ListedColormap(colours)), ax=axes, aspect=30)
    bar.set_ticks(list(range(1, d + 1, -(-d // 16))))
    bar.ax.tick_params(length=0, labelsize=8, which="both")
    bar.outline.set_visible(False)
    bar.set_label("component", size=9)


def _check_known(rows: Sequence[Row], name: str) -> None:
    if rows and not any(name in row["agent"] for row in rows):
        raise ValueError(
            f"no row has {name}; expected the metrics of a run that learns eigenvectors"
        )
