"""A line for each configuration of a sweep, through an axis for each number that was varied.

`configurations` are those of `train.sweep.results.summary.summarise`, the best one first. The
picture is a PNG, written whole or not at all; it raises ValueError where there is nothing to show.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from train.host.showing import pictures
from train.host.showing.pictures import GREY
from train.sweep.results.colours import DEFAULT, PALE
from train.sweep.results.labels import cut, text_of
from train.sweep.results.scales import fence, scale_of
from train.sweep.results.summary import Configuration, varied_names

SHADES = matplotlib.colormaps["viridis_r"]  # dark is good: it stands out on white


def parallel(
    configurations: Sequence[Configuration],
    path: str | Path,
    score: str,
    title: str,
    better: str = "higher",
) -> None:
    """Draws a line for each configuration through an axis for each varied number and the score.

    Lines are coloured by the score, dark for the best, which lie on top; failed ones are grey and
    do not reach the score. On an axis lines of one value are spread a little, by their score.
    """
    names = varied_names(configurations)
    if len(names) < 2:
        raise ValueError(f"{len(names)} numbers were varied; give a sweep of two at least")
    complete = [x for x in configurations if all(name in x.values for name in names)]
    if not complete:
        raise ValueError("no configuration has a value of every number; complete them first")
    scales = [scale_of([x.values[name] for x in complete]) for name in names]
    figure = pictures.titled_figure((2.2 + 1.6 * len(names), 4.8), title)
    axes = figure.subplots()
    means = [x.iqm for x in complete if x.iqm is not None]
    low, high = fence(np.array(means))
    for order, x in enumerate(reversed(complete)):
        goodness = 0.0 if x.iqm is None else _goodness(x.iqm, (low, high), better)
        spread = 0.05 * (goodness - 0.5)
        pairs = zip(names, scales, strict=True)
        y = [scale.share(scale.place(x.values[name])) + spread for name, scale in pairs]
        y += [] if x.iqm is None else [goodness]
        axes.plot(range(len(y)), y, **_line_style(x, goodness), zorder=2 + order / len(complete))
    axes.set_xlim(-0.3, len(names) + 0.4)
    axes.set_ylim(-0.06, 1.06)
    axes.axis("off")
    for i, (name, scale) in enumerate(zip(names.values(), scales, strict=True)):
        ticks = {text: scale.share(place) for text, place in scale.ticks().items()}
        _draw_vertical_axis(axes, i, name, ticks)
    tick_scores = [x for x in MaxNLocator(5).tick_values(low, high) if low <= x <= high]
    ticks = {text_of(float(x)): _goodness(x, (low, high), better) for x in tick_scores}
    _draw_vertical_axis(axes, len(names), score, ticks)
    pictures.legend_below(figure, _parallel_legend(complete))
    pictures.save(figure, path)


def _goodness(score: float, limits: tuple[float, float], better: str) -> float:
    """From 0 at the worse of the limits to 1 at the better one."""
    low, high = limits
    share = float(np.clip((score - low) / (high - low), 0, 1)) if high > low else 0.5
    return share if better == "higher" else 1 - share


def _line_style(configuration: Configuration, goodness: float) -> dict[str, Any]:
    if configuration.iqm is None:
        return {"color": PALE, "linewidth": 0.8, "linestyle": "--"}
    if configuration.is_default:
        return {"color": DEFAULT, "linewidth": 2, "linestyle": (0, (4, 2))}
    return {
        "color": SHADES(0.1 + 0.9 * goodness),
        "linewidth": 3 if configuration.rank == 1 else 1.2,
        "alpha": 1.0 if configuration.rank == 1 else 0.75,
    }


def _draw_vertical_axis(axes: Axes, x: float, name: str, ticks: dict[str, float]) -> None:
    """A vertical axis with its name above it and its values beside it."""
    axes.plot([x, x], [-0.03, 1.03], color=GREY, linewidth=1, zorder=4)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    for text, share in ticks.items():
        style: dict[str, Any] = {"va": "center", "fontsize": 8, "bbox": box, "zorder": 5}
        axes.text(x + 0.04, share, cut(text, 16), parse_math=False, **style)
    heading: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 9}
    axes.text(x, 1.07, textwrap.fill(name, 14), parse_math=False, **heading)


def _parallel_legend(configurations: Sequence[Configuration]) -> list[Line2D]:
    handles = [Line2D([], [], color=SHADES(1.0), linewidth=3, label="the best")]
    if sum(x.iqm is not None for x in configurations) > 1:
        handles.append(Line2D([], [], color=SHADES(0.1), label="the worst"))
    if any(x.is_default for x in configurations):
        handles.append(
            Line2D([], [], color=DEFAULT, linestyle="--", linewidth=2, label="the default")
        )
    if any(x.iqm is None for x in configurations):
        handles.append(Line2D([], [], color=PALE, linestyle="--", label="failed"))
    return handles
