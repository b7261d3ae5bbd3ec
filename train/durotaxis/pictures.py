"""Pictures of episodes of colonies: a film, a strip for print, trajectories of many episodes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from envs.durotaxis.env import Params, goal
from envs.durotaxis.pictures import drawing, scenery, symbols
from envs.durotaxis.units import PIXELS, Units
from train.durotaxis.episodes import shown
from train.durotaxis.episodes.record import Episode
from train.durotaxis.episodes.shown import Look
from train.host.numbers import quantity
from train.host.showing.pictures import (
    BLUE,
    GREY,
    STEPS,
    VERMILLION,
    legend_below,
    save,
    style_axes,
)

INK, NEW, STAR = "#14181c", "#f08028", "#ff60a8"
PRINT = 300  # dots per inch
TITLE, LINE = 2.4, 0.9  # inches that the title of a moment needs in one line, and in three
CLOSE_UP = 0.52  # side of a close-up, as a share of the shorter side of the ground
ENDINGS = {"arrived": BLUE, "crowded": VERMILLION, "time up": GREY}
OTHERS = "#b07aa1"
GOAL: dict[str, Any] = {"linestyle": ":", "linewidth": 1.6}  # the hull is dashed


def climb(
    episode: Episode, params: Params, directory: Path, look: Look | None = None
) -> list[Path]:
    """Writes `climb.gif` and `climb.png`, a film and a strip of an episode, into a directory."""
    paths = [directory / "climb.gif", directory / "climb.png"]
    film(episode, params, paths[0], look)
    strip(episode, params, paths[1], look)
    return paths


def film(episode: Episode, params: Params, path: str | Path, look: Look | None = None) -> None:
    """Writes the GIF of an episode, of about ten seconds, or longer for a long episode."""
    count = len(episode.ids)
    fps = float(np.clip(count / 10, 5, 30))
    look = look or shown.default_look(params)
    stiffness = shown.stiffness_in(look, episode.law, params)
    colony = shown.place_episode(episode, look).colony
    drawing.film(stiffness, colony, episode.deleted, path, fps, episode.ending, *look)


def strip(
    episode: Episode, params: Params, path: str | Path, look: Look | None = None, count: int = 6
) -> None:
    """Writes a PNG for print: `count` moments of an episode, evenly spaced, three in a row.

    The last shows how it ended. Raises ValueError for a count below 2.
    """
    if count < 2:
        raise ValueError(f"a strip needs at least 2 moments; got {count}")
    # The moments, in units; the close-up has the same side in all of them.
    look = look or shown.default_look(params)
    stiffness = shown.stiffness_in(look, episode.law, params)
    moments = sorted({round(x) for x in np.linspace(0, len(episode.ids) - 1, count)})
    episode = shown.place_episode(episode, look)
    reach = drawing.reach_of(jax.tree.map(lambda x: x[moments], episode.colony), share=1.0)
    episode, unit = shown.convert_units(episode, look), look.units.length
    reach, goal = reach * unit, scenery.goal_line(look.placement) * unit
    # A panel for each moment, as wide and high as the ground asks for.
    num_columns = min(3, len(moments))
    num_rows = -(-len(moments) // num_columns)
    height, width = stiffness.shape
    panel_height = float(np.clip(8.4 / num_columns * height / width, 1.0, 5.0))
    panel_width = panel_height * width / height
    is_narrow = panel_width < TITLE
    title_height = 0.66 if is_narrow else 0.32
    figure = Figure(
        figsize=(10, num_rows * (panel_height + title_height) + 0.75),
        dpi=PRINT,
        layout="constrained",
    )
    grid = figure.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
    # Ground, goal, way of the centroid and colony; and that once more, where it can be larger.
    has_close_up = CLOSE_UP * min(height, width) * unit > reach
    is_log = scenery.shades(stiffness)[1]
    norm = (LogNorm if is_log else Normalize)(
        float(np.nanmin(stiffness)), float(np.nanmax(stiffness))
    )
    extent = (0, width * unit, height * unit, 0)
    for axes, moment in zip(grid.flat, moments, strict=False):
        image = axes.imshow(stiffness, "viridis", norm=norm, extent=extent, interpolation="nearest")
        axes.plot(*goal.T, **GOAL, color="white")
        axes.plot(*episode.centroid[: moment + 1].T, color=STAR, linewidth=1, zorder=2)
        is_alive = episode.alive[moment].any()
        _draw_moment(axes, episode, moment, 4.0, bool(is_alive and not has_close_up))
        if is_alive and has_close_up:
            _draw_close_up(axes, image, episode, moment, reach, goal)
        _entitle(axes, episode, moment, "\n" if is_narrow else " · ")
    # Labels, colour bar and legend, once for all panels.
    for axes in grid.flat[len(moments) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel(f"x ({look.units.length_name})")
    for axes in grid[:, 0]:
        axes.set_ylabel(f"y ({look.units.length_name})")
    overhang = max(0.0, LINE - panel_width) / 10  # of a title, as a share of the figure's width
    bar = figure.colorbar(image, ax=grid, aspect=30, shrink=0.9, pad=0.015 + overhang)
    bar.set_label(look.units.stiffness_label + " (log scale)" * is_log)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    legend_below(figure, _signs(), 6)
    save(figure, path)


def trajectories(
    episodes: Sequence[Episode], path: str | Path, width: float, units: Units = PIXELS
) -> None:
    """Writes a PNG of the centroid's way over steps, a line for each episode, and the goal.

    The episodes are in `units`, ground and goal, `width` px away, are not yet.

    A dot marks the end of each; the farthest node may reach the goal before the centroid does.
    """
    figure = Figure(figsize=(7, 4), dpi=200, layout="constrained")
    axes = figure.subplots()
    end = max(len(episode.ids) - 1 for episode in episodes)
    scale = style_axes(axes, "steps", STEPS, end)
    counts: dict[str, int] = {}
    for episode in episodes:
        counts[episode.ending] = counts.get(episode.ending, 0) + 1
        colour = ENDINGS.get(episode.ending, OTHERS)
        x = episode.centroid[:, 0]
        x = x[np.isfinite(x)]
        strength = float(np.clip(8 / len(episodes), 0.12, 0.8))
        axes.plot(np.arange(len(x)) / scale, x, color=colour, linewidth=0.9, alpha=strength)
        axes.plot((len(x) - 1) / scale, x[-1], ".", color=colour, markersize=4, alpha=0.6)
    end = float(goal(jnp.float32(width))) * units.length
    axes.axhline(end, color=INK, linestyle="--", linewidth=1.2)
    axes.set_ylim(0, 1.06 * width * units.length)
    axes.set_ylabel(f"way of the centroid to the goal ({units.length_name})")
    handles = [
        Line2D([], [], color=ENDINGS.get(name, OTHERS), marker=".", label=f"{name}, {count:,}")
        for name, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    handles.append(Line2D([], [], color=INK, linestyle="--", label="goal"))
    legend_below(figure, handles, 5)
    save(figure, path)


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
