"""Pictures of scores against the numbers that a sweep varied.

`configurations` are those of `train.sweep.results.summary.summarise`, the best one first. Every
picture is a PNG, written whole or not at all; each raises ValueError when there is nothing that it
could show.
"""

import textwrap
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator

from jaxrl.numerics import statistics
from train.host.showing import pictures
from train.host.showing.pictures import BLUE, GREY, VERMILLION
from train.sweep.results.labels import cut, distinct_values, text_of
from train.sweep.results.pictures import DEFAULT, PALE, fence
from train.sweep.results.summary import Configuration, varied_names

WIDE = 20
"""Ratio of the largest to the smallest value beyond which an axis is logarithmic."""
TICKS = 8
"""Values that are all written at an axis, at most."""
SHADES = matplotlib.colormaps["viridis_r"]  # dark is good: it stands out on white
BINS = 8
"""Groups of about as many values each, whose means are drawn where values hardly repeat."""


class Scale(NamedTuple):
    """How the values of a number are placed along an axis."""

    kind: str  # "linear", "log", "even": numbers at equal distances, or "words", switches too
    places: dict[str, float]  # of distinct values, by how each is written

    def place(self, value: Any) -> float:
        """Where a value lies: itself, or its index where distances mean nothing."""
        if self.kind in ("linear", "log"):
            return float(value)
        return next(
            self.places[text] for text in (text_of(value), str(value)) if text in self.places
        )

    def share(self, place: float) -> float:
        """The same from 0 to 1."""
        bend = np.log if self.kind == "log" else float
        low, high = bend(min(self.places.values())), bend(max(self.places.values()))
        return float((bend(place) - low) / (high - low)) if high > low else 0.5

    def ticks(self) -> dict[str, float]:
        """All values, or round numbers between them where they are many."""
        if len(self.places) <= TICKS:
            return self.places
        if self.kind in ("words", "even"):
            return dict(list(self.places.items())[:: -(-len(self.places) // TICKS)])
        low, high = min(self.places.values()), max(self.places.values())
        locator = LogLocator(subs=(1, 3), numticks=TICKS) if self.kind == "log" else MaxNLocator(5)
        round_numbers = [x for x in locator.tick_values(low, high) if low <= x <= high]
        return {text_of(float(x)): float(x) for x in round_numbers}


def scale_of(values: Sequence[Any]) -> Scale:
    """A logarithmic axis for positive numbers of wide range; words and switches one by one.

    A few numbers of wide range with zero or negative ones among them lie at equal distances, and so
    do any with infinity among them.
    """
    unique = distinct_values(values)
    if not all(isinstance(x, Real) and not isinstance(x, bool | np.bool_) for x in unique.values()):
        return Scale("words", {text: float(i) for i, text in enumerate(sorted(unique))})
    numbers = dict(sorted(unique.items(), key=lambda item: item[1]))
    evenly = {text: float(i) for i, text in enumerate(numbers)}
    if not np.isfinite(list(numbers.values())).all():
        return Scale("even", evenly)
    sizes = np.abs([x for x in numbers.values() if x])
    is_wide = sizes.size > 0 and sizes.max() > WIDE * sizes.min()
    if is_wide and min(numbers.values()) <= 0 and len(numbers) <= TICKS:
        return Scale("even", evenly)
    kind = "log" if is_wide and min(numbers.values()) > 0 else "linear"
    return Scale(kind, {text: float(x) for text, x in numbers.items()})


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
