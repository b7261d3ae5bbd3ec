"""Pictures of phase portraits: the field, the data, fixed points by kind, cycles.

One state is drawn as its displacement, two as a plane, more as the plane of the first two principal
components of the visited states.

Letters: T steps, d dimensions of the state.
"""

import textwrap
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxrl.dynamics.phase_portrait.fixed_points import Step
from jaxrl.dynamics.phase_portrait.portrait import Portrait
from jaxrl.dynamics.phase_portrait.summary import number, words
from train.host.showing import pictures
from train.vector_field.data.step_time import StepTime
from train.vector_field.pictures.portrait_panels import Plane, line_panel, plane_of, plane_panel

SIDE = 5.6
"""Width of a panel, in inches."""
OUTER = 0.002
"""Share of the visited states beyond each edge of the picture, so that few do not make it small."""
LETTERS = 66
"""Of a line over a panel."""
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
"""Shape and filling of a fixed point: filled attracts, empty repels; around squares states turn."""


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
    Raises ValueError where there is nothing to draw.
    """
    if not len(portraits) or not len(trajectories):
        raise ValueError("nothing to draw: expected a portrait or more, and a trajectory or more")
    states = np.concatenate([np.asarray(x, float) for x in trajectories])
    states = states[np.isfinite(states).all(1)]
    plane = plane_of(states)
    places = _places(plane, states, portraits)
    rows, columns = -(-len(portraits) // 3), min(3, len(portraits))
    figure = pictures.titled_figure((max(6.4, SIDE * columns), 0.5 + 5.2 * rows), title)
    shares = {"sharex": True, "sharey": states.shape[1] > 1}
    panels = figure.subplots(rows, columns, squeeze=False, **shares).ravel()
    for axes, portrait in zip(panels, portraits, strict=False):
        if states.shape[1] == 1:
            line_panel(axes, step, plane, states, places, portrait)
        else:
            plane_panel(axes, step, plane, trajectories, places, portrait)
        _mark_fixed_points(axes, plane, portrait)
        _say(axes, portrait, time or StepTime(), len(portraits) > 1)
        if shares["sharey"]:
            axes.label_outer()  # all have one range
    for axes in panels[len(portraits) :]:
        axes.set_axis_off()
    pictures.legend_below(figure, _handles(panels))
    pictures.save(figure, path)


def _say(axes: Axes, portrait: Portrait, time: StepTime, names_input: bool) -> None:
    """Says over a panel what is in it."""
    text = words(portrait, partial(duration, time)).replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(text, LETTERS)
    axes.set_title("\n".join([input_name(portrait)] * names_input + lines), loc="left", size=10)


def _handles(panels: Iterable[Axes]) -> list[Any]:
    """What the legend explains, each once: lines, then the kinds of fixed points."""
    handles = {}
    for axes in panels:
        drawn, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, drawn, strict=True))
    return sorted(handles.values(), key=lambda handle: handle.get_label() in MARKERS)


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


def _places(plane: Plane, states: np.ndarray, portraits: Sequence[Portrait]) -> np.ndarray:
    """Coordinates `[N, k]` of all that must be in the picture: of the states but the outermost."""
    coordinates = plane.project(states)
    low, high = np.quantile(coordinates, (OUTER, 1 - OUTER), axis=0)
    points = [point.state[None] for portrait in portraits for point in portrait.fixed_points]
    loops = [cycle.loop for portrait in portraits for cycle in portrait.cycles]
    orbits = [x.aperiodic.orbit for x in portraits if x.aperiodic is not None]
    others = [plane.project(x) for x in (*points, *loops, *orbits)]
    return np.concatenate([low[None], high[None], *others])


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
