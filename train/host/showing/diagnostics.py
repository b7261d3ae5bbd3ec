"""All that a run recorded, a panel for each measure: `diagnostics.png`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from train.host.files import series
from train.host.files.metrics_file import read_metrics
from train.host.showing import pictures

ACROSS = 4
"""Panels beside each other."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9")
"""Safe for the colour-blind; after six they begin again, with other dashes."""
DASHES = ("-", "--", ":", "-.")
LABELLED = 6
"""Parts of a measure that a legend in its panel may name; that of more is below all."""


def draw(
    directory: Path,
    seeds: Sequence[int],
    title: str,
    unit: str,
    labels: Mapping[str, Sequence[str]],
) -> Path | None:
    """Writes `diagnostics.png` into a run directory; None without a row in the record.

    Each panel shows the mean over the seeds and from three of them on its 95 % interval. A measure
    that is a list of numbers has a line for each; `labels` are those of the training.
    """
    rows = read_metrics(directory)
    members = [x for x in series.split_by_member(rows, seeds) if x]
    if not members:
        return None
    names = series.names(rows)
    down = -(-len(names) // ACROSS)
    figure = pictures.titled_figure((3.2 * ACROSS, 2.2 * down + 0.5), title)
    grid = figure.subplots(down, ACROSS, squeeze=False)
    line = series.timeline(members)
    for axes, (name, group) in zip(grid.flat, names.items(), strict=False):
        parts = series.parts(line, group, name)
        _panel(axes, name, line.steps, parts, unit, labels.get(name, ()))
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    handles = max((axes.get_legend_handles_labels()[0] for axes in grid.flat), key=len)
    if len(handles) > LABELLED:
        figure.legend(handles=handles, loc="outside lower left", ncols=6, fontsize=7, frameon=False)
    path = directory / "diagnostics.png"
    pictures.save(figure, path)
    return path


def _panel(
    axes: Axes,
    name: str,
    steps: np.ndarray,
    parts: Sequence[Sequence[np.ndarray]],
    unit: str,
    labels: Sequence[str],
) -> None:
    axes.set_title(name.replace("_", " "), size=9, loc="left", parse_math=False)
    scale = pictures.style_axes(axes, unit, pictures.STEPS, float(steps[-1]))
    axes.xaxis.label.set_fontsize(7)
    axes.tick_params(labelsize=7)
    axes.ticklabel_format(axis="y", useOffset=False)  # 0.00099986 rather than -1.4 of 1e-7 + 1e-3
    for k, part in enumerate(parts):
        x, samples = steps / scale, np.stack(part)
        is_finite = np.isfinite(samples)
        mean = np.where(is_finite, samples, 0).sum(0) / np.maximum(is_finite.sum(0), 1)
        mean = np.where(is_finite.any(0), mean, np.nan)
        margin = pictures.interval(samples)
        label = labels[k] if k < len(labels) else None
        colour, dashes = COLOURS[k % 6], DASHES[k // 6 % len(DASHES)]
        axes.plot(x, mean, label=label, linewidth=1.1, color=colour, linestyle=dashes)
        is_lone = lone_points(mean)
        axes.plot(x[is_lone], mean[is_lone], ".", color=colour, markersize=4)
        axes.fill_between(x, mean - margin, mean + margin, color=colour, alpha=0.18, lw=0)
    if not parts:
        pictures.say_empty(axes)
    if len(parts) <= LABELLED and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6, frameon=False)


def lone_points(values: np.ndarray) -> np.ndarray:
    """Which of `values` `[K]` no line leads to or from, as their neighbours are not finite."""
    is_finite = np.isfinite(np.pad(values, 1, constant_values=np.nan))
    return is_finite[1:-1] & ~is_finite[:-2] & ~is_finite[2:]
