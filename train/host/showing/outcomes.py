"""How games end: `scores.png`, histograms of an evaluation, and `endings.png`, over training.

Axes: E ways to end, K chunks of updates.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from train.host.files import series
from train.host.files.metrics_file import read_metrics
from train.host.showing import pictures
from train.host.showing.pictures import Row

REST = ""
"""The key of what ends the games that end in none of the other ways."""
COLOURS = ("#009e73", "#0072b2", "#d55e00", "#cc79a7", "#8a6d00", "#bbbbbb")
"""Of the ways to end, safe for the colour-blind."""
ACROSS = 3
BARS = 40
"""Bars of a histogram, at most."""

Panels = Mapping[str, Mapping[str, np.ndarray]]


def draw_scores(directory: Path, title: str, unit: str, panels: Panels) -> Path:
    """Writes `scores.png`: a panel for each title in `panels`, in it a histogram for each label.

    Each is of whole numbers `[N]`, one a game, in `unit`; a dashed line marks the mean. All panels
    have the same bars, so that they can be compared.
    """
    values = np.concatenate([np.ravel(x) for found in panels.values() for x in found.values()])
    edges = bars(values)
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = pictures.titled((max(6.0, 3.4 * across), 2.2 * down + 1.0), title)
    grid = figure.subplots(down, across, squeeze=False)
    for axes, (name, found) in zip(grid.flat, panels.items(), strict=False):
        _histograms(axes, found, edges)
        axes.set_title(name, size=9, loc="left", parse_math=False)
        axes.set_xlabel(unit)
        axes.set_xlim(edges[0], edges[-1])
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))  # there is no half of a game
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for row in grid:
        row[0].set_ylabel("games")
    path = directory / "scores.png"
    pictures.save(figure, path)
    return path


def bars(values: np.ndarray) -> np.ndarray:
    """Edges of bars for whole numbers: each holds equally many of them, and none is empty by that.

    For no values, those of one bar.
    """
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    width = -(-(high - low + 1) // BARS)
    return np.arange(low, high + width + 1, width) - 0.5


def _histograms(axes: Axes, found: Mapping[str, np.ndarray], edges: np.ndarray) -> None:
    for i, (label, values) in enumerate(found.items()):
        colour = (pictures.BLUE, pictures.VERMILLION, *COLOURS)[i % (2 + len(COLOURS))]
        flat, only = np.ravel(values), len(found) == 1
        if not len(flat):
            continue
        said = f"{label}, mean {flat.mean():.4g}".lstrip(", ")
        style = {"histtype": "stepfilled", "alpha": 0.75 if only else 0.4, "color": colour}
        axes.hist(flat, edges.tolist(), label=said, **style)
        axes.axvline(flat.mean(), color=colour, linestyle="--", linewidth=1.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3)
    axes.legend(fontsize=8, edgecolor="none")


def draw_endings(
    directory: Path, endings: Mapping[str, str], title: str, unit: str = "environment steps"
) -> Path | None:
    """Writes `endings.png`: how the games of each chunk of a training ended, stacked over steps.

    `endings` are those of the `Training`; means over the seeds. None where no game has ended.
    """
    steps, shares = over_training(read_metrics(directory), list(endings))
    if not len(steps):
        return None
    figure = pictures.titled((9, 4), title)
    axes = figure.subplots()
    scale = pictures.dress(axes, unit, pictures.STEPS, float(steps[-1]))
    # each share is that of the chunk that ends there
    x, y = np.append(0, steps) / scale, np.append(shares[:1], shares, axis=0)
    axes.stackplot(x, y.T, labels=list(endings.values()), colors=COLOURS, step="pre", linewidth=0)
    axes.set_xlim(0, steps[-1] / scale)
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of the games that ended")
    pictures.legend_below(figure, axes.get_legend_handles_labels()[0])
    path = directory / "endings.png"
    pictures.save(figure, path)
    return path


def over_training(rows: Sequence[Row], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """`(steps [K], shares [K, E])` of the chunks in which games ended, means over the seeds.

    The share of `REST` is what the others leave.
    """
    known: dict[int, list[np.ndarray]] = {}
    for member in series.by_member(rows, sorted({row["seed"] for row in rows})):
        parts = [series.parts([member], "finished", name) for name in names if name != REST]
        if not parts or not all(parts):
            continue
        for row, found in zip(member, np.stack([x for ((x,),) in parts], -1), strict=True):
            if np.isfinite(found).all():
                known.setdefault(row["steps"], []).append(found)
    steps = np.array(sorted(known), float)
    count = sum(name != REST for name in names)
    shares = np.array([np.mean(known[x], axis=0) for x in sorted(known)]).reshape(-1, count)
    if REST in names:
        rest = np.clip(1.0 - shares.sum(1), 0.0, 1.0)
        shares = np.insert(shares, list(names).index(REST), rest, axis=1)
    return steps, shares
