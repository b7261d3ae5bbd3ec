"""Curves of what gradient steps minimise and multipliers raise: `losses.png`.

Rows are those of `metrics.jsonl`, whose "agent" holds the numbers of
`jaxrl.spectral.learning.allo`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from train.allo.drawings import curves
from train.allo.drawings.maps import check_shape
from train.host.showing import pictures
from train.host.showing.pictures import GREY, STEPS, Row

PANELS = {  # heading and whether the axis is logarithmic
    "loss": ("loss", False),
    "spread": ("graph term, Σ E[(u(s) − u(s′))²]", False),
    "constraint_error": ("orthogonality error, Σ (E[uⱼuₖ] − δⱼₖ)²", True),
    "barrier": ("barrier b, weight of squared errors", False),
    "grad_norm": ("norm of the gradient", True),
}
"""Measures of a row, in the order of the panels; the duals are a panel of their own."""


def loss_curves(
    rows: Sequence[Row], path: str | Path, truth: np.ndarray | None, factor: float, title: str
) -> None:
    """Draws loss, graph term, orthogonality error, duals, barrier and gradient norm over steps.

    Duals are drawn beside those that the true λ `[d]` of `truth` imply, -`factor` λ, where it is
    known; `factor` is 4 times the weight of the graph term. Raises ValueError for another number
    of true λ than there are duals.
    """
    figure = pictures.titled_figure((12, 6.6), f"Loss and multipliers: {title}")
    panels = figure.subplots(2, 3).ravel()
    for axes, (name, (heading, is_log)) in zip(np.delete(panels, 3), PANELS.items(), strict=True):
        _draw_measure(axes, rows, name, is_log)
        axes.set_title(heading, loc="left", size=10)
    _draw_duals(panels[3], rows, truth, factor)
    handles = panels[0].get_legend_handles_labels()[0]
    if truth is not None:
        handles.append(Line2D([], [], color=GREY, linestyle="--", label="duals of the true λ"))
    pictures.legend_below(figure, handles)
    pictures.save(figure, path)


def _draw_measure(axes: Axes, rows: Sequence[Row], name: str, is_log: bool) -> None:
    """One number of every seed over steps."""
    scale = _dress(axes, rows)
    lines = [(x / scale, y) for x, y in pictures.curves(rows, name, "steps")]
    if not lines:
        pictures.say_empty(axes)
        return
    pictures.draw_lines(axes, lines)
    if is_log and min(y.min() for _, y in lines) > 0:
        axes.set_yscale("log")


def _draw_duals(axes: Axes, rows: Sequence[Row], truth: np.ndarray | None, factor: float) -> None:
    """The diagonal duals, on the right as the λ that they imply."""
    axes.set_title("duals β, on the right λ = −β / " + f"{factor:g}", loc="left", size=10)
    scale, components = _dress(axes, rows), curves.component_curves(rows, "eigenvalues")
    if not any(components):
        pictures.say_empty(axes)
        return
    colours = curves.component_colours(len(components))
    for lines, colour in zip(components, colours, strict=True):
        curves.draw_component(axes, [(x / scale, -factor * y) for x, y in lines], colour)
    if truth is not None:
        check_shape("truth", truth, (len(components),))
        end = max(row["steps"] for row in rows) / scale
        levels = -factor * np.asarray(truth)
        axes.hlines(levels, 0, end, list(colours), "--", linewidth=0.9, alpha=0.8)
    implied = lambda beta: -np.asarray(beta) / factor
    axes.secondary_yaxis("right", functions=(implied, lambda x: -np.asarray(x) * factor))


def _dress(axes: Axes, rows: Sequence[Row]) -> float:
    end = max((row["steps"] for row in rows), default=0)
    return pictures.style_axes(axes, curves.label(rows), STEPS, end)
