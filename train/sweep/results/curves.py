"""Learning curves of a sweep.

`configurations` are those of `train.sweep.results.summary.summarise`, the best one first. The
picture is a PNG, written whole or not at all; it raises ValueError where there is nothing to show.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from train.host.files.rows import scalars
from train.host.numbers import quantity
from train.host.showing import pictures
from train.host.showing.pictures import GREY, STEPS, Row
from train.sweep.results.colours import PALE, colours_of, legend_label
from train.sweep.results.scales import fence
from train.sweep.results.summary import Configuration, Member, varied_names

POINTS = 300
"""Of a curve, at most; more than these could not be seen."""


def curves(
    rows: Sequence[Row],
    members: Sequence[Member],
    configurations: Sequence[Configuration],
    path: str | Path,
    score: str,
    title: str,
    unit: str = "environment steps",
) -> None:
    """Draws `score` against steps: a line for each configuration, its interquartile mean.

    `rows` are those of `metrics.jsonl` with the key "member". The best configurations and the
    default have colours and, from three seeds on, a 95 % bootstrap band at each point by itself.
    Lines cover what all members that did not fail cover, or else are those of each member; those
    that failed end at a cross.
    """
    rows_by_member = _rows_by_member(rows, score)
    figure = pictures.titled_figure((9.5, 5.4), title)
    axes = figure.subplots()
    scale = pictures.style_axes(axes, unit, STEPS, max(row["steps"] for row in rows))
    colours, names = colours_of(configurations), varied_names(configurations)
    heights: list[np.ndarray] = []  # heights that the axis shows
    ends: list[np.ndarray] = []
    best_ends: list[np.ndarray] = []
    handles: list[Artist] = []
    for configuration in reversed(configurations):  # the best one on top
        own_members = [x for x in members if x.configuration == configuration.index]
        lines, failed = _split_curves(own_members, rows_by_member, score)
        colour = colours.get(configuration.index)
        style: dict[str, Any] = {"color": colour or PALE, "linewidth": 2 if colour else 0.6}
        for x, y in failed:
            axes.plot(x / scale, y, color=style["color"], linewidth=0.6)
            axes.plot(x[-1] / scale, y[-1], "x", color=style["color"], markersize=6)
            ends.append(y[-1:])
        if lines:
            shown_heights = _draw(axes, lines, scale, style, bool(colour))
            heights += shown_heights
            best_ends = [height[-1:] for height in shown_heights]
        if colour:
            handles.insert(0, Line2D([], [], **style, label=legend_label(configuration, names)))
    _limit(axes, heights or ends, best_ends)
    pictures.legend_below(figure, handles + _extra_handles(configurations, handles))
    axes.set_ylabel(score, parse_math=False)
    pictures.save(figure, path)


def _rows_by_member(rows: Sequence[Row], score: str) -> dict[int, list[Row]]:
    """The rows of each member; checked."""
    score_names = {name: None for row in rows for name in scalars(row)}
    if not rows:
        raise ValueError("no rows to draw curves of; give those of metrics.jsonl, with members")
    if score not in score_names:
        raise ValueError(f"score {score!r} is not in the record; it has {', '.join(score_names)}")
    rows_by_member: dict[int, list[Row]] = {}
    for row in rows:
        rows_by_member.setdefault(row["member"], []).append(row)
    return rows_by_member


def _split_curves(
    members: Sequence[Member], rows_by_member: dict[int, list[Row]], score: str
) -> tuple[list[pictures.Curve], list[pictures.Curve]]:
    """The curves of members that did not fail, and of those that did."""
    curve_lists: tuple[list[pictures.Curve], list[pictures.Curve]] = ([], [])
    for member in members:
        member_rows = rows_by_member.get(member.member, [])
        curve_lists[member.state == "failed"].extend(pictures.curves(member_rows, score, "steps"))
    return curve_lists


def _draw(
    axes: Axes, lines: Sequence[pictures.Curve], scale: float, style: dict[str, Any], band: bool
) -> list[np.ndarray]:
    """Draws the interquartile mean of curves; returns the heights that should be seen.

    Where no x is one of all curves, each is drawn by itself.
    """
    x, y = align_curves(lines)
    shown_lines = [(x, middle_half(y))] if len(x) else lines
    order = 2.5 if band else 1.5
    for place, height in shown_lines:
        axes.plot(place / scale, height, pictures.line_style(place), **style, zorder=order)
    if not band or len(y) < 3 or not len(x):
        return [height if band else height[-1:] for _, height in shown_lines]
    resamples = np.random.default_rng(0).integers(len(y), size=(500, len(y)))
    low, high = np.percentile(middle_half(y[resamples]), [2.5, 97.5], axis=0)
    axes.fill_between(x / scale, low, high, color=style["color"], alpha=0.15, linewidth=0)
    return [low, high]


def align_curves(lines: Sequence[pictures.Curve]) -> tuple[np.ndarray, np.ndarray]:
    """`(x [K], y [S, K])` over the range of x that all seeds cover, interpolated linearly."""
    x = np.unique(np.concatenate([line[0] for line in lines]))
    first, last = max(line[0][0] for line in lines), min(line[0][-1] for line in lines)
    x = x[(first <= x) & (x <= last)]
    x = x[np.unique(np.linspace(0, len(x) - 1, POINTS).round().astype(int))] if len(x) else x
    return x, np.stack([np.interp(x, *line) for line in lines])


def middle_half(y: np.ndarray) -> np.ndarray:
    """Interquartile means `[..., K]` of `y [..., S, K]` over seeds."""
    cut = y.shape[-2] // 4
    return np.sort(y, axis=-2)[..., cut : y.shape[-2] - cut, :].mean(axis=-2)


def _limit(axes: Axes, heights: Sequence[np.ndarray], best_ends: Sequence[np.ndarray]) -> None:
    """An axis for the best: a configuration that diverged must not flatten all others.

    Where the best one ends is always seen: where most learn little, it is far out, too.
    """
    low, high = fence(np.concatenate([np.empty(0), *heights]))
    if best_ends:
        ends = np.concatenate(best_ends)
        low, high = min(low, float(ends.min())), max(high, float(ends.max()))
    room = 0.05 * (high - low) or 0.5
    axes.set_ylim(low - room, high + room)


def _extra_handles(
    configurations: Sequence[Configuration], handles: Sequence[Artist]
) -> list[Artist]:
    """Legend entries for what has no name of its own."""
    extras: list[Artist] = []
    others = len(configurations) - len(handles)
    if others:
        extras.append(
            Line2D(
                [],
                [],
                color=PALE,
                linewidth=0.8,
                label=quantity(others, "others" if handles else "configurations"),
            )
        )
    if any(len(x.scores) > 2 for x in configurations):
        text = "95 % interval of the interquartile mean"
        extras.append(Patch(color=GREY, alpha=0.2, linewidth=0, label=text))
    if any(x.failed for x in configurations):
        extras.append(Line2D([], [], color=GREY, marker="x", linestyle="", label="a seed failed"))
    return extras
