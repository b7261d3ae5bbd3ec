"""What a report says of a run: how to repeat it, its record, its scores, its episodes."""

import base64
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import jax
import numpy as np

from jaxrl.types import AgentState
from train.host.command_line.repetition import WHERE, beginning, training_command
from train.host.files import metrics_file, series
from train.host.files.run_directory import BEST, RunDirectory
from train.host.files.whole_files import finite_or_text
from train.host.plain_config import differences, flatten, plain
from train.host.program import Run
from train.host.scoring import games
from train.host.scoring.scores import have_score, read_evaluation, scored_games
from train.host.showing import pictures
from train.host.showing.episodes import Bars, Episode, Scene
from train.host.showing.outcomes import COLOURS
from train.host.showing.pictures import Row
from train.host.training import Training
from train.report.arrays import Arrays

POINTS = 300
"""Points of a curve: rows of a longer record are averaged."""
BINS = 24
"""Bins of a histogram."""


def of_run(run: Run, name: str, training: Training) -> dict[str, Any]:
    """Name, preset, settings and the command that repeats a run."""
    config, preset = plain(run.config), preset_of(run)
    _, default = beginning(run.program, preset, run.config)
    where = {f"run.{name}" for name in WHERE}
    changed_fields = {line.split(": ")[0] for line in differences(plain(default), config, where)}
    settings = [
        {"name": field, "value": finite_or_text(value), "changed": field in changed_fields}
        for field, value in flatten(config).items()
        if field not in where
    ]
    return {
        "name": name,
        "program": run.program.address,
        "preset": preset,
        "command": training_command(run, preset),
        "settings": settings,
        "steps": run.updates * training.steps_per_update,
        "unit": training.unit,
        "score": training.score.name,
        "endings": [[*x, c] for x, c in zip(training.score.endings.items(), cycle(COLOURS))],
        "seeds": run.seeds,
    }


def preset_of(run: Run) -> str:
    """The preset that a run started from; where nothing says it, the one of nearest settings."""
    if run.preset:
        return run.preset
    directory = RunDirectory(run.directory)
    if directory.has_config:
        return directory.config()["preset"]
    num_differences = {
        n: len(differences(plain(x), plain(run.config))) for n, x in _similar_presets(run).items()
    }
    return min(num_differences, key=lambda name: num_differences[name])


def _similar_presets(run: Run) -> dict[str, Any]:
    """The configurations of presets that are of the same kind."""
    configs = {name: preset.config for name, preset in run.program.presets.items()}
    return {name: x for name, x in configs.items() if type(x) is type(run.config)}


def record(run: Run, labels: Mapping[str, Sequence[str]]) -> dict[str, Any] | None:
    """The curves of all numbers in the record; None without one.

    A number has one curve, lists of K numbers have K of them: of each member, their mean, and from
    three members on the margin of its 95 % interval. Points of a long record are means of
    neighbouring rows, also their steps; `newest` are those of the last row.
    """
    directory = run.directory
    if directory.name == BEST and not RunDirectory(directory).metrics.is_file():
        directory = directory.parent  # the best of a run learned while it was recorded there
    if not RunDirectory(directory).metrics.is_file():
        return None
    rows = metrics_file.read_metrics(directory)
    line = series.timeline(series.split_by_member(rows, run.seeds))
    names = series.names(rows)
    curves_by_name = {
        name: {
            "group": group,
            "curves": curves(line, group, name),
            "labels": list(labels.get(name, ())),
        }
        for name, group in names.items()
    }
    return {
        "steps": [round(x) for x in thin(line.steps)],
        "newest": round(line.steps.max(initial=0)),
        "series": curves_by_name,
        "evaluated": score_curve(rows),
    }


def curves(line: series.Timeline, group: str, name: str) -> list[dict[str, Any]]:
    """The curves of one number in the rows of S members, one for each of its parts."""
    curve_list = []
    for part in series.parts(line, group, name):
        points = np.stack([thin(values) for values in part])  # [S, points]
        margin = pictures.interval(points)
        curve_list.append({"members": plain_numbers(points), "mean": plain_numbers(mean(points))})
        curve_list[-1]["margin"] = plain_numbers(margin)
    return curve_list


def score_curve(rows: list[Row]) -> list[list[float]]:
    """`[steps, score]` of the games while training, means over members."""
    scores_by_steps: dict[int, list[float]] = {}
    for row in rows:
        mean = row.get("evaluated", {}).get("mean")
        if mean is not None:  # at least one game was finished
            scores_by_steps.setdefault(row["steps"], []).append(mean)
    return [
        [steps, float(np.mean(member_scores))]
        for steps, member_scores in sorted(scores_by_steps.items())
    ]


