"""The learning curve of a run, from its record (see `train.host.files.metrics_file`).

Also what other pictures share with it: titles, axes, legends, curves with their intervals.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from train.host.files import series
from train.host.files.metrics_file import read_metrics
from train.host.files.rows import scalars
from train.host.files.run_directory import RunDirectory
from train.host.files.whole_files import replacement_file
from train.host.numbers import digits_text, quantity
from train.host.scoring.scores import read_evaluation

Row = dict[str, Any]
Curve = tuple[np.ndarray, np.ndarray]  # rising x [K], y [K]
Marker = tuple[float, float, float]  # mean and interval, NaN where there is none

BLUE, VERMILLION, GREY = "#0072b2", "#d55e00", "#666666"  # safe for the colour-blind
STEPS = ((1e9, "billions"), (1e6, "millions"), (1e3, "thousands"), (1, ""))
TIMES = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


def draw_curve(directory: Path, score: str, title: str, unit: str = "environment steps") -> Path:
    """Writes `learning_curve.png` into a run directory, from its record and its `eval.json`."""
    path = directory / "learning_curve.png"
    rows, evaluation = read_metrics(directory), read_evaluation(directory)
    greedy = RunDirectory.open(directory).config()["config"]["run"].get("evaluation_greedy", True)
    learning_curve(rows, path, score, title, evaluation, unit, greedy)
    return path


def learning_curve(
    rows: Sequence[Row],
    path: str | Path,
    score: str,
    title: str,
    evaluation: dict[str, Any] | None = None,
    unit: str = "environment steps",
    greedy: bool = True,
) -> None:
    """Draws `score`, of finished episodes or of the agent, against steps and against time.

    A thin line for each seed, their mean and, from three seeds on, its 95 % interval; with dots,
    where there are, the scores of games played while training (see `train.host.scoring.best`), of
    several seeds their mean. `evaluation` is the content of `eval.json`: its score is drawn where
    the curves end or, of agents that have learned more since, where they were then; without rows
    only the legend has it. Chunks without a score, as no episode ended, are left out. `unit` says
    what a step is, `greedy` how the games while training were played. Writes a PNG, whole or not at
    all. Raises ValueError if there are rows, but none with this score.
    """
    score_names = {name: None for row in rows for name in scalars(row)}
    if rows and score not in score_names:
        raise ValueError(f"score {score!r} is not in the record; it has {', '.join(score_names)}")
    figure = titled_figure((9, 4), title)
    by_steps, by_time = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    final = [] if evaluation is None else final_scores(evaluation, score)
    label = unit + " of each seed" * (len({row["seed"] for row in rows}) > 1)
    games_label = f"{'greedy' if greedy else 'sampled'}, while training"
    marked = final, None if evaluation is None else evaluation.get("updates")
    _panel(by_steps, label, STEPS, rows, "steps", score, *marked, games_label)
    _panel(by_time, "training time", TIMES, rows, "seconds", score, *marked, games_label)
    by_steps.set_ylabel(score, parse_math=False)
    legend_below(figure, by_steps.get_legend_handles_labels()[0])
    save(figure, path)


def titled_figure(
    figsize: tuple[float, float], title: str, layout: Any = "constrained", **style: Any
) -> Figure:
    """A figure with a bold title at its upper left corner; `style` is that of the title.

    A title that is wider than the figure has several lines.
    """
    figure = Figure(figsize=figsize, dpi=150, layout=layout)
    place = {"x": 0.01, "ha": "left", "weight": "bold"}
    figure.suptitle(title, wrap=True, parse_math=False, **place, **style)
    return figure


def legend_below(figure: Figure, handles: Sequence[Any], columns: int = 0) -> None:
    """A legend under all axes, where it hides no curve, in so many columns; 0: as many as fit."""
    place = {"loc": "outside lower left", "frameon": False}
    for count in [columns] if columns else range(len(handles), 0, -1):
        legend = figure.legend(handles=handles, ncols=count, **place)
        if count in (1, columns) or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def curves(rows: Sequence[Row], score: str, x: str) -> list[Curve]:
    """The known scores of each seed over the field `x`; seeds without any are left out.

    Rows keep their order where `x` is equal. A short chunk is taken together with the one before it
    (`series.merge_short_chunks`).
    """
    rows_by_seed: dict[int, list[Row]] = {}
    for row in rows:
        rows_by_seed.setdefault(row["seed"], []).append(row)
    seed_curves = []
    for seed in sorted(rows_by_seed):
        seed_rows = sorted(rows_by_seed[seed], key=lambda row: row["steps"])
        group = "finished" if any(score in row["finished"] for row in seed_rows) else "agent"
        values = np.array([scalars(row).get(score) for row in seed_rows], float)
        values = series.merge_short_chunks(seed_rows, values, series.join_function(group, score))
        finite = np.isfinite(values)
        if finite.any():
            seed_curves.append(
                (np.array([row[x] for row in seed_rows], float)[finite], values[finite])
            )
    return seed_curves


def evaluated_curves(rows: Sequence[Row], x: str) -> list[Curve]:
    """The scores of each seed in games while training, over the field `x`, as `curves` has them.

    They are those of `evaluated` in the rows that have it (see `train.host.scoring.best`).
    """
    evaluated_rows = [row for row in rows if "evaluated" in row]
    means = [
        {"finished": {}, "agent": {"mean": row["evaluated"]["mean"]}} for row in evaluated_rows
    ]
    return curves([row | mean for row, mean in zip(evaluated_rows, means, strict=True)], "mean", x)


def mean_curve(lines: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(x, mean, margin)`, each `[K]`, over the range of x that all seeds cover, if there is one.

    Seeds are interpolated linearly. The margin is half the 95 % interval of the mean, NaN below
    three seeds.
    """
    x = np.unique(np.concatenate([line[0] for line in lines]))
    first, last = max(line[0][0] for line in lines), min(line[0][-1] for line in lines)
    x = x[(first <= x) & (x <= last)]
    y = np.stack([np.interp(x, *line) for line in lines])  # [S, K]
    return x, y.mean(0), interval(y)


