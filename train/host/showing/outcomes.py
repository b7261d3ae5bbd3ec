"""How games end: `scores.png`, histograms of an evaluation, and `endings.png`, over training.

Axes: E ways to end, K chunks of updates.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from train.host.files import series
from train.host.files.metrics_file import read_metrics
from train.host.numbers import digits_text
from train.host.showing import pictures
from train.host.showing.pictures import Row

REST = ""
"""The key of what ends the games that end in none of the other ways."""
COLOURS = ("#009e73", "#0072b2", "#d55e00", "#cc79a7", "#8a6d00", "#bbbbbb")
"""Colours of the ways to end, safe for the colour-blind."""
ACROSS = 3
BARS = 40
"""Bars of a histogram, at most."""

Panels = Mapping[str, Mapping[str, np.ndarray]]


def draw_scores(directory: Path, title: str, unit: str, panels: Panels) -> Path:
    """Writes `scores.png`: a panel for each title in `panels`, in it a histogram for each label.

    Each is of whole numbers `[N]`, one a game, in `unit`; a dashed line marks the mean. All panels
    have the same bars, so that they can be compared.
    """
    values = np.concatenate([np.ravel(x) for panel in panels.values() for x in panel.values()])
    edges = bars(values)
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = pictures.titled_figure((max(6.0, 3.4 * across), 2.2 * down + 1.0), title)
    grid = figure.subplots(down, across, squeeze=False)
    for axes, (name, panel) in zip(grid.flat, panels.items(), strict=False):
        _histograms(axes, panel, edges)
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


def _histograms(axes: Axes, samples: Mapping[str, np.ndarray], edges: np.ndarray) -> None:
    for i, (label, values) in enumerate(samples.items()):
        colour = (pictures.BLUE, pictures.VERMILLION, *COLOURS)[i % (2 + len(COLOURS))]
        flat, only = np.ravel(values), len(samples) == 1
        if not len(flat):
            continue
        legend_label = f"{label}, mean {digits_text(flat.mean())}".lstrip(", ")
        style = {"histtype": "stepfilled", "alpha": 0.75 if only else 0.4, "color": colour}
        axes.hist(flat, edges.tolist(), label=legend_label, **style)
        axes.axvline(flat.mean(), color=colour, linestyle="--", linewidth=1.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3)
    axes.legend(fontsize=8, edgecolor="none")


def draw_endings(
    directory: Path, endings: Mapping[str, str], title: str, unit: str = "environment steps"
) -> Path | None:
    """Writes `endings.png`: how the games of each chunk of a training ended, stacked over steps.

    `endings` are those of the `Training`; means over the seeds. A chunk in which no game ended is
    left white. None where no game has ended.
    """
    rows = read_metrics(directory)
    chunks, shares = ending_shares(rows, list(endings))
    if not len(chunks):
        return None
    ends = np.array(sorted({row["steps"] for row in rows}), float)  # of all chunks
    all_shares = np.full((len(ends), len(endings)), np.nan)
    all_shares[np.searchsorted(ends, chunks)] = shares
    figure = pictures.titled_figure((9, 4), title)
    axes = figure.subplots()
    scale = pictures.style_axes(axes, unit, pictures.STEPS, float(ends[-1]))
    x = np.repeat(np.append(0, ends), 2)[1:-1] / scale  # where each chunk begins, where it ends
    y = np.repeat(all_shares, 2, axis=0)
    axes.stackplot(x, y.T, labels=list(endings.values()), colors=COLOURS, linewidth=0)
    axes.set_xlim(0, ends[-1] / scale)
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of the games that ended")
    handles = axes.get_legend_handles_labels()[0]
    if len(chunks) < len(ends):
        handles.append(Patch(facecolor="white", edgecolor=pictures.GREY, label="no game ended"))
    pictures.legend_below(figure, handles)
    path = directory / "endings.png"
    pictures.save(figure, path)
    return path


def ending_shares(rows: Sequence[Row], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """`(steps [K], shares [K, E])` of the chunks in which games ended, means over the seeds.

    The share of `REST` is what the others leave.
    """
    shares_by_step: dict[int, list[np.ndarray]] = {}
    for member in series.split_by_member(rows, sorted({row["seed"] for row in rows})):
        line = series.timeline([member])
        parts = [series.parts(line, "finished", name) for name in names if name != REST]
        if not parts or not all(parts):
            continue
        for row, member_shares in zip(member, np.stack([x for ((x,),) in parts], -1), strict=True):
            if np.isfinite(member_shares).all():
                shares_by_step.setdefault(row["steps"], []).append(member_shares)
    steps = np.array(sorted(shares_by_step), float)
    count = sum(name != REST for name in names)
    shares = np.array([np.mean(shares_by_step[x], axis=0) for x in sorted(shares_by_step)]).reshape(
        -1, count
    )
    if REST in names:
        remainder = np.clip(1.0 - shares.sum(1), 0.0, 1.0)
        shares = np.insert(shares, list(names).index(REST), remainder, axis=1)
    return steps, shares
