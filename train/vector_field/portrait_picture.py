"""Pictures of phase portraits: the field, the data, fixed points by kind, cycles.

One state is drawn as its displacement, two as a plane, more as the plane of the first two principal
components of the visited states.

Letters: T steps, d dimensions of the state, G points of a grid along an axis, P points of a loop.
"""

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxrl.dynamics.phase_portrait.fixed_points import Step
from jaxrl.dynamics.phase_portrait.portrait import Portrait
from jaxrl.dynamics.phase_portrait.summary import number, words
from train.host import pictures
from train.host.pictures import BLUE, GREY, VERMILLION
from train.vector_field.step_time import StepTime

GREEN, PURPLE = "#009e73", "#aa5ca0"
PER_AXIS = 41
"""G."""
SIDE = 5.6
"""Width of a panel, in inches."""
MARKERS = {
    "stable point": ("o", "full"),
    "unstable point": ("o", "none"),
    "stable node": ("o", "full"),
    "unstable node": ("o", "none"),
    "stable spiral": ("s", "full"),
    "unstable spiral": ("s", "none"),
    "saddle": ("D", "left"),
    "saddle-focus": ("s", "left"),
    "centre": ("P", "none"),
    "neutral point": ("X", "none"),
}
"""Shape and filling of a fixed point: filled attracts, empty repels, half does both; squares turn."""


class Plane(NamedTuple):
    """What of a state is drawn: its coordinates along one or two axes through a middle."""

    middle: np.ndarray  # [d]
    axes: np.ndarray  # [k, d], k = 1 or 2, of length 1
    names: tuple[str, ...]  # [k]

    def project(self, states: np.ndarray) -> np.ndarray:
        """Coordinates `[..., k]` of states `[..., d]`."""
        return (states - self.middle) @ self.axes.T


def draw(
    path: str | Path,
    step: Step,
    trajectories: Sequence[np.ndarray],
    portraits: Sequence[Portrait],
    time: StepTime | None = None,
    title: str = "Phase portrait",
) -> None:
    """Draws a panel for each portrait of `step`, with the visited states over the field.

    `trajectories` are `[T, d]` each; lines break at NaN. Writes a PNG, whole or not at all.
    """
    states = np.concatenate([np.asarray(x, float) for x in trajectories])
    states = states[np.isfinite(states).all(1)]
    plane = plane_of(states)
    count = len(portraits)
    shape = {1: (1, 1), 2: (1, 2), 3: (1, 3)}.get(count, (-(-count // 3), 3))
    figure = pictures.titled((max(6.4, SIDE * shape[1]), 0.5 + 5.2 * shape[0]), title)
    panels = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True).ravel()
    panel = _line_panel if states.shape[1] == 1 else _plane_panel
    handles: dict[str, Any] = {}
    for axes, portrait in zip(panels, portraits, strict=False):
        panel(axes, step, plane, states, trajectories, portrait)
        _mark_fixed_points(axes, plane, portrait)
        text = "\n".join(textwrap.wrap(words(portrait, partial(duration, time or StepTime())), 62))
        lead = f"{input_name(portrait)}\n" if count > 1 else ""
        axes.set_title(lead + text, loc="left", size=10)
        drawn, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, drawn, strict=True))
    for axes in panels[count:]:
        axes.set_axis_off()
    pictures.legend_below(figure, list(handles.values()))
    pictures.save(figure, path)


def duration(time: StepTime, steps: float) -> str:
    """So many steps, and how long they are where that is known: "16.6 steps = 0.83 s"."""
    text = f"{number(steps)} steps"
    if time == StepTime():
        return text
    return f"{text} = {number(steps * time.length)} {time.unit}".rstrip()


def input_name(portrait: Portrait) -> str:
    """The constant input of a portrait."""
    if not len(portrait.inputs):
        return "no input"
    values = ", ".join(number(value) for value in portrait.inputs)
    return f"input held at {values}"


def plane_of(states: np.ndarray) -> Plane:
    """What of states `[T, d]` is drawn: all of one or two coordinates, else principal components.

    A component points to where its largest loading is positive.
    """
    d = states.shape[1]
    if d <= 2:
        names = ("state",) if d == 1 else ("state 1", "state 2")
        return Plane(np.zeros(d), np.eye(d), names)
    middle = states.mean(0)
    _, spread, axes = np.linalg.svd(states - middle, full_matrices=False)
    axes = axes[:2] * np.sign(axes[[0, 1], np.abs(axes[:2]).argmax(1)])[:, None]
    shares = 100 * spread[:2] ** 2 / np.sum(spread**2)
    ranks = ("first", "second")
    names = (f"{r} principal component ({s:.0f} %)" for r, s in zip(ranks, shares, strict=True))
    return Plane(middle, axes, tuple(names))


def displacement_on(step: Step, plane: Plane, points: np.ndarray, u: np.ndarray) -> np.ndarray:
    """What a step adds `[..., k]` to the states at coordinates `[..., k]`, within the plane."""
    states = plane.middle + points @ plane.axes
    flat = jnp.asarray(states.reshape(-1, states.shape[-1]), jnp.result_type(float))
    after = jax.vmap(step, in_axes=(0, None))(flat, jnp.asarray(u, flat.dtype))
    return (np.asarray(after - flat, float) @ plane.axes.T).reshape(points.shape)