def draw_mean(axes: Axes, lines: Sequence[Curve], *format_: str, **style: Any) -> None:
    """Draws the mean of seeds; where no x is one of all of them, each seed by itself.

    The line is solid, or a dot if it is a single point, unless `format_` says otherwise.
    """
    x, mean, _ = mean_curve(lines)
    for line in [(x, mean)] if len(x) else lines:
        axes.plot(*line, *(format_ or (line_style(line[0]),)), **style)
        style = {**style, "label": None}  # one entry of the legend


def interval(samples: np.ndarray) -> np.ndarray:
    """Half the 95 % Student interval of the mean over the first axis; NaN below three samples."""
    count = len(samples)
    if count < 3:
        return np.full(samples.shape[1:], np.nan)
    from scipy import stats  # here, as it takes a second, and most commands draw no interval

    return stats.t.ppf(0.975, count - 1) * stats.sem(samples)


def final_scores(evaluation: dict[str, Any], score: str) -> list[Marker]:
    """The markers of an evaluation: one for each seed, or from three seeds on one for their mean.

    The interval is that of the mean over seeds, or of the mean over the games of a seed; a score
    that is one number has none.
    """
    measures = [row[score] for row in evaluation["seeds"]]
    summaries = [x if isinstance(x, dict) else {"mean": x} for x in measures]
    summaries = [x for x in summaries if x.get("mean") is not None]
    if len(summaries) < 3:
        return [(x["mean"], x.get("low", np.nan), x.get("high", np.nan)) for x in summaries]
    means = np.array([x["mean"] for x in summaries])
    mean, margin = float(means.mean()), float(interval(means))
    return [(mean, mean - margin, mean + margin)]


def evaluation_place(rows: Sequence[Row], x: str, updates: int | None) -> float:
    """The field `x` where agents were scored after so many updates, of the last just behind it.

    It is there, too, where the updates are not known, or have no row; NaN without rows.
    """
    places = [row[x] for row in rows if row.get("updates") == updates]
    is_last = bool(rows) and updates == rows[-1].get("updates")
    if places and not is_last:
        return float(max(places))
    return 1.02 * max((row[x] for row in rows), default=np.nan)


