"""`advice.png`: where planned inputs lead, on a map of what is uncertain, and what they teach.

Axes: H steps, m inputs, d latent dimensions, G points of the grid along each axis.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patheffects import Normal, Stroke

from train.host.showing import pictures
from train.host.showing.pictures import GREY, VERMILLION
from train.vector_field.data.step_time import StepTime
from train.vector_field.fitted_models.fitted_model import FittedModel
from train.vector_field.pictures import maps
from train.vector_field.pictures.curves import COLOURS
from train.vector_field.pictures.series import in_one_scale

PATHS = 200
"""States of the record that are drawn, at most."""


def draw(
    path: Path,
    arrays: dict[str, np.ndarray],
    gain: float,
    quiet_gain: float,
    model: FittedModel,
    box: np.ndarray,
) -> None:
    """Draws `advice.npz` and the newest filtered states of the record; writes a PNG.

    `box` `[2, m]` are the smallest and the largest input allowed.
    """
    figure = pictures.titled_figure((11, 4.2), "Inputs to try next")
    map_axes, input_axes, gain_axes = figure.subplots(1, 3, width_ratios=(1.25, 1, 0.9))
    if model.dims == 1:
        _line(map_axes, arrays, model)
    else:
        bar = figure.colorbar(_map(map_axes, arrays, model.trail), ax=map_axes, aspect=25, pad=0.02)
        bar.set_label("standard deviation of a velocity", size=8)
        bar.ax.tick_params(labelsize=7)
        tick_values = maps.ticks(*bar.mappable.get_clim())
        bar.set_ticks(tick_values, labels=[f"{tick:g}" for tick in tick_values], minor=False)
        bar.set_ticks([], minor=True)
    draw_inputs(input_axes, arrays["inputs"], box, model.time)
    name = "least" if arrays["inputs_without"].any() else "none"
    _gains(gain_axes, arrays["random_nats"], gain, quiet_gain, name)
    pictures.legend_below(figure, map_axes.get_legend_handles_labels()[0])
    pictures.save(figure, path)


def draw_inputs(axes: Axes, planned: np.ndarray, box: np.ndarray, time: StepTime) -> None:
    """Draws the `planned` inputs `[H, m]`, each over the range that `box` allows it where these are
    unlike."""
    moments = time.length * np.arange(len(planned) + 1)
    low, high = np.asarray(box, float)
    scale_text = in_one_scale(np.stack([low, high]))[1]
    for i, component in enumerate(planned.T):
        values, label = np.append(component, component[-1]), f"input {i}"
        if scale_text:
            values = (values - low[i]) / (high[i] - low[i] or 1)
            label += f", {low[i]:.4g} to {high[i]:.4g}"
        axes.step(moments, values, where="post", color=COLOURS[i % 8], label=label)
    if not scale_text:
        axes.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set(xlabel=time.axis("time from now"), xlim=(0, moments[-1]))
    axes.set_title(f"planned inputs{scale_text}", loc="left", size=10)
    if planned.shape[1] <= 8:
        axes.legend(frameon=False, fontsize=8)


def _map(axes: Axes, arrays: dict[str, np.ndarray], trail: np.ndarray):
    """The field over its uncertainty, with the record and the predicted paths."""
    axis, field, deviation = (arrays[name] for name in ("axis", "field", "deviation"))
    low, high = maps.uncertainty_range(deviation)
    values, norm = np.maximum(deviation.T, low), LogNorm(low, high)
    mesh = axes.pcolormesh(axis, axis, values, cmap=maps.UNCERTAIN, norm=norm, shading="nearest")
    if np.any(field[..., :2]):
        style = {"color": "white", "linewidth": 0.5, "arrowsize": 0.6, "density": 0.9}
        axes.streamplot(axis, axis, field[..., 0].T, field[..., 1].T, **style)
    if len(trail):
        axes.plot(
            *trail[-PATHS:, :2].T, color="black", linewidth=0.6, alpha=0.6, label="the record"
        )
    outline_effects = [Stroke(linewidth=3.2, foreground="black"), Normal()]
    style = {"color": "white", "linewidth": 1.8, "path_effects": outline_effects, "zorder": 4}
    axes.plot(*arrays["states_without"][:, :2].T, label=_quiet_label(arrays), **style)
    axes.plot(
        *arrays["states"][:, :2].T, color=VERMILLION, linewidth=2.2, zorder=5, label="advised"
    )
    axes.plot(*arrays["states"][0, :2], "o", color=VERMILLION, zorder=6, label="now")
    axes.set(xlabel="latent 0", ylabel="latent 1", aspect="equal")
    axes.set(xlim=(axis[0], axis[-1]), ylim=(axis[0], axis[-1]))
    axes.set_title("predicted path on what is uncertain", loc="left", size=10)
    return mesh


def _line(axes: Axes, arrays: dict[str, np.ndarray], model: FittedModel) -> None:
    """The field of a single dimension within two standard deviations, and the predicted paths."""
    axis, field, deviation = arrays["axis"], arrays["field"][:, 0], arrays["deviation"]
    edges = field - 2 * deviation, field + 2 * deviation
    axes.fill_between(axis, *edges, color="#cccccc", linewidth=0, label="field ± 2 sd")
    axes.plot(axis, field, color=GREY, linewidth=1.0)
    axes.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
    on_field = lambda z: (z[:, 0], np.interp(z[:, 0], axis, field))
    if len(model.trail):
        style = {"color": "black", "markersize": 5, "alpha": 0.3, "label": "the record"}
        bottom = np.full(len(model.trail[-PATHS:]), 0.03)
        axes.plot(
            *(model.trail[-PATHS:, 0], bottom, "|"), transform=axes.get_xaxis_transform(), **style
        )
    style = {"color": "black", "linewidth": 4.5, "label": _quiet_label(arrays), "zorder": 4}
    axes.plot(*on_field(arrays["states_without"]), **style)
    style = {"color": VERMILLION, "linewidth": 2.2, "label": "advised", "zorder": 5}
    axes.plot(*on_field(arrays["states"]), **style)
    axes.plot(*on_field(arrays["states"][:1]), "o", color=VERMILLION, zorder=6, label="now")
    axes.set(xlabel="latent 0", ylabel="velocity", xlim=(axis[0], axis[-1]))
    axes.set_title("predicted path on what is uncertain", loc="left", size=10)


def _quiet_label(arrays: dict[str, np.ndarray]) -> str:
    """What the path that the advice is compared with is called."""
    return "least inputs allowed" if arrays["inputs_without"].any() else "without inputs"


def _gains(axes: Axes, random: np.ndarray, gain: float, quiet_gain: float, quiet: str) -> None:
    """A histogram of what random inputs teach, and lines for the advice and for `quiet` inputs."""
    axes.hist(random, bins=24, color="#bbbbbb")
    axes.axvline(quiet_gain, color=GREY, linestyle="--", linewidth=1.6)
    axes.axvline(gain, color=VERMILLION, linewidth=2.2)
    top = axes.get_ylim()[1]
    axes.set_ylim(0, 1.25 * top)
    # Each at a height of its own, as both may be at the same place.
    labels = (gain, 1.22, "advised", VERMILLION), (quiet_gain, 1.12, quiet, GREY)
    for x, height, text, colour in labels:
        side = "right" if x > np.mean(axes.get_xlim()) else "left"
        axes.text(x, height * top, f" {text} {x:.2f} ", color=colour, ha=side, va="top", size=8)
    axes.set(xlabel="expected information (nats)", ylabel="random plans")
    axes.set_title("what they teach", loc="left", size=10)
