"""What the policy did while it learned: the numbers of its actions, beside rewards and losses."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator

from envs.durotaxis.units import Units
from train.durotaxis.config import Experiment, names_of_action
from train.durotaxis.episodes.shown import units_of
from train.host.files import series
from train.host.files.metrics_file import read_metrics
from train.host.showing import pictures
from train.host.showing.diagnostics import COLOURS, DASHES
from train.host.showing.pictures import BLUE, GREY, STEPS, VERMILLION

SYMBOLS = {
    "delete_ratio": "share deleted",
    "gamma": "γ",
    "alpha": "α",
    "noise": "noise",
    "theta": "θ",
}
REWARD = "reward_"
LOSSES = ("policy_loss", "value_loss")
LEAST = 1.0  # rewards and losses within ± this are on a linear axis
LINEAR_SPAN = 100.0  # how many times as large as the smallest the largest is on one, at most
MOST_BETWEEN = 12  # ticks between those of decades that have room for a number


def draw(directory: Path, seeds: Sequence[int], experiment: Experiment, title: str) -> Path | None:
    """Writes `spawn_parameters.png`; None without a row in the record.

    A panel for each number of the action: mean over all steps and environments of a chunk, one
    deviation to both sides, the smallest and the largest, and its bounds. Then the components of
    the reward an episode, and the losses. Several seeds are one: their means and extremes.
    """
    rows = read_metrics(directory)
    members = [x for x in series.split_by_member(rows, seeds) if x]
    if not members or "action_min" not in members[0][0]["agent"]:
        return None
    names = names_of_action(experiment.action, experiment.spawning)
    num_rows = -(-(len(names) + 2) // 4)
    figure = pictures.titled_figure((13, 2.7 * num_rows + 0.6), title)
    grid = figure.subplots(num_rows, 4, squeeze=False)
    line = series.timeline(members)
    units = units_of(experiment)
    for k, (axes, name) in enumerate(zip(grid.flat, names, strict=False)):
        scale = _panel(axes, label_of(name, units), line.steps)
        factor = factor_of(name, units)
        low, high = (factor * end for end in getattr(experiment.bounds, name))
        _draw_number(axes, scale, line, k, factor)
        for end, label in ((low, "bounds"), (high, None)):
            axes.axhline(end, color=GREY, linewidth=0.8, linestyle="--", label=label)
        axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    rewards, losses, *unused_axes = grid.flat[len(names) :]
    reward_names = [name for name in members[0][0]["finished"] if name.startswith(REWARD)]
    _draw_measures(rewards, "reward an episode", line, "finished", reward_names)
    _draw_measures(losses, "losses", line, "agent", LOSSES)
    for axes in unused_axes:
        axes.set_visible(False)
    handles, _ = grid.flat[0].get_legend_handles_labels()
    pictures.legend_below(figure, handles)
    path = directory / "spawn_parameters.png"
    pictures.save(figure, path)
    return path


def label_of(name: str, units: Units) -> str:
    """What a number of the action is called, with its unit."""
    unit = {"gamma": units.length_name, "noise": units.length_name, "theta": "rad"}
    unit["alpha"] = units.stiffness_name
    return f"{SYMBOLS[name]}, {unit[name]}" if unit.get(name) else SYMBOLS[name]


def factor_of(name: str, units: Units) -> float:
    """What a number of the action is multiplied by to be in units."""
    factors = {"gamma": units.length, "noise": units.length, "alpha": units.stiffness}
    return factors.get(name, 1.0)


def _draw_number(axes: Axes, scale: float, line: series.Timeline, k: int, factor: float) -> None:
    """Number k of the action, times a factor, over steps in units of `scale`."""
    x = line.steps / scale
    scaled_parts = lambda name: np.stack(series.parts(line, "agent", name)[k]) * factor
    mean, deviation = (
        np.nanmean(scaled_parts("action_mean"), 0),
        np.nanmean(scaled_parts("action_deviation"), 0),
    )
    axes.plot(x, mean, color=BLUE, label="mean")
    band = {"color": BLUE, "alpha": 0.2, "linewidth": 0, "label": "one deviation"}
    axes.fill_between(x, mean - deviation, mean + deviation, **band)
    low, high = np.nanmin(scaled_parts("action_min"), 0), np.nanmax(scaled_parts("action_max"), 0)
    axes.plot(x, low, ":", color=VERMILLION, linewidth=1, label="smallest and largest")
    axes.plot(x, high, ":", color=VERMILLION, linewidth=1)


def _draw_measures(
    axes: Axes, title: str, line: series.Timeline, group: str, names: Sequence[str]
) -> None:
    """The means over the seeds of measures that are not 0 throughout."""
    scale = _panel(axes, title, line.steps)
    num_lines = 0
    for name in names:
        parts = series.parts(line, group, name)
        if not parts or not np.nan_to_num(values := np.stack(parts[0])).any():
            continue
        colour, dashes = COLOURS[num_lines % 6], DASHES[num_lines // 6 % len(DASHES)]
        label = name.removeprefix(REWARD).replace("_", " ")
        is_finite = np.isfinite(values).any(0)
        mean = np.full(len(line.steps), np.nan)
        mean[is_finite] = np.nanmean(values[:, is_finite], 0)
        axes.plot(line.steps / scale, mean, dashes, label=label, linewidth=1.2, color=colour)
        num_lines += 1
    _fit_scale(axes)
    if num_lines:
        axes.legend(fontsize=6, frameon=False, ncols=1 + num_lines // 8)


def _fit_scale(axes: Axes) -> None:
    """Makes the y axis logarithmic beyond ±`LEAST` where sizes span more than `LINEAR_SPAN`.

    There 2 and 5 have ticks as 1 has: of a decade alone nothing could be read off.
    """
    heights = np.concatenate([[0.0], *(np.asarray(x.get_ydata(), float) for x in axes.lines)])
    sizes = np.maximum(np.abs(heights[np.isfinite(heights) & (heights != 0)]), LEAST)
    if not sizes.size or sizes.max() <= LINEAR_SPAN * sizes.min():
        return
    axes.set_yscale("symlog", linthresh=LEAST)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_locator(SymmetricalLogLocator(base=10, linthresh=LEAST, subs=[2, 5]))
    low, high = axes.get_ylim()
    if sum(low <= x <= high for x in axes.yaxis.get_minorticklocs()) <= MOST_BETWEEN:
        axes.yaxis.set_minor_formatter("{x:,g}")
        axes.tick_params(which="minor", labelsize=6)


def _panel(axes: Axes, title: str, steps: np.ndarray) -> float:
    """Title and axes; returns the divisor of the steps."""
    axes.set_title(title, size=10, loc="left", parse_math=False)
    scale = pictures.style_axes(axes, "environment steps", STEPS, float(steps[-1]))
    axes.xaxis.label.set_fontsize(8)
    axes.tick_params(labelsize=8)
    return scale
