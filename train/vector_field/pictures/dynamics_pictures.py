"""Pictures of a state-space model of recorded data: forecasts, phase portrait, channels; arrays.

Letters: E episodes, T steps of the longest, d dimensions, K steps ahead, n channels.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxrl.dynamics.state_space.fitting.sessions import session_params
from jaxrl.dynamics.state_space.model import Params
from train.host.files.whole_files import write_arrays
from train.host.scoring.scores import read_evaluation
from train.host.showing.pictures import GREY, legend_below, save
from train.vector_field.config import Config
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.recordings import Data
from train.vector_field.data.sessions import parts_of
from train.vector_field.data.step_time import StepTime, step_length_text
from train.vector_field.pictures import portrait_picture, series
from train.vector_field.recorded import (
    baselines,
    dynamics_problem,
    dynamics_scores,
    session_fits,
    state_space,
)
from train.vector_field.recorded.dynamics_portrait import Portraits
from train.vector_field.recorded.dynamics_problem import Agent, Problem, prediction_of
from train.vector_field.recorded.prediction_scores import INTERVALS_AT, TAIL, Starts

DASHES = (":", "-.", "--")
LEAST_COVERAGE = 63.0
"""Percent that the axis of coverage goes down to, and a little farther; to less where there is."""


def draw_all(directory: Path, config: Config, agents: list[Agent]) -> list[Path]:
    """Writes the pictures of the first seed, and the forecasts of all; returns their paths."""
    problem, content = dynamics_problem.problem_of(config), read_evaluation(directory)
    paths = []
    if content is not None:  # else nothing has been scored yet
        paths.append(directory / "forecasts.png")
        draw_forecasts(paths[0], config, content)
    # States of all data, the held-out part included, and the portrait around them.
    params = agents[0].params
    whole = read_data(config)
    record = state_space.record_of(whole)
    beliefs = state_space.beliefs_of(problem.model, params, record, prediction_of(config))
    states = _without_padding(whole, np.asarray(beliefs.mean))
    portraits = dynamics_scores.portraits_of(config, problem, params)
    time = step_time_of(config)
    if portraits is not None:
        paths.append(directory / "portrait.png")
        title = f"Learned dynamics and filtered states, seed {config.run.seeds[0]}"
        draw_portraits(paths[-1], portraits, states, time, title)
    # Channels of the held-out part, and the arrays.
    names = whole.sessions.names if whole.sessions else ("",)
    each = zip(names, parts_of(whole), dynamics_problem.session_problems(problem), strict=True)
    for s, (name, part, own_problem) in enumerate(each):
        paths.append(directory / ("channels.png" if len(names) == 1 else f"channels-{s}.png"))
        own_params = session_params(params, session_fits.channels_of(whole, s))
        draw_channels(paths[-1], config, own_problem, own_params, part, name)
    paths.append(directory / "recorded.npz")
    variances = np.diagonal(np.asarray(beliefs.covariance), axis1=-2, axis2=-1)
    write_arrays(
        paths[-1],
        {
            "states": states,
            "variances": _without_padding(whole, variances),
            "lengths": whole.lengths,
            "decoder": np.asarray(params.matrix),
            "offset": np.asarray(params.offset),
            "process_noise": np.exp(2 * np.asarray(params.log_process)),
        }
        | session_arrays(whole),
    )
    return paths


def draw_portraits(
    path: Path, portraits: Portraits, states: np.ndarray, time: StepTime, title: str
) -> None:
    """Draws the learned dynamics around the states, a panel for each input that has a portrait."""
    panels = {tuple(x.inputs): x for y in portraits.influences for x in y.portraits}
    shown_panels = list(panels.values()) or [portraits.usual]
    portrait_picture.draw(path, portraits.move, list(states), shown_panels, time, title)


def session_arrays(data: Data) -> dict[str, np.ndarray]:
    """The session of each channel and of each episode, if there are several."""
    if data.sessions is None:
        return {}
    return {
        "session_of_channel": data.sessions.of_channel,
        "session_of_episode": data.sessions.of_episode,
    }


def _without_padding(data: Data, x: np.ndarray) -> np.ndarray:
    """x `[E, T, ...]` with NaN in the padding."""
    inside = np.arange(x.shape[1]) < data.lengths[:, None]
    return np.where(inside[..., None], x, np.nan)


def draw_channels(
    path: Path, config: Config, problem: Problem, params: Params, whole: Data, session: str = ""
) -> None:
    """Draws channels of the held-out part, with what was forecast of them."""
    episode, steps = series.shown_part(whole, problem.held_out)
    count = steps.stop - steps.start
    longest_episode = problem.held_out.episodes(slice(episode, episode + 1 or None))
    forecaster = state_space.forecaster(
        *(problem.model, params, longest_episode, series.AHEAD, prediction_of(config))
    )
    newest = max(0, count - series.STEPS - series.AHEAD)
    start_steps = np.arange(newest, count - series.AHEAD)
    mean = np.full((count, series.AHEAD + 1, longest_episode.y.shape[-1]), np.nan)
    mean[start_steps] = forecaster(Starts(np.zeros_like(start_steps), start_steps)).mean
    series.channels(
        path,
        np.where(longest_episode.observed[0], longest_episode.y[0], np.nan),
        mean,
        longest_episode.u[0],
        step_time_of(config),
        f"Channels and forecasts of the held-out part, {f'{session}, ' * bool(session)}seed "
        f"{config.run.seeds[0]}",
        begin=steps.start,
        inputs_name="inputs, as they act" if any(config.state_space.delay) else "inputs",
    )


def draw_forecasts(path: Path, config: Config, content: dict[str, Any]) -> None:
    """R² and coverage against steps ahead, of each seed and of simple models."""
    figure = Figure(figsize=(9, 4.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    simple = content["baselines"]
    simple_rows = {label: simple[name] for name, label in baselines.NAMES.items() if name in simple}
    rows = {f"seed {row['seed']}": row for row in content["seeds"]} | simple_rows
    lowest = LEAST_COVERAGE
    for name, row in rows.items():
        style = _style(name, list(simple_rows))
        left.plot(_numbers(row["r2"]), label=name, **style)
        coverage = _numbers(list(row["coverage"].values()))
        right.plot(INTERVALS_AT[: len(coverage)], 100 * coverage, marker="o", **style)
        lowest = float(np.fmin.reduce(100 * coverage, initial=lowest))
    step_text = step_length_text(step_time_of(config))
    _name(left, f"steps{step_text} ahead", "R²", "forecasts of the held-out part")
    best = float(np.fmax.reduce([0.1, *(x for row in rows.values() for x in _numbers(row["r2"]))]))
    left.set_ylim(-0.25 * best, 1.15 * best)  # persistence may fall far below
    for line in left.lines:
        highest = np.fmax.reduce(np.asarray(line.get_ydata()))
        if not highest >= -0.25 * best:
            missing = "no R²" if np.isnan(highest) else "R² below"
            line.set_label(f"{line.get_label()} ({missing})")
    left.axhline(0, color=GREY, linewidth=0.6)
    right.axhline(100 * (1 - 2 * TAIL), color=GREY, linewidth=0.6)
    right.set_ylim(max(lowest - 3, -1), 101)  # a mark at 100 is whole
    _name(right, f"steps{step_text} ahead", "values within, %", "90 % intervals of forecasts")
    legend_below(figure, left.get_legend_handles_labels()[0])
    save(figure, path)


def _style(name: str, simple: list[str]) -> dict[str, Any]:
    if name not in simple:
        return {}
    return {"color": GREY, "linestyle": DASHES[simple.index(name)], "linewidth": 1.4}


def _numbers(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if x is None else x for x in values], float)


def _name(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, loc="left", size=10)
