"""Pictures of a fit, for print: law of spawning, profiles, events, simulated colonies."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special

from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.events import Events
from envs.durotaxis.units import Units
from jaxrl.numerics.max_likelihood import DROP, Estimate
from train.durotaxis.tracks import fitting
from train.durotaxis.tracks.check import Check, band
from train.durotaxis.tracks.fitting import Fit
from train.durotaxis.tracks.goodness import replicate
from train.durotaxis.tracks.report.numbers import (
    Number,
    event_numbers,
    hill_band,
    spawning_numbers,
    unit_factors,
)
from train.durotaxis.tracks.tables import Table
from train.host.showing.pictures import BLUE, GREY, VERMILLION, legend_below, save

PRINT = 300  # dots per inch
PALE = "#cfe2f0"
SYMBOLS = {"gamma": "γ", "alpha": "α", "theta": "θ", "kappa": "κ"}
BINS = 8


def draw(directory: Path, table: Table, fit: Fit, check: Check, units: Units) -> list[Path]:
    """Writes all pictures of a fit into a directory."""
    names = ("spawning.png", "profiles.png", "events.png", "check.png")
    paths = [directory / name for name in names]
    draw_spawning(paths[0], table, fit, units)
    draw_profiles(paths[1], fit, units)
    draw_events(paths[2], table, fit, units)
    draw_check(paths[3], check, units)
    return paths


def draw_spawning(path: Path, table: Table, fit: Fit, units: Units) -> None:
    """Distances over stiffness with the fitted curve; their distribution; that of directions."""
    figure = Figure(figsize=(10, 3.4), dpi=PRINT, layout="constrained")
    by_stiffness, by_distance, by_angle = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    data, rng = table.displacements, np.random.default_rng(0)
    distance, angle = replicate(data, fit.laws.spawning, fit.law, rng)
    _draw_curve(by_stiffness, table, fit, distance, units)
    _draw_histogram(by_distance, units.length * data.distance, units.length * distance)
    by_distance.set(
        xlabel=f"distance of children ({units.length_name})", ylabel="births", xlim=(0, None)
    )
    mean = float(fit.laws.spawning.theta) if fit.law == "directed" else 0.0
    turn = lambda a: np.rad2deg(np.angle(np.exp(1j * (a - mean))))
    _draw_histogram(by_angle, turn(data.angle), turn(angle))
    about = "θ" if fit.law == "directed" else "x"
    by_angle.set(xlabel=f"direction, from {about} (degrees)", ylabel="births")
    handles, labels = by_stiffness.get_legend_handles_labels()
    more, more_labels = by_distance.get_legend_handles_labels()
    del labels, more_labels
    legend_below(figure, handles + more)
    save(figure, path)


def _draw_curve(axes: Axes, table: Table, fit: Fit, replicates: np.ndarray, units: Units) -> None:
    """The births, and where the law expects them."""
    data = table.displacements
    stiffness, distance = units.stiffness * data.stiffness, units.length * data.distance
    axes.plot(stiffness, distance, ".", color=GREY, markersize=3, alpha=0.6, label="births seen")
    grid = np.linspace(0.0, 1.05 * float(data.stiffness.max()), 200)[1:].astype(np.float32)
    curve, low, high = (units.length * x for x in hill_band(fit, data, grid))
    x = units.stiffness * grid
    if fit.law == "directed":
        label = "95 % of what the data allow"
        axes.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0, label=label)
        axes.plot(x, curve, color=BLUE, linewidth=1.8, label="γ / (1 + (α / I)²) + noise, fitted")
    order = np.argsort(data.stiffness)
    groups = np.array_split(order, max(1, min(BINS, len(order) // 12)))
    middle = [float(np.median(stiffness[g])) for g in groups]
    for quantile, style in ((5, ":"), (95, ":")):
        ends = [float(np.percentile(replicates[:, g], quantile)) * units.length for g in groups]
        label = "90 % of births simulated" if quantile == 5 else None
        axes.plot(middle, ends, style, color=VERMILLION, linewidth=1.2, label=label)
    top = 1.1 * max(
        float(np.percentile(distance, 99.5)),
        float(np.nanmax(curve)) if fit.law == "directed" else 0,
    )
    axes.set(xlim=(0, float(x[-1])), ylim=(0, top))
    axes.set_xlabel(units.stiffness_label + " under the parent")
    axes.set_ylabel(f"distance of children ({units.length_name})")
    _tidy(axes)


def _draw_histogram(axes: Axes, values: np.ndarray, replicates: np.ndarray) -> None:
    """What was seen, and the 90 % band of simulated counts."""
    low = min(values.min(), np.percentile(replicates, 0.1))
    high = max(values.max(), np.percentile(replicates, 99.9))
    edges = np.linspace(low, high, int(np.clip(np.sqrt(len(values)), 8, 24)) + 1)
    counts = np.array([np.histogram(row, edges)[0] for row in replicates])
    ends = np.percentile(counts, [5, 95], axis=0)
    low_end, high_end = (np.append(end, end[-1]) for end in ends)
    axes.fill_between(
        edges,
        low_end,
        high_end,
        step="post",
        color=VERMILLION,
        alpha=0.25,
        linewidth=0,
        label="90 % of simulated samples",
    )
    axes.stairs(
        np.histogram(values, edges)[0], edges, color="black", linewidth=1.3, label="sample seen"
    )
    axes.set_ylim(bottom=0)
    _tidy(axes)


def draw_profiles(path: Path, fit: Fit, units: Units) -> None:
    """How far the log-likelihood falls as each parameter of spawning leaves its estimate."""
    numbers = spawning_numbers(fit, units)
    factors = unit_factors(units)
    columns = min(4, len(numbers))
    rows = -(-len(numbers) // columns)
    figure = Figure(figsize=(10, 2.5 * rows + 0.5), dpi=PRINT, layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes, (name, number) in zip(panels.flat, numbers.items(), strict=False):
        index = spawning.NAMES.index(name)
        points = fit.spawning.profile.value[index]
        value = factors[name] * np.array([fitting.natural(name, x, fit.law) for x in points])
        drop = fit.spawning.profile.drop[index]
        _draw_profile(axes, value, drop, number, is_log=name in spawning.POSITIVE)
        unit = f" ({number.unit})" if number.unit else ""
        axes.set_xlabel(SYMBOLS.get(name, name) + unit)
    for axes in panels.flat[len(numbers) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("fall of the log-likelihood")
    legend_below(figure, panels.flat[0].get_legend_handles_labels()[0])
    save(figure, path)


def _draw_profile(
    axes: Axes, value: np.ndarray, drop: np.ndarray, number: Number, is_log: bool
) -> None:
    """One profile within a little more than its interval."""
    order = np.argsort(value)
    value, drop = value[order], np.maximum(drop[order], 0)
    near = drop <= 3 * DROP
    value, drop = value[near], drop[near]
    axes.plot(value, drop, color=BLUE, linewidth=1.6, label="profile log-likelihood")
    axes.axhline(DROP, color=GREY, linestyle="--", linewidth=1, label="limit of the 95 % interval")
    low, high = np.clip([number.low, number.high], value.min(), value.max())
    axes.axvspan(low, high, color=PALE, linewidth=0, zorder=0, label="95 % interval")
    axes.axvline(number.value, color=VERMILLION, linewidth=1.4, label="estimate")
    if is_log and value.max() > 8 * value.min() > 0:
        axes.set_xscale("log")
    axes.set(xlim=(value.min(), value.max()), ylim=(0, 2.5 * DROP))
    _tidy(axes)


def draw_events(path: Path, table: Table, fit: Fit, units: Units) -> None:
    """Coefficients of deaths and births with intervals, and shares seen beside fitted ones."""
    figure = Figure(figsize=(10, 5.4), dpi=PRINT, layout="constrained")
    panels = figure.subplots(2, 3, width_ratios=(1.3, 1, 1))
    rows = (
        ("deaths", table.deaths, fit.deaths, fit.death_causes),
        ("births", table.births, fit.births, fit.birth_causes),
    )
    for axes_row, (kind, data, estimate, causes) in zip(panels, rows, strict=True):
        _draw_coefficients(axes_row[0], event_numbers(estimate, causes, units), kind)
        shown_causes = (*causes, *(x for x in events.NAMES[1:] if x not in causes))[:2]
        for axes, cause in zip(axes_row[1:], shown_causes, strict=True):
            _draw_shares(axes, data, estimate, cause, units)
            axes.set_ylabel(f"{kind} per cell and frame")
    coefficients = panels[0 if fit.death_causes else 1, 0]  # a law without causes has none
    handles = [axes.get_legend_handles_labels()[0] for axes in (coefficients, panels[0, 1])]
    legend_below(figure, [*handles[0], *handles[1]])
    save(figure, path)


def _draw_coefficients(axes: Axes, numbers: dict[str, Number], kind: str) -> None:
    """A line for each cause; the constant is another matter."""
    numbers = {name: number for name, number in numbers.items() if name != "constant"}
    for y, number in enumerate(numbers.values()):
        span = max(1.0, abs(number.value))
        low, high = (
            end if np.isfinite(end) else number.value + sign * 2 * span
            for end, sign in ((number.low, -1), (number.high, 1))
        )
        label = "95 % interval" if y == 0 else None
        axes.plot([low, high], [y, y], color=BLUE, linewidth=2, label=label)
        axes.plot(
            number.value, y, "o", color=BLUE, markersize=5, label="estimate" if y == 0 else None
        )
        for end, at, marker in ((number.low, low, "<"), (number.high, high, ">")):
            if not np.isfinite(end):
                axes.plot(at, y, marker, color=BLUE, markersize=6)
    labels = [f"{name}\n{number.meaning}" for name, number in numbers.items()]
    axes.set_yticks(range(len(numbers)), labels, size=8)
    axes.set_ylim(max(len(numbers), 1) - 0.5, -0.5)
    axes.axvline(0, color=GREY, linestyle="--", linewidth=1)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(f"change in the log-odds of {kind}")
    _tidy(axes)
    axes.grid(False)


def _draw_shares(axes: Axes, data: Events, estimate: Estimate, cause: str, units: Units) -> None:
    """The share of cells that it befell per frame, in groups of equal size by a cause, in units."""
    column = data.covariates[:, events.NAMES.index(cause)]
    odds = data.covariates @ estimate.theta
    fitted = special.expit(odds)
    order = np.argsort(column, kind="stable")
    groups = [g for g in np.array_split(order, BINS) if len(g)]
    x = np.array([column[g].mean() for g in groups])
    scale = {"age": events.AGE, "crowding": events.CROWD, "stiffness": units.stiffness}
    x = scale.get(cause, 1.0) * (np.exp2(x) if cause in ("crowding", "stiffness") else x)
    seen_share = np.array([data.happened[g].mean() for g in groups])
    expected = np.array([fitted[g].mean() for g in groups])
    size = np.array([len(g) for g in groups])
    count = seen_share * size
    low = special.betaincinv(np.maximum(count, 1e-9), size - count + 1, 0.05)
    high = special.betaincinv(count + 1, np.maximum(size - count, 1e-9), 0.95)
    spread = np.abs(np.stack([seen_share - low, high - seen_share]))
    axes.errorbar(
        x,
        seen_share,
        spread,
        fmt="o",
        color="black",
        markersize=4,
        capsize=2,
        label="share seen, 90 % interval",
    )
    axes.plot(x, expected, color=VERMILLION, linewidth=1.8, label="fitted law")
    axes.set_xlabel(AXES.get(cause, f"{units.stiffness_label} under the cell"))
    axes.set_ylim(bottom=0)
    _tidy(axes)


AXES = {
    "rear": "rank: foremost -½, rearmost ½",
    "age": "age (frames)",
    "crowding": "cells in the colony",
}


def draw_check(path: Path, check: Check, units: Units) -> None:
    """Simulated colonies and the recorded one: cells, front, middle and rear over time."""
    figure = Figure(figsize=(10, 4.0), dpi=PRINT, layout="constrained")
    count_axes, place_axes = figure.subplots(1, 2)
    frame = np.arange(len(check.recorded.cells))
    for axes, name, colour, factor in (
        (count_axes, "cells", BLUE, 1.0),
        (place_axes, "front", BLUE, units.length),
        (place_axes, "middle", GREY, units.length),
        (place_axes, "rear", VERMILLION, units.length),
    ):
        low, middle, high = factor * band(getattr(check.simulated, name))
        label = f"{name}, 90 % of simulated"
        axes.fill_between(frame, low, high, color=colour, alpha=0.18, linewidth=0, label=label)
        label = "median of simulated"
        axes.plot(frame, middle, color=colour, linewidth=1.0, linestyle="--", label=label)
        recorded_curve = factor * getattr(check.recorded, name)
        axes.plot(frame, recorded_curve, color=colour, linewidth=1.8, label=f"{name}, recorded")
    count_axes.set(xlabel="frame", ylabel="cells", ylim=(0, None))
    place_axes.set(xlabel="frame", ylabel=f"way to the goal ({units.length_name})")
    for axes in (count_axes, place_axes):
        axes.set_xlim(0, frame[-1])
        _tidy(axes)
    handles = [x.get_legend_handles_labels()[0] for x in (count_axes, place_axes)]
    legend_below(figure, [*handles[0], *handles[1]], 4)
    save(figure, path)


def _tidy(axes: Axes) -> None:
    """The look of all axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, labelsize=9)