def _panel(
    axes: Axes,
    label: str,
    units: Sequence[tuple[float, str]],
    rows: Sequence[Row],
    x: str,
    score: str,
    final: Sequence[Marker],
    updates: int | None,
    games_label: str,
) -> None:
    """Draws all curves over one x axis, in a unit that suits its range."""
    end = max((row[x] for row in rows), default=0)
    place = evaluation_place(rows, x, updates)
    scale = style_axes(axes, label, units, end)
    lines = [(line / scale, y) for line, y in curves(rows, score, x)]
    score_curves = [(line / scale, y) for line, y in evaluated_curves(rows, x)]
    if lines:
        draw_lines(axes, lines)
    if score_curves:
        style = {"color": VERMILLION, "markersize": 3, "label": games_label}
        draw_mean(axes, score_curves, "o-", **style)
    if not lines and not score_curves:
        say_empty(axes, no_score(rows, bool(final)))
    _mark(axes, place / scale, final)
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)


def style_axes(axes: Axes, label: str, units: Sequence[tuple[float, str]], end: float) -> float:
    """Sets label, grid and an x axis from 0 to just beyond `end`; returns the divisor of x."""
    scale, unit = next((u for u in units if end >= 2 * u[0]), units[-1])
    axes.set_xlabel(f"{label} ({unit})" if unit else label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=3)
    axes.set_xlim(0, 1.05 * end / scale or 1)
    if units is STEPS and not unit:  # there is no half a step
        axes.locator_params(axis="x", integer=True)
    return scale


def say_empty(axes: Axes, text: str = "no score yet") -> None:
    axes.text(0.5, 0.5, text, color=GREY, ha="center", transform=axes.transAxes)


def no_score(rows: Sequence[Row], is_evaluated: bool = False) -> str:
    """Why there is no score in the rows; of an evaluated run without any, they were lost."""
    if is_evaluated and not rows:
        return "the record has no rows"
    has_none = rows and all(row.get("episodes") == 0 for row in rows)
    return "no score: no episode has ended" if has_none else "no score yet"


def draw_lines(axes: Axes, lines: Sequence[Curve]) -> None:
    """Seeds as thin lines, their mean as a thick one; a single point as a dot."""
    if len(lines) == 1:
        axes.plot(*lines[0], line_style(lines[0][0]), color=BLUE, label="training")
        return
    for i, line in enumerate(lines):
        label = f"training, {quantity(len(lines), 'seeds')}" if i == 0 else None
        axes.plot(*line, line_style(line[0]), color=BLUE, linewidth=0.7, alpha=0.45, label=label)
    x, mean, margin = mean_curve(lines)
    if len(x):
        axes.plot(x, mean, line_style(x), color=BLUE, linewidth=2, label="their mean")
    if np.isfinite(margin).any():
        band = {"color": BLUE, "alpha": 0.15, "linewidth": 0, "label": "95 % interval of the mean"}
        axes.fill_between(x, mean - margin, mean + margin, **band)


def line_style(x: np.ndarray) -> str:
    return "." if len(x) == 1 else "-"


def _mark(axes: Axes, x: float, final: Sequence[Marker]) -> None:
    """Marks the evaluation, with its numbers in the legend; for NaN they are there alone."""
    for mean, low, high in final:
        text = f"evaluation: {digits_text(mean)}"
        if np.isfinite(low):
            text += f" ({digits_text(low)} to {digits_text(high)})"
        spread = np.array([[mean - low], [high - mean]])
        style = {"fmt": "D", "color": VERMILLION, "markersize": 5, "capsize": 3, "zorder": 3}
        axes.errorbar(x, mean, spread, label=text, clip_on=False, **style)


def save(figure: Figure, path: str | Path) -> None:
    """Replaces a PNG in one step."""
    with replacement_file(path) as file:
        figure.savefig(file, format="png")
