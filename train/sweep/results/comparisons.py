"""Pictures that compare the configurations of a sweep, with intervals over their seeds.

`configurations` are those of `train.sweep.results.summary.summarise`, the best one first. Every
picture is a PNG, written whole or not at all; each raises ValueError when there is nothing that it
could show.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jaxrl.numerics import comparison
from train.host.showing import pictures
from train.host.showing.pictures import GREY
from train.sweep.results.colours import COLOURS, colours_of, legend_label
from train.sweep.results.labels import label
from train.sweep.results.summary import Configuration, varied_names

PROFILES = 4
"""Of the best configurations, at most, beside the default: more bands would hide each other."""
SHOWN = 30
"""Configurations with a row of their own in `probabilities`."""


def profiles(
    configurations: Sequence[Configuration],
    path: str | Path,
    score: str,
    title: str,
    better: str = "higher",
) -> None:
    """Draws the share of seeds that score better than each threshold, with 95 % bootstrap bands.

    Of the best configurations and the default, if they have two seeds. Failed seeds are never
    better: they keep a profile below one.
    """
    eligible = [x for x in configurations if x.scores and len(x.scores) + x.failed > 1]
    if not eligible:
        raise ValueError("no configuration has two seeds, so there is no profile; give more seeds")
    colours, names = colours_of(eligible, PROFILES), varied_names(configurations)
    eligible = [x for x in eligible if x.index in colours]
    sign = 1.0 if better == "higher" else -1.0
    unique_scores = np.unique(np.concatenate([x.scores for x in eligible]))
    room = 0.04 * np.ptp(unique_scores) or 0.5
    thresholds = np.array([unique_scores[0] - room, *unique_scores, unique_scores[-1] + room])
    side = "post" if sign > 0 else "pre"  # a threshold that is reached is not passed
    figure = pictures.titled_figure((9.5, 5), title)
    axes = figure.subplots()
    handles: list[Artist] = []
    for x in reversed(eligible):
        runs = np.array([sign * s for s in x.scores] + [-np.inf] * x.failed)[:, None]
        style: dict[str, Any] = {"color": colours[x.index]}
        profile = comparison.performance_profile(runs, sign * thresholds)
        band = comparison.profile_band(runs, sign * thresholds)
        axes.fill_between(thresholds, *band, **style, step=side, alpha=0.12, linewidth=0)
        axes.plot(thresholds, profile, **style, drawstyle=f"steps-{side}", linewidth=2)
        handles.insert(0, Line2D([], [], **style, linewidth=2, label=legend_label(x, names)))
    pictures.style_axes(axes, "", ((1, ""),), 1)
    axes.set_xlim(thresholds[0], thresholds[-1])
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(score, parse_math=False)
    axes.set_ylabel(f"share of seeds {'above' if sign > 0 else 'below'}")
    handles.append(Patch(color=GREY, alpha=0.2, linewidth=0, label="95 % interval"))
    pictures.legend_below(figure, handles)
    pictures.save(figure, path)


def probabilities(configurations: Sequence[Configuration], path: str | Path, title: str) -> None:
    """Draws each configuration's probability of improvement over the default, with its interval.

    A row for each of the best `SHOWN` that have one, the best at the top.
    """
    eligible = [x for x in configurations if x.improvement]
    if not eligible:
        raise ValueError(
            "no configuration can be compared with the default; give a sweep that has the default "
            "and two seeds of each"
        )
    names, rows = varied_names(configurations), eligible[:SHOWN]
    figure = pictures.titled_figure((8, 1.5 + 0.28 * len(rows)), title)
    axes = figure.subplots()
    axes.axvline(0.5, color=GREY, linewidth=1, linestyle="--")
    for y, x in enumerate(rows):
        probability, low, high = x.improvement or (np.nan,) * 3
        spread = [[probability - low], [high - probability]]
        clear = low > 0.5 or high < 0.5  # the interval leaves out no difference
        style: dict[str, Any] = {"fmt": "o", "markersize": 5, "capsize": 3, "clip_on": False}
        axes.errorbar(probability, y, xerr=spread, color=COLOURS[0] if clear else GREY, **style)
    pictures.style_axes(axes, "", ((1, ""),), 1)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="#e5e5e5", linewidth=0.8)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    texts = [label(x.index, x.values, names) for x in rows]
    axes.set_yticks(range(len(rows)), texts, parse_math=False)
    axes.set_xlabel("probability of scoring better than the default")
    if len(eligible) > len(rows):
        axes.set_ylabel(f"the best {len(rows)} of {len(eligible)}")
    pictures.save(figure, path)
