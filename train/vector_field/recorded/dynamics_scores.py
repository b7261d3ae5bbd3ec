"""Scores of a state-space model of recorded data beside simple models, of each session, too.

Letters: K steps ahead.
"""

import logging
from functools import partial
from typing import Any

import jax
import numpy as np
from rich.markup import escape
from rich.table import Table

from jaxrl.dynamics.state_space.fitting.sessions import session_params
from jaxrl.dynamics.state_space.model import Params
from train.host.compilation import memory
from train.host.errors import in_one_line
from train.host.machine.progress import show_activity
from train.host.numbers import quantity
from train.host.scoring import scores
from train.host.training import Evaluation, TrainedAgents
from train.vector_field.config import Config
from train.vector_field.data.reading import step_time_of
from train.vector_field.data.sessions import parts_of
from train.vector_field.data.step_time import StepTime, step_length_text
from train.vector_field.experiment.held_out import AHEAD
from train.vector_field.recorded import (
    baseline_forecasts,
    baselines,
    dynamics_portrait,
    dynamics_problem,
    prediction_scores,
    session_fits,
    state_space,
    vae_fit,
)
from train.vector_field.recorded.dynamics_portrait import Portraits
from train.vector_field.recorded.dynamics_problem import Agent, Problem
from train.vector_field.recorded.prediction_scores import INTERVALS_AT, Scores

SHOWN, SCORE = vae_fit.SHOWN, vae_fit.SCORE
FEW_FORECASTS = 50
"""Scored forecasts, below which R² may be anything: they overlap, and tell the same thing twice."""
_log = logging.getLogger(__name__)


def evaluate(config: Config, problem: Problem, *trained: *TrainedAgents) -> Evaluation:
    """Scores of forecasts of the held-out data, for every seed, and those of simple models."""

    step_length = step_time_of(config)

    def measure(agent: Agent, key: jax.Array) -> dict[str, Any]:
        del key  # forecasts draw from keys of their own, so that models are compared alike
        by_session = session_scores(config, problem, agent.params)
        fit_scores = session_fits.pooled_scores(by_session)
        portraits = portraits_of(config, problem, agent.params)
        portrait = (
            {}
            if portraits is None
            else {"portrait": dynamics_portrait.as_json(portraits, step_length)}
        )
        each = (
            {"sessions": dict(zip(names, map(as_json, by_session), strict=True))} if names else {}
        )
        return {SCORE: float(fit_scores.r2[10]), **as_json(fit_scores), **each, **portrait}

    warn_of_few_forecasts(config, problem)
    names = problem.training.sessions.names if problem.training.sessions else ()
    with show_activity("fitting simple models"):
        simple, order, simple_by_session = simple_scores(problem)
    memory.return_free_memory()
    about = {
        "step_time": step_length.length,
        "time_unit": step_length.unit,
        "model": {"dims": config.state_space.dims, "field": config.state_space.field},
        "baselines": {name: as_json(x) for name, x in simple.items()} | {"arx_order": order},
    }
    if names:
        about["session_baselines"] = dict(zip(names, simple_by_session, strict=True))
    return scores.evaluate_by_measure(*trained, SCORE, measure, table, **about)


def warn_of_few_forecasts(config: Config, problem: Problem) -> None:
    """Says on how many forecasts the scores of each session rest, where they are few."""
    sessions = problem.training.sessions
    names = [", ".join(config.data)] if sessions is None else sessions.names
    for name, part in zip(names, parts_of(problem.held_out), strict=True):
        count = len(prediction_scores.starts_of(part, AHEAD).step)
        if count < FEW_FORECASTS:
            _log.warning(
                "%s: its scores rest on %s, expected %d or more: record longer, or hold out more "
                "(--validation-share)",
                *(name, quantity(count, "forecasts"), FEW_FORECASTS),
            )


def scores_of(config: Config, problem: Problem, params: Params) -> Scores:
    """The scores of the forecasts of one fit to data without sessions, on the held-out data."""
    forecaster = state_space.forecaster(
        *(problem.model, params, problem.held_out, AHEAD, dynamics_problem.prediction_of(config))
    )
    return prediction_scores.score(
        problem.training, problem.held_out, forecaster, np.asarray(problem.model.is_count), AHEAD
    )


