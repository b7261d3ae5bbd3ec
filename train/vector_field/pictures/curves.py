"""Curves of learned vector fields: errors against samples, forecasts against steps ahead.

Axes: S seeds, P policies, F fields, U rows of the record, K steps ahead. Every picture is a PNG,
written whole or not at all.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from train.host.numbers import quantity
from train.host.showing import pictures
from train.host.showing.pictures import BLUE, GREY, STEPS, VERMILLION, Row
from train.vector_field.config import Config
from train.vector_field.experiment.run_record import error_curves, stops
from train.vector_field.pictures.maps import ticks
from train.vector_field.recorded import baselines

COLOURS = (BLUE, VERMILLION, "#009e73", "#e69f00", "#cc79a7", GREY, "#56b4e9", "#000000")
LINEAR = ("arx", "linear_gaussian")
"""Simple models that are drawn whole; the other may fall far below."""
MEASURES = {"error": "field error, all of the box", "reachable_error": "field error within reach"}
MEASURES |= {"coverage": "share of reach visited"}


def errors(path: str | Path, config: Config, rows: Sequence[Row]) -> None:
    """Draws a column for each field: its errors and the share of cells visited, against samples.

    A colour for each policy: the mean over seeds and, from three on, its 95 % interval. A dot is
    where its experiments stopped, in the mean, if they may.
    """
    fields, policies = config.env.fields, config.policies
    figure, grid = _panels(len(MEASURES), fields, f"Learning: {_means(config.run.num_seeds)}")
    for measure, row in zip(MEASURES, grid, strict=True):
        steps, values = error_curves(rows, config, measure)  # [S, U, F, P]
        for f, axes in enumerate(row):
            scale = pictures.style_axes(axes, "samples", STEPS, steps[-1])
            field_values = values[:, :, f].transpose(2, 0, 1)  # [P, S, U]
            margins = [pictures.interval(x) for x in field_values]
            _draw(axes, steps / scale, field_values.mean(axis=1), margins, policies)
            if config.stop_gain:
                _mark_stops(
                    axes,
                    steps,
                    field_values.mean(axis=1),
                    stops(rows, config)[..., f],
                    scale,
                )
        means = values.mean(axis=0)
        if measure == "coverage":
            row[0].set_ylim(0, 1.05 * max(float(np.nanmax(means)), 0.1))
        else:
            _logarithmic(row[0], 0.9 * float(np.nanmin(means)), 1.08 * float(np.nanmax(means)))
        row[0].set_ylabel(MEASURES[measure])
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    _legend(figure, grid[0, 0])
    pictures.save(figure, path)


def forecasts(
    path: str | Path, evaluation: dict[str, Any], simple: dict[str, Any] | None = None
) -> None:
    """Draws R² of forecasts against steps ahead, from `eval.json`; colours as in `errors`.

    A column for each field; above with stimulation, below without. Intervals are those of the fall
    since step 0, as R² at step 0 depends on how well the state of a seed's world can be observed
    and not on the policy. `simple` is what `experiment_baselines.load_or_measure` returned: thin
    grey lines are models fitted to the recordings of the first policy.
    """
    seeds, policies, fields = (evaluation[name] for name in ("seeds", "policies", "fields"))
    labels = {"r2": "R², stimulated", "r2_free": "R², left alone"}
    title = f"R² of forecasts: {_means(len(seeds), ' of its fall since step 0')}"
    figure, grid = _panels(len(labels), fields, title)
    for measure, row in zip(labels, grid, strict=True):
        r2_lists = [[seed[name][measure] for name in policies] for seed in seeds]
        values = np.array(r2_lists, float)  # [S, P, F, K + 1]
        for f, axes in enumerate(row):
            ahead = np.arange(values.shape[-1])
            pictures.style_axes(axes, "steps ahead", ((1, ""),), ahead[-1])
            field_values = np.swapaxes(values[:, :, f], 0, 1)
            margins = [pictures.interval(x - x[:, :1]) for x in field_values]
            _draw(axes, ahead, field_values.mean(axis=1), margins, policies)
            if simple:
                _draw_simple(axes, ahead, simple[measure], f)
        low, high = np.nanmin(values.mean(axis=0)), np.nanmax(values.mean(axis=0))
        if simple:
            linear = (np.array(simple[measure][name], float)[:, 0] for name in LINEAR)
            low = min(low, *(np.nanmin(r2.mean(axis=0)) for r2 in linear))
        room = 0.06 * (high - max(low, -0.5)) or 0.1
        row[0].set_ylim(max(low, -0.5) - room, high + room)
        row[0].set_ylabel(labels[measure])
        for line in row[0].lines:
            if np.nanmax(np.asarray(line.get_ydata(), float)) < row[0].get_ylim()[0]:
                line.set_label(f"{line.get_label()} (below)")
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    _legend(figure, grid[0, 0])
    pictures.save(figure, path)


def _draw_simple(axes: Axes, ahead: np.ndarray, r2: dict[str, Any], f: int) -> None:
    """R² `[S, P, F, K + 1]` of each simple model on field `f`: the first policy's mean."""
    for (name, label), dashes in zip(baselines.NAMES.items(), (":", "-.", "--"), strict=True):
        mean = np.array(r2[name], float)[:, 0, f].mean(axis=0)
        axes.plot(ahead, mean, dashes, color="#999999", linewidth=1.2, label=label, zorder=1)