def thin(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """At most `POINTS` values, means of neighbours; NaN where none of them is finite."""
    array = np.asarray(values, np.float64)
    if len(array) <= POINTS:
        return array
    return np.array([mean(piece) for piece in np.array_split(array, POINTS)])


def mean(values: np.ndarray) -> np.ndarray:
    """The mean over the first axis, without values that are not finite; NaN where all are."""
    is_finite = np.isfinite(values)
    count = is_finite.sum(0)
    return np.where(
        count > 0, np.where(is_finite, values, 0.0).sum(0) / np.maximum(count, 1), np.nan
    )


def plain_numbers(values: np.ndarray) -> Any:
    """Nested lists of numbers with six digits."""
    if values.ndim > 1:
        return [plain_numbers(row) for row in values]
    return [float(f"{x:.6g}") for x in values]


def pictures_of(run: Run) -> list[dict[str, str]]:
    """The pictures in the directory of a run, whole, by name."""
    return [
        {"name": path.stem, "png": base64.b64encode(path.read_bytes()).decode()}
        for path in RunDirectory(run.directory).pictures()
    ]


def scores(run: Run) -> dict[str, Any] | None:
    """The content of `eval.json`; None without one."""
    return read_evaluation(run.directory)


def distributions(
    name: str, training: Training, agent: AgentState, count: int, key: jax.Array
) -> list[dict[str, Any]]:
    """How often what happened in `count` games of an agent; empty where none are played."""
    if training.games is None or not count:
        return []
    doing = f"playing games of {name}"
    (played,) = games.play(training.games(count), [agent], [key], [doing]).episodes
    whole = scored_games(played)
    measures = {"return": whole.return_, "length": whole.length, **whole.outcome}
    measures["time up"] = whole.truncated & ~whole.terminated
    unfinished = distribution("not finished", ~np.ravel(played.complete))
    is_broken = np.ravel(played.complete) & ~have_score(played)
    broken = distribution("return not finite", is_broken)
    first = [x for x in (unfinished, broken) if x["share"]]
    return first + [distribution(name, x) for name, x in measures.items()]


def distribution(name: str, values: np.ndarray) -> dict[str, Any]:
    """The share of games with something, or a histogram of those with a finite number.

    `unknown` is how many have another.
    """
    if values.dtype == bool:
        share = float(values.mean()) if len(values) else None
        return {"name": name, "games": len(values), "share": share}
    values, num_values = values[np.isfinite(values)], len(values)
    count = len(values)
    low, high = (float(values.min()), float(values.max())) if count else (0.0, 0.0)
    is_whole = np.issubdtype(values.dtype, np.integer) or bool((values == np.round(values)).all())
    if is_whole and max(-low, high) < 2**52:  # bins of equally many whole numbers
        width = max(1, -(-int(high - low + 1) // BINS))
        edges = np.arange(low, high + width + 0.5, width) - 0.5
    else:
        edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    heights, _ = np.histogram(values, edges)
    mean = float(values.mean()) if count else None
    bins = {"edges": edges.tolist(), "counts": heights.tolist()}
    return {"name": name, "games": count, "unknown": num_values - count, "mean": mean, **bins}


def scene(run_scene: Scene, arrays: Arrays) -> dict[str, Any]:
    """The episodes of a run; their numbers go into `arrays`."""
    return {
        "drawing": run_scene.scripts[-1].stem,
        "constants": {k: _pack(x, arrays) for k, x in run_scene.constants.items()},
        "episodes": [_episode_content(episode, arrays) for episode in run_scene.episodes],
    }


def _episode_content(episode: Episode, arrays: Arrays) -> dict[str, Any]:
    return {
        "title": episode.title,
        "constants": {k: _pack(x, arrays) for k, x in episode.constants.items()},
        "moments": len(next(iter(episode.frames.values()))),
        "frames": {k: arrays.add(x) for k, x in episode.frames.items()},
        "lines": {k: arrays.add(x) for k, x in episode.lines.items()},
        "bars": {k: _bars_content(x, arrays) for k, x in episode.bars.items()},
    }


def _bars_content(bars: Bars, arrays: Arrays) -> dict[str, Any]:
    return {
        "labels": list(bars.labels),
        "limits": bars.limits and [[float(x) for x in pair] for pair in bars.limits],
        "values": arrays.add(bars.values),
        "chosen": None if bars.chosen is None else arrays.add(bars.chosen),
    }


def _pack(value: Any, arrays: Arrays) -> Any:
    """A reference for an array, plain data as it is."""
    return {"array": arrays.add(value)} if hasattr(value, "dtype") else value
