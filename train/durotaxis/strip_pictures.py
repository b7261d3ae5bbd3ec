"""A strip of an episode for print: a few moments of a colony side by side."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from envs.durotaxis.env import Params
from envs.durotaxis.pictures import drawing, scenery, symbols
from envs.durotaxis.units import Units
from train.durotaxis.episodes import shown
from train.durotaxis.episodes.record import Episode
from train.durotaxis.episodes.shown import Look
from train.host.numbers import quantity
from train.host.showing.pictures import GREY, legend_below, save

INK, NEW, STAR = "#14181c", "#f08028", "#ff60a8"
PRINT = 300  # dots per inch
TITLE, LINE = 2.4, 0.9  # inches that the title of a moment needs in one line, and in three
CLOSE_UP = 0.52  # side of a close-up, as a share of the shorter side of the ground
GOAL: dict[str, Any] = {"linestyle": ":", "linewidth": 1.6}  # the hull is dashed


def strip(
    episode: Episode, params: Params, path: str | Path, look: Look | None = None, count: int = 6
) -> None:
    """Writes a PNG for print: `count` moments of an episode, evenly spaced, three in a row.

    The last shows how it ended. Raises ValueError for a count below 2.
    """
    if count < 2:
        raise ValueError(f"a strip needs at least 2 moments; got {count}")
    look = look or shown.default_look(params)
    stiffness = shown.stiffness_in(look, episode.law, params)
    moments = sorted({round(x) for x in np.linspace(0, len(episode.ids) - 1, count)})
    episode = shown.place_episode(episode, look)
    # A close-up has the same side in all panels.
    reach = drawing.reach_of(jax.tree.map(lambda x: x[moments], episode.colony), share=1.0)
    episode, unit = shown.convert_units(episode, look), look.units.length
    reach, goal = reach * unit, scenery.goal_line(look.placement) * unit
    has_close_up = CLOSE_UP * min(stiffness.shape) * unit > reach
    figure, grid, panel_width = _panels(len(moments), stiffness.shape)
    for axes, moment in zip(grid.flat, moments, strict=False):
        image = _draw_ground(axes, stiffness, unit)
        axes.plot(*goal.T, **GOAL, color="white")
        axes.plot(*episode.centroid[: moment + 1].T, color=STAR, linewidth=1, zorder=2)
        is_alive = episode.alive[moment].any()
        _draw_moment(axes, episode, moment, 4.0, bool(is_alive and not has_close_up))
        if is_alive and has_close_up:
            _draw_close_up(axes, image, episode, moment, reach, goal)
        _entitle(axes, episode, moment, "\n" if panel_width < TITLE else " · ")
    for axes in grid.flat[len(moments) :]:
        axes.set_visible(False)
    _label(grid, look.units)
    overhang = max(0.0, LINE - panel_width) / 10  # of a title, as a share of the figure's width
    bar = figure.colorbar(image, ax=grid, aspect=30, shrink=0.9, pad=0.015 + overhang)
    bar.set_label(look.units.stiffness_label + " (log scale)" * isinstance(image.norm, LogNorm))
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    legend_below(figure, _signs(), 6)
    save(figure, path)


def _panels(count: int, ground_shape: tuple[int, ...]) -> tuple[Figure, np.ndarray, float]:
    """A figure with a panel for each of `count` moments, and the width of one in inches.

    A panel is as wide and high as the ground, `(height, width)`, asks for.
    """
    num_columns = min(3, count)
    num_rows = -(-count // num_columns)
    height, width = ground_shape
    panel_height = float(np.clip(8.4 / num_columns * height / width, 1.0, 5.0))
    panel_width = panel_height * width / height
    title_height = 0.66 if panel_width < TITLE else 0.32
    figure = Figure(
        figsize=(10, num_rows * (panel_height + title_height) + 0.75),
        dpi=PRINT,
        layout="constrained",
    )
    grid = figure.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
    return figure, grid, panel_width


def _draw_ground(axes: Axes, stiffness: np.ndarray, unit: float) -> AxesImage:
    """Draws `stiffness` `[height, width]`, a pixel of which is `unit` wide."""
    norm = LogNorm if scenery.shades(stiffness)[1] else Normalize
    height, width = stiffness.shape
    return axes.imshow(
        stiffness,
        "viridis",
        norm=norm(float(np.nanmin(stiffness)), float(np.nanmax(stiffness))),
        extent=(0, width * unit, height * unit, 0),
        interpolation="nearest",
    )


def _label(grid: np.ndarray, units: Units) -> None:
    """Labels the axes at the left and at the bottom."""
    for axes in grid[-1]:
        axes.set_xlabel(f"x ({units.length_name})")
    for axes in grid[:, 0]:
        axes.set_ylabel(f"y ({units.length_name})")


def _draw_moment(axes: Axes, episode: Episode, moment: int, size: float, detailed: bool) -> None:
    """Draws the colony after `moment` steps, with nodes of `size` points²."""
    alive = episode.alive[moment]
    points = np.stack([episode.colony.x[moment], episode.colony.y[moment]], -1)
    parent = episode.colony.parent[moment]
    child = np.flatnonzero(alive & (parent >= 0))
    edges = list(np.stack([points[parent[child]], points[child]], 1))
    if detailed:
        hull = symbols.outline(points[alive])
        ring = np.append(hull, hull[:1], 0)
        axes.plot(*ring.T, "--", color="white", linewidth=0.8, zorder=2)
    axes.add_collection(LineCollection(edges, colors=INK, linewidths=1.5, zorder=2))
    axes.add_collection(LineCollection(edges, colors="white", linewidths=0.7, zorder=3))
    is_new = (episode.colony.birth[moment] == moment) & (moment > 0)
    style = {"s": size, "edgecolors": INK, "linewidths": 0.5}
    for mask, colour in ((~is_new, "white"), (is_new, NEW)):
        axes.scatter(*points[alive & mask].T, c=colour, zorder=4, **style)
    if detailed:
        doomed = points[episode.deleted[moment]]
        axes.scatter(*doomed.T, s=0.5 * size, c=INK, marker="x", linewidths=1.0, zorder=5)
        star = {"marker": "*", "s": 45, "c": STAR, "edgecolors": INK, "linewidths": 0.5}
        axes.scatter(*episode.centroid[moment], zorder=6, **star)


def _draw_close_up(
    axes: Axes, image: Any, episode: Episode, moment: int, reach: float, goal: np.ndarray
) -> None:
    """Draws the colony, in a square of side `reach`, in the corner of the ground farthest from it.

    The middle of its box is in the middle: around the centroid a part of it might be cut off. All
    lengths are in the units of the axes; `goal` `[2, 2]` are the ends of its line.
    """
    stiffness = np.asarray(image.get_array())
    _, width, height, _ = image.get_extent()
    alive, colony = episode.alive[moment], episode.colony
    x, y = (np.ptp(v) / 2 + v.min() for v in (colony.x[moment, alive], colony.y[moment, alive]))
    side = CLOSE_UP * min(height, width)
    left = 0.97 - side / width if x < width / 2 else 0.03
    bottom = 0.04 if y < height / 2 else 0.96 - side / height
    inset = axes.inset_axes((left, bottom, side / width, side / height))
    inset.imshow(stiffness, image.get_cmap(), norm=image.norm, extent=(0, width, height, 0))
    inset.plot(*goal.T, **GOAL, color="white")
    inset.set(xlim=(x - reach / 2, x + reach / 2), ylim=(y + reach / 2, y - reach / 2))
    inset.set_facecolor("#d9d9d9")
    inset.set_xticks([])
    inset.set_yticks([])
    inset.spines[:].set_color("white")
    # Its frame ends with the ground: beyond, white lines would cross the title.
    x_ends, y_ends = (
        np.clip([v - reach / 2, v + reach / 2], 0, end) for v, end in ((x, width), (y, height))
    )
    frame = (x_ends[0], y_ends[0], np.ptp(x_ends), np.ptp(y_ends))
    axes.indicate_inset(frame, edgecolor="white", alpha=0.9, linewidth=0.7)
    count = int(episode.colony.num_nodes[moment])
    _draw_moment(inset, episode, moment, float(np.clip(500 / max(count, 1), 12, 32)), True)


def _entitle(axes: Axes, episode: Episode, moment: int, separator: str) -> None:
    """Title with step and nodes, and after the last step how it ended."""
    words = [f"step {moment}", quantity(int(episode.colony.num_nodes[moment]), "nodes")]
    if moment == len(episode.ids) - 1:
        words.append(episode.ending)
    axes.set_title(separator.join(words), size=10, loc="left")
    axes.tick_params(length=3, labelsize=9)


def _signs() -> list[Line2D]:
    """Legend of the symbols."""
    node = {"linestyle": "", "marker": "o", "markeredgecolor": INK, "markersize": 5}
    cross = {"linestyle": "", "marker": "x", "markeredgecolor": INK, "markersize": 5}
    star = {"linestyle": "", "marker": "*", "markeredgecolor": INK, "markersize": 9}
    return [
        Line2D([], [], markerfacecolor="white", label="node", **node),
        Line2D([], [], markerfacecolor=NEW, label="new", **node),
        Line2D([], [], label="to be deleted", **cross),
        Line2D([], [], markerfacecolor=STAR, label="centroid", **star),
        Line2D([], [], color=GREY, linestyle="--", linewidth=1, label="hull"),
        Line2D([], [], **GOAL, color=GREY, label="goal"),
    ]