def _draw(
    axes: Axes,
    x: np.ndarray,
    means: np.ndarray,
    margins: Sequence[np.ndarray],
    policies: Sequence[str],
) -> None:
    """Draws a mean with its margin for each policy, `[P, len(x)]`; the first one on top."""
    for i, (name, mean, margin) in enumerate(zip(policies, means, margins, strict=True)):
        style = {"color": COLOURS[i % len(COLOURS)], "zorder": 3 - i / len(policies)}
        dashes = ("-", "--", ":")[i // len(COLOURS) % 3]
        axes.plot(x, mean, dashes, linewidth=2.2 if i == 0 else 1.4, label=name, **style)
        if np.isfinite(margin).any():
            axes.fill_between(x, mean - margin, mean + margin, alpha=0.15, linewidth=0, **style)


def _mark_stops(
    axes: Axes, steps: np.ndarray, means: np.ndarray, counts: np.ndarray, scale: float
) -> None:
    """Dots on the curves `means` `[P, U]` at the mean of the samples taken, `counts` `[S, P]`."""
    for i, (mean, count) in enumerate(zip(means, counts.mean(axis=0), strict=True)):
        if count < steps[-1]:
            place = (count / scale, np.interp(count, steps, mean))
            colour = COLOURS[i % len(COLOURS)]
            axes.plot(*place, "o", color=colour, markersize=7, markeredgecolor="white", zorder=4)


def _logarithmic(axes: Axes, low: float, high: float) -> None:
    axes.set_yscale("log", nonpositive="clip")
    tick_values = ticks(low, high)
    axes.set_yticks(tick_values, [f"{tick:g}" for tick in tick_values])
    axes.set_yticks([], minor=True)
    axes.set_ylim(low, high)


def _panels(rows: int, fields: Sequence[str], title: str) -> tuple[Figure, np.ndarray]:
    """A grid of axes, a column for each field, that share the y axis of their row."""
    size = (max(3.6 * len(fields) + 0.6, 6.4), 2.5 * rows + 0.9)
    layout = ConstrainedLayoutEngine(wspace=0.04)  # room for the last number of an axis
    figure = pictures.titled_figure(size, title, layout, size=11)
    grid = figure.subplots(rows, len(fields), squeeze=False, sharey="row")
    for axes, name in zip(grid[0], fields, strict=True):
        axes.set_title(name.replace("_", " "), loc="left", size=11)
    return figure, grid


def _means(seeds: int, of_what: str = "") -> str:
    if seeds == 1:
        return "one seed"
    return f"mean of {quantity(seeds, 'seeds')}" + f", 95 % interval{of_what}" * (seeds > 2)


def _legend(figure: Figure, axes: Axes) -> None:
    """Below, in as many columns as fit."""
    handles = axes.get_legend_handles_labels()[0]
    columns = min(len(handles), max(3, int(figure.get_figwidth() // 1.3)))
    pictures.legend_below(figure, handles, columns)