def session_scores(config: Config, problem: Problem, params: Params) -> list[Scores]:
    """The scores of each session."""
    channels = partial(session_fits.channels_of, problem.training)
    return [
        scores_of(config, part, session_params(params, channels(s)))
        for s, part in enumerate(dynamics_problem.session_problems(problem))
    ]


def portraits_of(config: Config, problem: Problem, params: Params) -> Portraits | None:
    """What the fit does under constant inputs; None, and a line that says why, where it fails."""
    record, prediction = (
        state_space.record_of(problem.training),
        dynamics_problem.prediction_of(config),
    )
    beliefs = state_space.beliefs_of(problem.model, params, record, prediction)
    try:
        return dynamics_portrait.portraits_of(problem.model, params, problem.training, beliefs)
    except ValueError as error:
        _log.warning("no phase portrait: %s", in_one_line(error))
        return None


def simple_scores(
    problem: Problem,
) -> tuple[dict[str, Scores], int | list[int] | None, list[dict[str, Any]]]:
    """The scores of simple models, the order of ARX, and the scores of each session as JSON; none,
    and a line that says why, where they fail. Each session has simple models of its own."""
    parts = dynamics_problem.session_problems(problem)
    with baselines.warn_of_failure():
        by_session, orders = zip(
            *(
                baseline_forecasts.scores(
                    *(x.training, x.held_out, x.model.dims, np.asarray(x.model.is_count), AHEAD)
                )
                for x in parts
            ),
            strict=True,
        )
        pooled = {
            name: session_fits.pooled_scores([x[name] for x in by_session])
            for name in by_session[0]
        }
        each = [{name: as_json(x) for name, x in scores.items()} for scores in by_session]
        return pooled, orders[0] if len(parts) == 1 else [*orders], each
    return {}, None, [{} for _ in parts]


def as_json(scores: Scores) -> dict[str, Any]:
    """Lists them as JSON can."""
    coverage = {f"+{k}": float(x) for k, x in zip(INTERVALS_AT, scores.coverage, strict=True)}
    return {"r2": scores.r2.tolist(), "nats": scores.gain, "coverage": coverage}


def table(content: dict[str, Any]) -> Table:
    """A row for each seed and each simple model."""
    step_text = step_length_text(StepTime(content["step_time"], content["time_unit"]))
    model = content["model"]
    caption = (
        f"{model['field']} field of {quantity(model['dims'], 'dimensions')}; R² of observations so "
        f"many steps{step_text} ahead in the held-out part, nats per value one step ahead beyond "
        "its mean, and how many values 90 % intervals hold"
    )
    rows = {f"seed {row['seed']}": row for row in content["seeds"]}
    simple = content["baselines"]
    rows |= {label: simple[name] for name, label in baselines.NAMES.items() if name in simple}
    if not any(row["r2"][1] > 0 for row in rows.values()):
        caption += ". No model foretells more than the mean: the record shows no dynamics"
    result = Table(title="forecasts of recorded data", caption=caption, pad_edge=False)
    result.add_column("", min_width=max(map(len, baselines.NAMES.values())), overflow="fold")
    for heading in (*("now" if k == 0 else f"+{k}" for k in SHOWN), "nats", "within %"):
        result.add_column(heading, justify="right", no_wrap=True)
    for place, (name, row) in enumerate(rows.items()):
        if place == len(content["seeds"]):
            result.add_section()
        _add_row(result, name, row)
    for session in content["seeds"][0].get("sessions", {}):
        result.add_section()
        result.add_row(f"{escape(session)}:")  # the name of a file
        for row in content["seeds"]:
            _add_row(result, f"seed {row['seed']}", row["sessions"][session])
        for name, row in content["session_baselines"][session].items():
            _add_row(result, baselines.NAMES[name], row)
    return result


def _add_row(result: Table, name: str, row: dict[str, Any]) -> None:
    r2 = (_r2_text(row["r2"][k]) for k in SHOWN)
    within = " ".join(f"{100 * x:.0f}" for x in row["coverage"].values())
    result.add_row(name, *r2, f"{row['nats']:.4f}", within)


def _r2_text(r2: float) -> str:
    """Digits that say something; what is below -10 would make a table too wide with more."""
    return "" if not np.isfinite(r2) else f"{r2:.3f}" if r2 > -10 else f"{r2:.0f}"
