"""The picture of a first look: rates over time, a stretch of it, inputs, rates, pairs, spectrum.

Axes: N steps of all episodes in a row, n channels, m inputs.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from train.host.numbers import quantity
from train.host.showing import pictures
from train.host.showing.pictures import BLUE, GREY, VERMILLION
from train.vector_field.data.step_time import StepTime
from train.vector_field.look.facts import SEGMENT, Spectrum, Table, correlations
from train.vector_field.pictures.series import in_one_scale

COLUMNS = 600
"""Pixels of the map of rates along time."""
STRETCH = 200
"""Steps that are shown one by one."""
INPUTS = 4
"""Inputs that are drawn at most."""


def draw(
    path: str | Path,
    name: str,
    table: Table,
    standard: np.ndarray,
    spectrum: Spectrum | None,
    time: StepTime,
) -> None:
    """Writes the picture; `standard` `[N, n]` are the channels with mean 0 and variance 1."""
    figure = pictures.titled_figure((12, 9.5), f"What is in {name}")
    grid = figure.add_gridspec(4, 3, height_ratios=(2.2, 0.7, 1.8, 1.9))
    whole = figure.add_subplot(grid[0, :])
    draw_map(whole, table, standard, time)
    draw_inputs(figure.add_subplot(grid[1, :], sharex=whole), table, time)
    draw_stretch(figure.add_subplot(grid[2, :]), table, standard, time)
    draw_sizes(figure.add_subplot(grid[3, 0]), table)
    draw_pairs(figure.add_subplot(grid[3, 1]), standard)
    draw_spectrum(figure.add_subplot(grid[3, 2]), spectrum, time)
    pictures.save(figure, path)


def draw_map(axes: Axes, table: Table, standard: np.ndarray, time: StepTime) -> None:
    """Means of every channel over time, in units of its deviation; grey where all are missing."""
    size = -(-len(standard) // COLUMNS)
    edges = np.arange(0, len(standard), size)
    counts = np.add.reduceat(~np.isnan(table.y), edges, axis=0)
    means = np.add.reduceat(standard, edges, axis=0) / np.maximum(counts, 1)
    means = np.where(counts > 0, means, np.nan).T  # [n, columns]
    limit = float(np.nanquantile(np.abs(means), 0.99)) if np.isfinite(means).any() else 1.0
    end = time.length * len(edges) * size
    axes.set_facecolor("#cccccc")
    image = axes.imshow(
        means,
        aspect="auto",
        interpolation="nearest",
        cmap="RdBu_r",
        vmin=-max(limit, 1e-3),
        vmax=max(limit, 1e-3),
        extent=(0, end, len(means) - 0.5, -0.5),
    )
    for start in table.starts[1:]:
        axes.axvline(time.length * start, color="black", linewidth=0.6)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01, fraction=0.03)
    bar.set_label("deviations", size=8)
    _name(axes, f"means of {size} steps" if size > 1 else "every step", "", "channel")


def draw_inputs(axes: Axes, table: Table, time: StepTime) -> None:
    """The inputs over the same time, each in units of its largest value, or over its range where
    one would seem not to change."""
    moments, inputs = time.length * np.arange(len(table.u)), table.u[:, :INPUTS]
    largest = np.abs(inputs).max(0)
    values, scale_text = in_one_scale(inputs / np.where(largest > 0, largest, 1))
    for k, u in enumerate(inputs.T):
        label = f"input {k}, up to {largest[k]:.3g}"
        if scale_text:
            label = f"input {k}, {u.min():.4g} to {u.max():.4g}"
        axes.step(moments, values[:, k], where="post", linewidth=0.8, label=label)
    axes.legend(frameon=False, fontsize=7, ncols=INPUTS, loc="lower left", bbox_to_anchor=(0, 1.0))
    _name(axes, "", time.axis(), "inputs")


def draw_stretch(axes: Axes, table: Table, standard: np.ndarray, time: StepTime) -> None:
    """A typical stretch step by step: events as a raster, numbers as lines."""
    part = typical_stretch(table, standard)
    moments = time.length * np.arange(part.start, part.stop)
    for channel, is_count in enumerate(table.is_count):
        if is_count:
            y = table.y[part, channel]
            marks = moments[y > 0]
            sizes = 6 * np.minimum(y[y > 0], 4)
            axes.scatter(marks, np.full(len(marks), channel), sizes, BLUE, marker="|", linewidths=1)
        else:
            y = table.y[part, channel]
            size = max(float(np.nanmax(np.abs(y - _median(y)), initial=0.0)), 1e-30)
            axes.plot(moments, channel - 0.45 * (y - _median(y)) / size, color=BLUE, linewidth=0.8)
    axes.set_ylim(len(table.is_count) - 0.5, -0.5)
    axes.margins(x=0)
    title = f"{quantity(len(moments), 'steps')} one by one; larger marks: several events in a bin"
    _name(axes, title if table.is_count.any() else title.split(";")[0], time.axis(), "channel")


def _median(y: np.ndarray) -> float:
    return float(np.median(y[~np.isnan(y)])) if np.isfinite(y).any() else 0.0


def typical_stretch(table: Table, standard: np.ndarray) -> slice:
    """The steps of a stretch that varies as usual, within one episode; the longest is all of it
    where none is so long."""
    energy = np.concatenate([[0.0], np.cumsum((standard**2).mean(1))])
    size = min(STRETCH, int(table.lengths.max()))
    starts = np.concatenate(
        [
            begin + np.arange(0, length - size + 1, STRETCH // 2)
            for begin, length in zip(table.starts, table.lengths, strict=True)
        ]
    )
    sums = energy[starts + size] - energy[starts]
    begin = int(starts[np.argsort(sums)[len(sums) // 2]])
    return slice(begin, begin + size)


def draw_sizes(axes: Axes, table: Table) -> None:
    """How large values are: mean counts of channels, or the values of numbers."""
    if 2 * table.is_count.sum() >= len(table.is_count):
        counted = table.y[:, table.is_count]
        observed = ~np.isnan(counted)
        means = np.where(observed, counted, 0).sum(0) / np.maximum(observed.sum(0), 1)
        axes.hist(means, bins=min(30, max(10, len(means) // 2)), color=BLUE)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        _name(axes, "mean counts of channels", "events a step", "channels")
        return
    values = table.y[~np.isnan(table.y)]
    axes.hist(values, bins=60, color=BLUE, log=True)
    _name(axes, "values of all channels", "value", "how many")


def draw_pairs(axes: Axes, standard: np.ndarray) -> None:
    """Correlations of channels."""
    pairs = correlations(standard)
    np.fill_diagonal(pairs, np.nan)
    limit = max(float(np.nanmax(np.abs(pairs), initial=0.0)), 0.05)
    image = axes.imshow(pairs, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, fraction=0.046)
    _name(axes, "correlations", "channel", "channel")


def draw_spectrum(axes: Axes, spectrum: Spectrum | None, time: StepTime) -> None:
    """The median power of channels by frequency, and the middle half of them."""
    names = {"": "cycles per unit of time", "steps": "cycles per step", "s": "Hz"}
    unit = names.get(time.unit, f"cycles per {time.unit}")
    if spectrum is None:
        pictures.say_empty(axes, "no episode is long enough")
    elif np.isnan(spectrum.power).all():
        pictures.say_empty(axes, "no channel varies")
    else:
        frequency = spectrum.frequency / time.length
        varying = spectrum.power[:, ~np.isnan(spectrum.power[0])]
        low, middle, high = np.quantile(varying, (0.25, 0.5, 0.75), axis=1)
        axes.fill_between(frequency, low, high, color=BLUE, alpha=0.2, linewidth=0)
        axes.loglog(frequency, middle, color=BLUE, linewidth=1.2)
        best = int(np.argmax(middle))
        period = time.length / spectrum.frequency[best]
        if 2 <= best < len(frequency) - 1:  # slower ones are drifts
            axes.axvline(frequency[best], color=VERMILLION, linewidth=0.8)
            text = f"period {period:.3g} {time.unit}".rstrip()
            axes.text(0.03, 0.05, text, color=VERMILLION, size=8, transform=axes.transAxes)
        axes.axhline(1, color=GREY, linewidth=0.6)  # what is not correlated over time
    _name(axes, f"power, segments of up to {SEGMENT} steps", unit, "over white noise")


def _name(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", size=9)
    axes.set_xlabel(x, size=8)
    axes.set_ylabel(y, size=8)
    axes.tick_params(which="both", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
