"""The scores of learners of goals, with intervals: as numbers, a table and a picture.

Axes: G goals, R learners of each, C checkpoints.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import ArrayLike
from rich.table import Table

from train.goals.tasks import Progress
from train.host.numbers import quantity
from train.host.showing.pictures import BLUE, GREY, VERMILLION, save, titled_figure

RESAMPLES = 1000
LOWER, UPPER = 25, 974  # indices of the 95 % interval in the sorted values of the resamples
STYLES = (  # colours safe for the colour-blind (Okabe & Ito 2008); dashes for controls
    (GREY, ":"),
    (GREY, "--"),
    (BLUE, "-"),
    ("#000000", "-."),
    (VERMILLION, "-"),
    ("#009e73", (0, (5, 1))),
    ("#cc79a7", "-"),
)


@dataclass(frozen=True)
class Arm:
    """One way to learn, and the arm that it is compared with."""

    name: str
    potential: str = ""
    """The distance that shapes the rewards, "learned" or "true"; empty: no shaping."""
    options: bool = False
    """Whether exploration follows options."""
    optimistic: bool = False
    """Whether initial values are optimistic, as shaping needs them."""
    control: str = ""
    """The arm without help that has the same initial values."""


def summaries(arms: Sequence[Arm], arm_progress: Sequence[Progress]) -> dict[str, dict[str, Any]]:
    """Every measure of every arm, with its 95 % interval, from progress `[G, R, ...]`."""
    progress_by_name = {
        arm.name: progress for arm, progress in zip(arms, arm_progress, strict=True)
    }
    return {arm.name: _summary(arm, progress_by_name) for arm in arms}


def _summary(arm: Arm, progress_by_name: dict[str, Progress]) -> dict[str, Any]:
    progress = progress_by_name[arm.name]
    gained = None
    if arm.control:  # paired by goal and random numbers, which narrows the interval
        gained = interval(progress.area - progress_by_name[arm.control].area, mean)
    return {
        "control": arm.control or None,
        "area": interval(progress.area, mean),
        "gained": gained,
        "first": interval(progress.first, median),
        "success": interval(progress.success[..., -1], mean),
        "length": interval(progress.length[..., -1], mean),
        "steps": progress.steps.tolist(),
        "success_curve": interval(progress.success, mean),
        "length_curve": interval(progress.length, mean),
        "area_of_each": progress.area.tolist(),
        "first_of_each": progress.first.tolist(),
    }


def mean(x: np.ndarray) -> np.ndarray:
    """Over goals and learners, `[G, R, ...]` to `[...]`."""
    return x.mean(axis=(0, 1), dtype=float)


def median(x: np.ndarray) -> np.ndarray:
    """The lower median of all values; unlike a mean it allows infinite values."""
    return np.sort(x, axis=None)[(x.size - 1) // 2]


def interval(x: ArrayLike, statistic: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    """A statistic of `x` `[G, R, ...]` with its 95 % bootstrap interval: value, low, high.

    Goals and learners are resampled independently, since learners of different goals share their
    random numbers and features (the pigeonhole bootstrap, Owen 2007; it is conservative).
    """
    rng, sample = np.random.default_rng(0), np.asarray(x)
    goals, learners = sample.shape[:2]

    def resample() -> np.ndarray:
        rows, columns = rng.integers(goals, size=goals), rng.integers(learners, size=learners)
        return statistic(sample[rows][:, columns])

    values = np.sort([resample() for _ in range(RESAMPLES)], axis=0)
    estimate = {"value": statistic(sample), "low": values[LOWER], "high": values[UPPER]}
    return {name: np.asarray(value, float).tolist() for name, value in estimate.items()}


def seed_label(seeds: Sequence[int]) -> str:
    """The end of a title that tells of a picture of the first of several seeds; else empty."""
    return f"; seed {seeds[0]}, the first of {len(seeds)}" if len(seeds) > 1 else ""


def table(content: dict[str, Any], row: dict[str, Any]) -> Table:
    """A row per arm; `content` is that of `eval.json`, `row` that of one seed in it."""
    learners = (
        f"{quantity(len(content['goals']), 'goals')} x {quantity(content['learners'], 'learners')}"
    )
    away = quantity(content["distance"], "moves")
    title = f"{content['maze']}: {learners}, starts {away} away or more"
    title += f", seed {row['seed']}" if len(content["seeds"]) > 1 else ""
    caption = "mean (steps: median) and 95 % interval; gained: against no help, same optimism"
    reached, planned = content["checkpoints_reached"], content["checkpoints_planned"]
    if reached < planned:
        caption += f"\nStopped after {reached} of {planned} checkpoints: all is of these."
    result = Table(title=title, caption=caption)
    level = f"steps to {content['level']:.0%}"
    result.add_column("arm", no_wrap=True)
    for heading in ("area", "gained", level, "final success", "final length"):
        result.add_column(heading, justify="right")
    for name, arm in row["arms"].items():
        gained = arm["gained"]
        result.add_row(
            name,
            interval_text(arm["area"], "{:.3f}"),
            interval_text(gained, "{:+.3f}") if gained else "",
            interval_text(arm["first"], "{:,.0f}", arm["steps"]),
            interval_text(arm["success"], "{:.3f}"),
            interval_text(arm["length"], "{:.1f}"),
        )
    return result


def interval_text(estimate: dict[str, float], form: str, checkpoints: Sequence[int] = ()) -> str:
    """`0.913` and below it its interval, if it has a width.

    A number of steps before the first of the `checkpoints` or after the last is shown as a bound.
    """

    def number(value: float) -> str:
        if not np.isfinite(value):
            return f"> {form.format(checkpoints[-1])}"
        is_bound = len(checkpoints) > 0 and value <= checkpoints[0]
        return "≤ " * is_bound + form.format(value)

    value, low, high = (number(estimate[name]) for name in ("value", "low", "high"))
    return value if low == value == high else f"{value}\n{low} to {high}"


def draw(content: dict[str, Any], path: Path) -> None:
    """Success of the first seed over steps, a line with its band for every arm.

    `content` is that of `eval.json`.
    """
    goals, learners = len(content["goals"]), quantity(content["learners"], "learners")
    learners = f"{quantity(goals, 'goals')}, {learners} of each"
    title = f"{content['maze']}: {learners}; mean and 95 % interval"
    title += seed_label([row["seed"] for row in content["seeds"]])
    figure = titled_figure((8.5, 4.2), title)
    axes = figure.subplots()
    arms = content["seeds"][0]["arms"]
    for (name, arm), (color, dashes) in zip(arms.items(), STYLES, strict=False):
        steps, curve = arm["steps"], arm["success_curve"]
        axes.fill_between(steps, curve["low"], curve["high"], color=color, alpha=0.15, linewidth=0)
        axes.plot(steps, curve["value"], linestyle=dashes, color=color, linewidth=2, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("environment steps of each learner (logarithmic)")
    axes.set_ylabel("success of greedy episodes")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    figure.legend(loc="outside right center", frameon=False, handlelength=3)
    save(figure, path)
