"""Panels of a phase portrait: streamlines, nullclines, visited states, cycles; or one curve.

Letters: T steps, N places, d dimensions of the state, k of them drawn, G points along an axis.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from jaxrl.dynamics.phase_portrait.fixed_points import Step
from jaxrl.dynamics.phase_portrait.portrait import Portrait
from train.host.showing.pictures import BLUE, GREY, VERMILLION

GREEN, PURPLE = "#009e73", "#aa5ca0"
PER_AXIS = 41
"""G."""
SHOWN = 3000
"""States that are drawn, at most, the first of each trajectory: more would be a blot."""


class Plane(NamedTuple):
    """What of a state is drawn: its coordinates along one or two axes through a middle."""

    middle: np.ndarray  # [d]
    axes: np.ndarray  # [k, d], k = 1 or 2, of length 1
    names: tuple[str, ...]  # [k]

    def project(self, states: np.ndarray) -> np.ndarray:
        """Coordinates `[..., k]` of states `[..., d]`."""
        return (states - self.middle) @ self.axes.T


def plane_of(states: np.ndarray) -> Plane:
    """What of states `[T, d]` is drawn: all of one or two coordinates, else principal components.

    A component points to where its largest loading is positive.
    """
    d = states.shape[1]
    if d <= 2:
        names = ("state",) if d == 1 else ("state 0", "state 1")
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


def plane_panel(
    axes: Axes,
    step: Step,
    plane: Plane,
    trajectories: Sequence[np.ndarray],
    places: np.ndarray,
    portrait: Portrait,
) -> None:
    """Draws the field where the coordinates `places` `[N, 2]` are, the data and the cycles."""
    x, y = (np.linspace(*limits(places[:, i]), PER_AXIS) for i in range(2))
    points = np.stack(np.meshgrid(x, y), -1)  # [G, G, 2], rows of one height
    field = displacement_on(step, plane, points, portrait.inputs)
    field = np.where(np.isfinite(field), field, 0.0)
    style: dict[str, Any] = {"color": "#b5b5b5", "linewidth": 0.7, "arrowsize": 0.8, "zorder": 1}
    axes.streamplot(x, y, field[..., 0], field[..., 1], density=1.3, **style)
    total = sum(map(len, trajectories))
    for trajectory in trajectories:
        count = math.ceil(len(trajectory) * min(1.0, SHOWN / total))
        line = plane.project(np.asarray(trajectory[:count], float))
        axes.plot(*line.T, color=BLUE, lw=0.6, alpha=0.3)
    name = "visited states" if total <= SHOWN else "visited states (some of them)"
    axes.plot([], [], color=BLUE, lw=0.8, alpha=0.6, label=name)
    if len(plane.middle) == 2:
        for i, (color, dashes) in enumerate(((GREEN, (0, (5, 2))), (PURPLE, (0, (1, 1.5))))):
            line = {"colors": color, "linestyles": [dashes], "linewidths": 1.3, "zorder": 3}
            if np.ptp(np.sign(field[..., i])) > 0:
                axes.contour(x, y, field[..., i], [0.0], **line)
                axes.plot([], [], color=color, ls=dashes, lw=1.3, label=f"nullcline of state {i}")
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


def line_panel(
    axes: Axes,
    step: Step,
    plane: Plane,
    states: np.ndarray,
    places: np.ndarray,
    portrait: Portrait,
) -> None:
    """Draws the displacement of one state, and where the data lie as a histogram at the bottom."""
    x = np.linspace(*limits(places[:, 0]), 401)
    y = displacement_on(step, plane, x[:, None], portrait.inputs)[:, 0]
    low, high = limits(y[np.isfinite(y)])
    counts, edges = np.histogram(states[:, 0], 60, (x[0], x[-1]))
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
