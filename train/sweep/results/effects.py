"""Scores of a sweep against each number that it varied.

`configurations` are those of `train.sweep.results.summary.summarise`, the best one first. The
picture is a PNG, written whole or not at all; it raises ValueError where there is nothing to show.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxrl.numerics import statistics
from train.host.showing import pictures
from train.host.showing.pictures import BLUE, GREY, VERMILLION
from train.sweep.results.colours import DEFAULT
from train.sweep.results.labels import cut
from train.sweep.results.scales import TICKS, Scale, fence, scale_of
from train.sweep.results.summary import Configuration, varied_names

BINS = 8
"""Groups of about as many values each, whose means are drawn where values hardly repeat."""


def effects(
    configurations: Sequence[Configuration], path: str | Path, score: str, title: str
) -> None:
    """Draws the score of every member against each number that was varied, a panel for each.

    The line is the interquartile mean at each value, or of groups of neighbouring values where
    they are many, whatever the other numbers are. Failed members are crosses at the bottom.
    """
    names = varied_names(configurations)
    if not names:
        raise ValueError("no number was varied, so none has an effect to draw")
    configurations = [x for x in configurations if any(name in x.values for name in names)]
    columns = min(3, len(names))
    num_rows = -(-len(names) // columns)
    figure = pictures.titled_figure((1 + 3.4 * columns, 1.2 + 2.9 * num_rows), title)
    panels = figure.subplots(num_rows, columns, sharey=True, squeeze=False)
    limits = fence(np.concatenate([np.empty(0), *(x.scores for x in configurations)]))
    for axes, (name, plain) in zip(panels.flat, names.items(), strict=False):
        _draw_effect(axes, [x for x in configurations if name in x.values], name, limits)
        axes.set_xlabel(textwrap.fill(plain, 36), parse_math=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel(score, parse_math=False)
    pictures.legend_below(figure, _effect_legend(configurations, limits))
    pictures.save(figure, path)


def _draw_effect(
    axes: Axes, configurations: Sequence[Configuration], name: str, limits: tuple[float, float]
) -> None:
    """One panel of `effects`; scores beyond the limits are triangles at the edge."""
    scale = scale_of([x.values[name] for x in configurations])
    pictures.style_axes(axes, "", ((1, ""),), 1)
    low, high = limits
    room = 0.06 * (high - low) or 0.5
    bottom, top = low - 2 * room, high + room
    places, scores = [], []
    for x in reversed(configurations):
        place, style = scale.place(x.values[name]), _point_style(x)
        if x.failed:
            axes.plot(place, bottom + 0.4 * room, **dict(style, marker="x", alpha=0.9))
        for y in x.scores:
            marker = "v" if y < low else "^" if y > high else "o"
            height = float(np.clip(y, bottom + 0.4 * room, top - 0.4 * room))
            axes.plot(place, height, **dict(style, marker=marker))
        places += [place] * len(x.scores)
        scores += x.scores
    middle: dict[str, Any] = {"color": GREY, "linewidth": 1.6, "zorder": 3}
    if scale.kind == "words":  # nothing lies between them
        middle |= {"linestyle": "", "marker": "_", "markersize": 22, "markeredgewidth": 1.6}
    axes.plot(*middle_line(np.array(places), np.array(scores)), **middle)
    axes.set_ylim(bottom, top)
    _dress_values(axes, scale)


def _point_style(configuration: Configuration) -> dict[str, Any]:
    is_best = configuration.rank == 1
    colour = DEFAULT if configuration.is_default else VERMILLION if is_best else BLUE
    chosen = configuration.is_default or is_best
    style: dict[str, Any] = {"color": colour, "linestyle": "", "markeredgewidth": 0.8}
    size = 5.5 if chosen else 4
    return style | {"markersize": size, "alpha": 0.9 if chosen else 0.35}


def middle_line(places: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Interquartile means `[V]` of scores `[M]` at the V places that occur, or at their `BINS`.

    Where nearly every place is another one, neighbours are taken together, at their median.
    """
    unique_places = np.unique(places)
    if len(unique_places) <= TICKS:
        groups = [places == x for x in unique_places]
    else:
        edges = np.array_split(np.sort(unique_places), BINS)
        groups = [(edge[0] <= places) & (places <= edge[-1]) for edge in edges]
    means = [statistics.interquartile_mean(scores[group]) for group in groups]
    return np.array([np.median(places[group]) for group in groups]), np.array(means)


def _dress_values(axes: Axes, scale: Scale) -> None:
    """The horizontal axis of a panel."""
    places = list(scale.places.values())
    if scale.kind == "log":
        axes.set_xscale("log")
        axes.set_xlim(min(places) / 1.5, max(places) * 1.5)
    else:
        width = float(np.ptp(places))
        room = 0.08 * width or 0.5 if scale.kind == "linear" else 0.5
        axes.set_xlim(min(places) - room, max(places) + room)
    if scale.kind in ("linear", "log") and len(places) > TICKS:
        return
    ticks = {cut(text, 20): place for text, place in scale.ticks().items()}
    crowded = sum(map(len, ticks)) > 24
    turn: dict[str, Any] = {"rotation": 30, "ha": "right"} if crowded else {}
    axes.set_xticks(list(ticks.values()), list(ticks), parse_math=False, **turn)
    axes.set_xticks([], minor=True)


def _effect_legend(
    configurations: Sequence[Configuration], limits: tuple[float, float]
) -> list[Line2D]:
    dot: dict[str, Any] = {"marker": "o", "linestyle": ""}
    handles = []
    if any(x.rank == 1 and not x.is_default for x in configurations):
        handles.append(Line2D([], [], color=VERMILLION, **dot, label="the best configuration"))
    if any(x.is_default for x in configurations):
        is_best = any(x.is_default and x.rank == 1 for x in configurations)
        label = "the default, the best" if is_best else "the default"
        handles.append(Line2D([], [], color=DEFAULT, **dot, label=label))
    if len(configurations) > len(handles):
        handles.append(Line2D([], [], color=BLUE, alpha=0.4, **dot, label="another member"))
    handles.append(Line2D([], [], color=GREY, linewidth=1.6, label="interquartile mean"))
    if any(x.failed for x in configurations):
        handles.append(Line2D([], [], color=GREY, marker="x", linestyle="", label="failed"))
    if any(not limits[0] <= y <= limits[1] for x in configurations for y in x.scores):
        triangle: dict[str, Any] = {"marker": "v", "linestyle": ""}
        handles.append(Line2D([], [], color=GREY, **triangle, label="beyond the axis"))
    return handles
