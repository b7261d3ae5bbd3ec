"""Observed channels over time, with what a model forecast of them, and the inputs.

Axes: T steps, n channels, m inputs, K steps ahead.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from train.host.numbers import quantity
from train.host.showing import pictures
from train.host.showing.pictures import BLUE, GREY, VERMILLION
from train.vector_field.data.recordings import Data
from train.vector_field.data.step_time import StepTime

CHANNELS = 6
"""Channels that are shown at most: those that vary most."""
STEPS = 300
"""Newest steps that are shown at most."""
AHEAD = 10
"""Steps between a forecast that is shown and what it was made from."""
FLAT = 0.1
"""Share of the range of all inputs below which one of them would seem not to change."""


def channels(
    path: str | Path,
    observed: np.ndarray,
    forecasts: np.ndarray,
    inputs: np.ndarray,
    time: StepTime,
    title: str,
    ahead: int = AHEAD,
    begin: int = 0,
    inputs_name: str = "inputs",
    circular: Sequence[int] = (),
) -> None:
    """Draws a row for each channel of `observed` `[T, n]`, and one for the `inputs` `[T, m]`.

    NaN is missing.

    `forecasts` `[T, K + 1, n]` were made after each step, of that step and up to K later; those of
    `ahead` steps later are drawn where they are of. `time` is that of a step, and `begin` of the
    record's steps come before these; the legend calls the inputs `inputs_name`, and the row shows
    them as `in_one_scale` does; `circular` are the channels that are angles, in rad. Writes a PNG,
    whole or not at all. Raises ValueError for fewer steps than a forecast needs.
    """
    expected = turn_near(align_forecasts(forecasts, ahead), observed, circular)
    newest_steps = slice(max(ahead, len(observed) - STEPS), None)
    chosen_channels = most_varied(observed[newest_steps])
    moments = time.length * (begin + np.arange(len(observed)))[newest_steps]
    figure = pictures.titled_figure((9, 0.9 * len(chosen_channels) + 1.9), title)
    rows = figure.subplots(len(chosen_channels) + 1, 1, sharex=True)
    for axes, channel in zip(rows, chosen_channels, strict=False):
        axes.plot(
            moments, observed[newest_steps, channel], color=GREY, linewidth=0.9, label="observed"
        )
        label = f"forecast {quantity(ahead, 'steps')} before"
        axes.plot(moments, expected[newest_steps, channel], color=BLUE, linewidth=1.3, label=label)
        r2 = r2_score(observed[newest_steps, channel], expected[newest_steps, channel])
        _name(axes, f"channel {channel}", f"R² {r2:.2f}")
    inputs, scale_text = in_one_scale(inputs[newest_steps])
    inputs_name += scale_text
    for k, component in enumerate(inputs.T):
        style = {"color": VERMILLION, "linewidth": 1.0, "alpha": 1 / (1 + k)}
        label = inputs_name if k == 0 else None
        rows[-1].step(moments, component, where="post", label=label, **style)
    _name(rows[-1], "inputs", "")
    rows[-1].set_xlabel(time.axis())
    handles = [*rows[0].get_legend_handles_labels()[0], *rows[-1].get_legend_handles_labels()[0]]
    pictures.legend_below(figure, handles, 3)
    pictures.save(figure, path)


def align_forecasts(forecasts: np.ndarray, ahead: int) -> np.ndarray:
    """`[T, n]`: what `forecasts` `[T, K + 1, n]` said of each step `ahead` steps before; of the
    first ones nothing, NaN."""
    steps, horizon = forecasts.shape[0], forecasts.shape[1] - 1
    if not 0 <= ahead <= horizon or steps <= ahead:
        raise ValueError(
            f"forecasts of {steps} steps, each {horizon} ahead, hold none {ahead} steps ahead"
        )
    nothing = np.full((ahead, forecasts.shape[2]), np.nan)
    return np.concatenate([nothing, forecasts[: steps - ahead, ahead]])


def turn_near(expected: np.ndarray, observed: np.ndarray, circular: Sequence[int]) -> np.ndarray:
    """Expected angles, of the channels `circular` of `[T, n]`, by whole turns next to what was
    observed: of 3.1 and -3.1 rad the error is 0.08."""
    turned, angles = expected.copy(), list(circular)
    turns = np.round((expected - observed)[:, angles] / (2 * np.pi))
    turned[:, angles] -= 2 * np.pi * turns
    return turned


def in_one_scale(inputs: np.ndarray) -> tuple[np.ndarray, str]:
    """Inputs `[T, m]` that one axis can show, and what the legend adds of that.

    A light of 0 or 1 beside a temperature of 290 to 300 would be a flat line, and so would that.
    """
    low, span = inputs.min(axis=0), np.ptp(inputs, axis=0)
    moves = span > 0
    if (span[moves] >= FLAT * np.ptp(inputs)).all():
        return inputs, ""
    return np.where(moves, (inputs - low) / np.where(moves, span, 1), 0), ", each over its range"


def most_varied(observed: np.ndarray) -> list[int]:
    """The channels `[T, n]` of largest variance, at most `CHANNELS` of them, in their order."""
    is_finite = np.isfinite(observed)
    count = np.maximum(is_finite.sum(0), 1)
    mean = np.where(is_finite, observed, 0).sum(0) / count
    variance = (
        np.where(is_finite, (observed - mean) ** 2, 0).sum(0) / count
    )  # 0 if nothing was observed
    return sorted(np.argsort(-variance, kind="stable")[:CHANNELS].tolist())


def r2_score(observed: np.ndarray, expected: np.ndarray) -> float:
    """R² of one channel, `[T]` each, where it was observed; NaN for one that does not vary."""
    is_finite = np.isfinite(observed) & np.isfinite(expected)
    observed, expected = observed[is_finite], expected[is_finite]
    if not len(observed):
        return float("nan")
    total = np.sum((observed - observed.mean()) ** 2)
    return float(1 - np.sum((observed - expected) ** 2) / total) if total > 0 else float("nan")


def _name(axes: Axes, name: str, right: str) -> None:
    axes.set_ylabel(name, rotation=0, ha="right", va="center", size=9)
    axes.text(1.005, 0.5, right, transform=axes.transAxes, size=8, va="center")
    axes.tick_params(labelsize=7)
    axes.locator_params(axis="y", nbins=3)
    axes.spines[["top", "right"]].set_visible(False)


def shown_part(data: Data, held_out: Data) -> tuple[int, slice]:
    """Which episode of all, and which steps of it, pictures show: the longest that was held out.

    Of several the last. A shorter one may have no forecast to be shown.
    """
    place = -1 - int(np.argmax(held_out.lengths[::-1]))
    end = int(data.lengths[place])
    return place, slice(end - int(held_out.lengths[place]), end)