def limits(coordinates: np.ndarray) -> tuple[float, float]:
    """The range of coordinates, a little wider."""
    low, high = float(coordinates.min()), float(coordinates.max())
    return low - 0.06 * (high - low), high + 0.06 * (high - low)


def _places(plane: Plane, states: np.ndarray, portrait: Portrait) -> np.ndarray:
    """Coordinates `[N, k]` of all that must be in the picture."""
    shown = [states, *(point.state[None] for point in portrait.fixed_points)]
    return plane.project(np.concatenate([*shown, *(cycle.loop for cycle in portrait.cycles)]))


def _plane_panel(
    axes: Axes,
    step: Step,
    plane: Plane,
    states: np.ndarray,
    trajectories: Sequence[np.ndarray],
    portrait: Portrait,
) -> None:
    places = _places(plane, states, portrait)
    x, y = (np.linspace(*limits(places[:, i]), PER_AXIS) for i in range(2))
    points = np.stack(np.meshgrid(x, y), -1)  # [G, G, 2], rows of one height
    field = displacement_on(step, plane, points, portrait.inputs)
    field = np.where(np.isfinite(field), field, 0.0)
    style: dict[str, Any] = {"color": "#b5b5b5", "linewidth": 0.7, "arrowsize": 0.8, "zorder": 1}
    axes.streamplot(x, y, field[..., 0], field[..., 1], density=1.3, **style)
    label: str | None = "visited states"
    for trajectory in trajectories:
        axes.plot(*plane.project(trajectory).T, color=BLUE, lw=0.6, alpha=0.35, label=label)
        label = None
    if states.shape[1] == 2:
        for i, (color, dashes) in enumerate(((GREEN, (0, (5, 2))), (PURPLE, (0, (1, 1.5))))):
            line = {"colors": color, "linestyles": [dashes], "linewidths": 1.3, "zorder": 3}
            if np.ptp(np.sign(field[..., i])) > 0:
                axes.contour(x, y, field[..., i], [0.0], **line)
                axes.plot([], [], color=color, ls=dashes, lw=1.3, label=f"state {i + 1} rests")
    _draw_attractors(axes, plane, portrait)
    axes.set(xlabel=plane.names[0], ylabel=plane.names[1], xlim=x[[0, -1]], ylim=y[[0, -1]])


def _draw_attractors(axes: Axes, plane: Plane, portrait: Portrait) -> None:
    label: str | None = "limit cycle"
    for cycle in portrait.cycles:
        closed = np.concatenate([cycle.loop, cycle.loop[:1]])
        axes.plot(*plane.project(closed).T, color=VERMILLION, lw=2.4, zorder=4, label=label)
        label = None
    if portrait.aperiodic is not None:
        orbit = plane.project(portrait.aperiodic.orbit)
        name = "aperiodic orbit, without noise"
        axes.plot(*orbit.T, color=VERMILLION, lw=0.7, zorder=4, label=name)


def _line_panel(
    axes: Axes,
    step: Step,
    plane: Plane,
    states: np.ndarray,
    trajectories: Sequence[np.ndarray],
    portrait: Portrait,
) -> None:
    """Draws the displacement of one state, and where the data lie as a histogram at the bottom."""
    del trajectories
    x = np.linspace(*limits(_places(plane, states, portrait)[:, 0]), 401)
    y = displacement_on(step, plane, x[:, None], portrait.inputs)[:, 0]
    low, high = limits(y[np.isfinite(y)])
    counts, edges = np.histogram(states[:, 0], 60, x[[0, -1]])
    height = 0.3 * (high - low)
    bottom = low - height
    tops = bottom + 0.9 * height * counts / max(1, counts.max())
    label = "visited states (density)"
    axes.stairs(tops, edges, baseline=bottom, fill=True, color=BLUE, alpha=0.25, label=label)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    axes.plot(x, y, color=BLUE, linewidth=1.8, zorder=2, label="displacement per step")
    for place in np.linspace(x[0], x[-1], 19)[1:-1]:
        value = np.interp(place, x, y)
        marker = ">" if value > 0 else "<"
        axes.plot(place, 0, marker, color=GREY, markersize=4, zorder=2)
    axes.set(xlabel=plane.names[0], ylabel="displacement per step", xlim=x[[0, -1]])
    axes.set_ylim(bottom, high)


def _mark_fixed_points(axes: Axes, plane: Plane, portrait: Portrait) -> None:
    is_line = len(plane.axes) == 1
    for point in reversed(portrait.fixed_points):
        place = plane.project(point.state)
        at = (float(place[0]), 0.0 if is_line else float(place[1]))
        axes.add_line(marker_of(point.kind, at))
    for kind in dict.fromkeys(point.kind for point in portrait.fixed_points):
        axes.add_line(marker_of(kind, None))


def marker_of(kind: str, at: tuple[float, float] | None) -> Line2D:
    """The marker of a fixed point at a place, or None for one of the legend alone."""
    shape, filling = MARKERS[kind]
    face = {"full": "black", "none": "white", "left": "black"}[filling]
    style: dict[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 1.3, "markersize": 8.5}
    if filling == "left":
        style |= {"fillstyle": "left", "markerfacecoloralt": "white"}
    x, y = ([], []) if at is None else ([at[0]], [at[1]])
    style |= {"marker": shape, "markerfacecolor": face, "linestyle": "none", "zorder": 6}
    return Line2D(x, y, label=kind if at is None else "_", **style)


Duration = Callable[[float], str]
