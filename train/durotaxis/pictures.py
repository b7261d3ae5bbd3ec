"""Pictures of episodes of colonies: a film, and trajectories of many episodes."""

from collections.abc import Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from envs.durotaxis.env import Params, goal
from envs.durotaxis.pictures import drawing
from envs.durotaxis.units import PIXELS, Units
from train.durotaxis.episodes import shown
from train.durotaxis.episodes.record import Episode
from train.durotaxis.episodes.shown import Look
from train.durotaxis.strip_pictures import INK, strip
from train.host.showing.pictures import (
    BLUE,
    GREY,
    STEPS,
    VERMILLION,
    legend_below,
    save,
    style_axes,
)

ENDINGS = {"arrived": BLUE, "crowded": VERMILLION, "time up": GREY}
OTHERS = "#b07aa1"


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
