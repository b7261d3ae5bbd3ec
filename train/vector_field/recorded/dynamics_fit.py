"""Fits of a state-space model to recorded data: `python -m train.vector_field --data FILE.npz`.

For what a file holds see `recordings`. The last part of the data is held out, to score forecasts of
it beside those of simple models (`baseline_forecasts`). Several fits from different first guesses
run side by side; the one of the smallest loss counts.

Letters: S starts, K steps ahead, n channels.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from jaxrl.dynamics.state_space.filter import Prediction, Record
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting.linear_fit import is_linear_gaussian
from jaxrl.dynamics.state_space.fitting.sessions import aligned_guess, session_model, session_params
from jaxrl.dynamics.state_space.fitting.units import Units, scale_record, units_of, unscale_params
from jaxrl.dynamics.state_space.model import Params, StateSpace, check
from jaxrl.loop import LoopMetrics
from train.host.errors import in_one_line
from train.host.machine import memory
from train.host.machine.progress import print_line, show_activity
from train.host.numbers import quantity
from train.host.scoring import scores
from train.host.training import Evaluation, Score, TrainedAgents, Training
from train.vector_field.config import Config
from train.vector_field.data import episodes, step_time
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.recordings import Data, oddities
from train.vector_field.data.sessions import longest_session, map_sessions, parts_of
from train.vector_field.data.step_time import StepTime
from train.vector_field.experiment.scores import AHEAD, SKIPPED
from train.vector_field.recorded import (
    baseline_forecasts,
    baselines,
    delays,
    dynamics_portrait,
    prediction_scores,
    selection,
    session_fits,
    state_space,
    vae_fit,
)
from train.vector_field.recorded.dynamics_portrait import Portraits
from train.vector_field.recorded.prediction_scores import INTERVALS_AT, Scores

SCORE = "log_likelihood"
SHOWN = vae_fit.SHOWN
GRADIENT_STEPS = 25
"""Gradient steps in one update."""
SMOOTHING = (2.0, 1.0, 4.0)
"""By which the first guesses differ, in steps; further ones differ by what they draw alone."""
_log = logging.getLogger(__name__)


class Agent(NamedTuple):
    """What a run learns."""

    params: Params  # of the start of the smallest loss, in the units of the data
    fits: fits.Fit  # [S, ...], in units of their spread


class State(NamedTuple):
    """A fit in progress."""

    agent: Agent
    key: jax.Array
    updates: jax.Array  # int32


class Problem(NamedTuple):
    """What is fitted, and to what."""

    model: StateSpace
    training: Data
    held_out: Data


def complete(config: Config) -> Config:
    """The configuration with what its data say of all that it leaves open, which is printed.

    Raises ValueError, in one line, for files that cannot be used.
    """
    if not config.data or config.learner != "state_space":
        return config
    data, step_length = read_data(config), step_time_of(config)
    step_time.tell(", ".join(config.data), step_length, tuple(data.lengths.tolist()))
    tell_channels(config, data)
    training = chosen_by(split(config, data)[0])
    if delays.is_open(config):
        with show_activity("finding delays") as say:
            steps, table = delays.choose(config, training, say)
        Console().print(table)
        config = delays.with_delays(config, steps)
        training = chosen_by(split(config, read_data(config))[0])
    if not selection.is_open(config):
        return config
    with show_activity("choosing a model") as say:
        dynamics, table = selection.choose(config, training, say)
    Console().print(table)
    return replace(config, state_space=dynamics)


def chosen_by(training: Data) -> Data:
    """The data by which a model is chosen: the longest session, where there are several."""
    return training if training.sessions is None else parts_of(training)[longest_session(training)]


def tell_channels(config: Config, data: Data) -> None:
    """Says which channels hold counts, and what is unusual about the data."""
    is_count = state_space.count_channels(data, config.env.noise)
    counts, numbers = int(is_count.sum()), int((~is_count).sum())
    kinds = [f"{quantity(counts, 'channels')} of counts"] * bool(counts)
    kinds += [f"{quantity(numbers, 'channels')} of numbers"] * bool(numbers)
    print_line(f"{', '.join(config.data)}: {' and '.join(kinds)}; --env.noise says otherwise")
    names = [", ".join(config.data)] if data.sessions is None else data.sessions.names
    for name, part in zip(names, parts_of(data), strict=True):
        for oddity in oddities(part, "poisson" if counts else "gaussian"):
            _log.warning("%s: %s", name, oddity)


def split(config: Config, data: Data) -> tuple[Data, Data]:
    """Training data and held-out data, of each session; raises ValueError unless these can be
    scored."""

    def split_part(data: Data) -> tuple[Data, Data]:
        training, held_out = episodes.split(data, config.validation_share, SKIPPED + AHEAD + 1)
        episodes.refuse_unscored(held_out, AHEAD)
        return training, held_out

    training, held_out = map_sessions(split_part, data)
    return training, held_out


def problem_of(config: Config, data: Data | None = None) -> Problem:
    """The model and the data, which are read if they are not given.

    Raises ValueError for what was left open, and for unusable files.
    """
    if selection.is_open(config) or delays.is_open(config):
        raise ValueError(
            "state_space.dims, field, prior, steps and delay are chosen by the data first: call "
            "dynamics_fit.complete(config)"
        )
    if data is None:
        data = read_data(config)
    training, held_out = split(config, data)
    is_count = state_space.count_channels(data, config.env.noise)
    model = state_space.make_model(config.state_space, is_count, data.u.shape[-1])
    check(model)
    return Problem(model, training, held_out)


def make_training(config: Config) -> Training:
    """The training of a fit; raises ValueError, in one line, for files that cannot be used."""
    problem, dynamics = problem_of(config), config.state_space
    record = state_space.record_of(problem.training)
    units = units_of(record, problem.model.is_count)
    record = scale_record(record, units)
    fit = selection.fit_config(problem.model, dynamics, dynamics.steps)
    guess = make_guess(problem, units, fit, dynamics.starts)

    def init(key: jax.Array) -> State:
        layer_key, key = jax.random.split(key)
        guesses = guess(layer_key)
        running = jax.vmap(partial(fits.init, fit))(guesses)
        agent = choose(jnp.zeros((), jnp.int32), running, units)
        return State(agent, key, jnp.zeros((), jnp.int32))

    jax.eval_shape(init, jax.random.key(0))  # refuses dimensions that the channels cannot show
    return Training(
        init=init,
        update=partial(update, fit, problem.model, record, units),
        evaluate=partial(evaluate, config, problem),
        steps_per_update=GRADIENT_STEPS,
        unit="gradient steps",
        score=Score(SCORE),
        converged_metric="has_ended",
        has_small_products=True,
        budget_shapes_learning=False,
    )


def make_guess(
    problem: Problem, units: Units, config: fits.Config, starts: int
) -> Callable[[jax.Array], Params]:
    """The first guesses `[S, ...]` by a key, which they consume."""
    if problem.training.sessions is None:
        newest = baselines.newest(problem.training, selection.MOST_STEPS)
        record = scale_record(state_space.record_of(newest), units)
        return lambda key: first_guesses(problem.model, record, starts, key)
    sessions = session_fits.scaled_sessions(problem.training, units)
    model = session_model(problem.model, sessions[0].channels)

    def guess(key: jax.Array) -> Params:  # one start: others would have to be aligned, too
        layer_key, key = jax.random.split(key)
        first = first_guesses(model, sessions[0].record, 1, layer_key)
        own = jax.tree.map(lambda x: x[0], first)
        aligned = aligned_guess(config, problem.model, sessions, own, key)
        return jax.tree.map(lambda x: x[None], aligned)

    return guess


def first_guesses(model: StateSpace, record: Record, starts: int, key: jax.Array) -> Params:
    """`[S, ...]`, each from principal components of differently smoothed observations.

    All alike where the largest likelihood is found at once. Networks draw their layers. Consumes
    `key`.
    """
    count = 1 if is_linear_gaussian(model) else starts  # there is one largest likelihood
    different = [
        state_space.first_guess(model, record, each, SMOOTHING[i % len(SMOOTHING)])
        for i, each in enumerate(jax.random.split(key, starts)[:count])
    ]
    return jax.tree.map(lambda *x: jnp.stack(x), *different * (starts // count))


def choose(start: jax.Array, running: fits.Fit, units: Units) -> Agent:
    """The agent of one of the starts."""
    params = jax.tree.map(lambda x: x[start], running.params)
    return Agent(unscale_params(params, units), running)


def update(
    config: fits.Config, model: StateSpace, record: Record, units: Units, state: State
) -> tuple[State, LoopMetrics]:
    """Gradient steps of all starts on a `record` in `units`; one whose learning rate is 0 stays."""

    def step(carry: tuple[fits.Fit, jax.Array], _) -> tuple[tuple, jax.Array]:
        running, key = carry
        key, step_key = jax.random.split(key)
        keys = jax.random.split(step_key, len(running.step))
        advance = lambda fit, key: fits.gradient_step(config, model, fit, record, key)
        running, losses = jax.vmap(advance)(running, keys)
        return (running, key), losses

    start = state.agent.fits, state.key
    (running, key), losses = jax.lax.scan(step, start, length=GRADIENT_STEPS)
    start_losses = jnp.mean(losses, axis=0)  # [S]
    best_start = jnp.argmin(jnp.nan_to_num(start_losses, nan=jnp.inf))
    agent = choose(best_start, running, units)
    measures = {
        SCORE: -start_losses[best_start],
        "spread_of_starts": jnp.max(start_losses) - jnp.min(start_losses),
        "process_noise": jnp.mean(jnp.exp(agent.params.log_process)),
        "has_ended": (running.step[0] >= config.steps).astype(jnp.float32),
    }
    return State(agent, key, state.updates + 1), LoopMetrics(jnp.zeros((), jnp.int32), {}, measures)


def scores_of(config: Config, problem: Problem, params: Params) -> Scores:
    """The scores of the forecasts of one fit to data without sessions, on the held-out data."""
    forecaster = state_space.forecaster(
        *(problem.model, params, problem.held_out, AHEAD, prediction_of(config))
    )
    return prediction_scores.score(
        problem.training, problem.held_out, forecaster, np.asarray(problem.model.is_count), AHEAD
    )


def session_problems(problem: Problem) -> list[Problem]:
    """The problem of each session by itself; the problem itself where there are none."""
    parts = zip(parts_of(problem.training), parts_of(problem.held_out), strict=True)
    channels = partial(session_fits.channels_of, problem.training)
    return [
        Problem(session_model(problem.model, channels(s)), *training_and_held_out)
        for s, training_and_held_out in enumerate(parts)
    ]


def session_scores(config: Config, problem: Problem, params: Params) -> list[Scores]:
    """The scores of each session."""
    channels = partial(session_fits.channels_of, problem.training)
    return [
        scores_of(config, part, session_params(params, channels(s)))
        for s, part in enumerate(session_problems(problem))
    ]


def portraits_of(config: Config, problem: Problem, params: Params) -> Portraits | None:
    """What the fit does under constant inputs; None, and a line that says why, where it fails."""
    record, prediction = state_space.record_of(problem.training), prediction_of(config)
    beliefs = state_space.beliefs_of(problem.model, params, record, prediction)
    try:
        return dynamics_portrait.portraits_of(problem.model, params, problem.training, beliefs)
    except ValueError as error:
        _log.warning("no phase portrait: %s", in_one_line(error))
        return None


def prediction_of(config: Config) -> Prediction:
    """How its filter predicts."""
    return config.state_space.fit.objective.prediction


def evaluate(config: Config, problem: Problem, *trained: *TrainedAgents) -> Evaluation:
    """Scores of forecasts of the held-out data, for every seed, and those of simple models."""

    step_length = step_time_of(config)

    def measure(agent: Agent, key: jax.Array) -> dict[str, Any]:
        del key  # forecasts draw from keys of their own, so that models are compared alike
        by_session = session_scores(config, problem, agent.params)
        fit_scores = session_fits.mean_scores(by_session, sizes)
        portraits = portraits_of(config, problem, agent.params)
        portrait = (
            {}
            if portraits is None
            else {"portrait": dynamics_portrait.as_json(portraits, step_length)}
        )
        each = (
            {"sessions": dict(zip(names, map(as_json, by_session), strict=True))} if names else {}
        )
        return {"r2_10": float(fit_scores.r2[10]), **as_json(fit_scores), **each, **portrait}

    sizes = [len(x.model.is_count) for x in session_problems(problem)]
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
    return scores.evaluate_by_measure(*trained, "r2_10", measure, table, **about)


def as_json(scores: Scores) -> dict[str, Any]:
    """Lists them as JSON can."""
    coverage = {f"+{k}": float(x) for k, x in zip(INTERVALS_AT, scores.coverage, strict=True)}
    return {"r2": scores.r2.tolist(), "nats": scores.gain, "coverage": coverage}


def simple_scores(
    problem: Problem,
) -> tuple[dict[str, Scores], int | list[int] | None, list[dict[str, Any]]]:
    """The scores of simple models, the order of ARX, and the scores of each session as JSON; none,
    and a line that says why, where they fail. Each session has simple models of its own."""
    parts = session_problems(problem)
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
        sizes = [len(x.model.is_count) for x in parts]
        mean = {
            name: session_fits.mean_scores([x[name] for x in by_session], sizes)
            for name in by_session[0]
        }
        each = [{name: as_json(x) for name, x in scores.items()} for scores in by_session]
        return mean, orders[0] if len(parts) == 1 else [*orders], each
    return {}, None, [{} for _ in parts]


def table(content: dict[str, Any]) -> Table:
    """A row for each seed and each simple model."""
    step_text = vae_fit.step_length_text(StepTime(content["step_time"], content["time_unit"]))
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
    result = Table(title="forecasts of recorded data", caption=caption)
    for heading in ("", *("now" if k == 0 else f"+{k}" for k in SHOWN), "nats", "within"):
        result.add_column(heading, justify="left" if not heading else "right")
    for place, (name, row) in enumerate(rows.items()):
        if place == len(content["seeds"]):
            result.add_section()
        _add_row(result, name, row)
    for session in content["seeds"][0].get("sessions", {}):
        result.add_section()
        for row in content["seeds"]:
            _add_row(result, f"{session}: seed {row['seed']}", row["sessions"][session])
        for name, row in content["session_baselines"][session].items():
            _add_row(result, f"{session}: {baselines.NAMES[name]}", row)
    return result


def _add_row(result: Table, name: str, row: dict[str, Any]) -> None:
    r2 = (f"{row['r2'][k]:.3f}" if np.isfinite(row["r2"][k]) else "" for k in SHOWN)
    within = " ".join(f"{100 * x:.0f}" for x in row["coverage"].values()) + " %"
    result.add_row(name, *r2, f"{row['nats']:.4f}", within)
