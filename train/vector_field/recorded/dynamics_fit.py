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
from typing import NamedTuple

import jax
import jax.numpy as jnp
from rich.console import Console

from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting.linear_fit import is_linear_gaussian
from jaxrl.dynamics.state_space.fitting.sessions import aligned_guess, session_model
from jaxrl.dynamics.state_space.fitting.units import Units, scale_record, units_of, unscale_params
from jaxrl.dynamics.state_space.model import Params, StateSpace
from jaxrl.loop import LoopMetrics
from train.host.compilation.cpu_kernels import Work
from train.host.machine.progress import show_activity
from train.host.training import Score, Training
from train.vector_field.config import Config
from train.vector_field.data import step_time
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.recorded import (
    baselines,
    dynamics_problem,
    dynamics_scores,
    session_fits,
    state_space,
)
from train.vector_field.recorded.choices import delays, selection, trials
from train.vector_field.recorded.dynamics_problem import Agent, Problem

_log = logging.getLogger(__name__)
SCORE = "log_likelihood"
GRADIENT_STEPS = 25
"""Gradient steps in one update."""
SMOOTHING = (2.0, 1.0, 4.0)
"""By which the first guesses differ, in steps; further ones differ by what they draw alone."""


class State(NamedTuple):
    """A fit in progress."""

    agent: Agent
    key: jax.Array
    updates: jax.Array  # int32


def complete(config: Config) -> Config:
    """The configuration with what its data say of all that it leaves open, which is printed.

    Raises ValueError, in one line, for files that cannot be used.
    """
    if not config.data or config.learner != "state_space":
        return config
    data, step_length = read_data(config), step_time_of(config)
    step_time.tell(", ".join(config.data), step_length, tuple(data.lengths.tolist()))
    dynamics_problem.tell_channels(config, data)
    training = dynamics_problem.chosen_by(dynamics_problem.split(config, data)[0])
    if delays.is_open(config):
        with show_activity("finding delays") as say:
            steps, table = delays.choose(config, training, say)
        Console().print(table)
        config = delays.with_delays(config, steps)
        training = dynamics_problem.chosen_by(dynamics_problem.split(config, read_data(config))[0])
    warn_of_short_budget(config)
    if not selection.is_open(config):
        return config
    with show_activity("choosing a model") as say:
        dynamics, table = selection.choose(config, training, say)
    Console().print(table)
    return replace(config, state_space=dynamics)


def guess_completion(config: Config) -> Config:
    """What `complete` might return, at once: a linear field, which needs the least of its data."""
    if not (selection.is_open(config) or delays.is_open(config)):
        return config
    dynamics = replace(config.state_space, most_delay=0)
    if dynamics.field == "auto":
        dynamics = replace(dynamics, field="linear")
    return replace(config, state_space=selection.fill_defaults(dynamics, dynamics.dims or 1))


def warn_of_short_budget(config: Config) -> None:
    """Says that a run ends before the gradient steps that it was asked for, if it does."""
    steps, budget = config.state_space.steps, config.run.total_steps
    if steps > budget:
        _log.warning(
            "state_space.steps is %d, and the run ends after run.total_steps=%d of them, before "
            "the learning rate has fallen to 0: --run.total-steps %d makes them all",
            *(steps, budget, steps),
        )


def make_training(config: Config) -> Training:
    """The training of a fit; raises ValueError, in one line, for files that cannot be used."""
    problem, dynamics = dynamics_problem.problem_of(config), config.state_space
    record = state_space.record_of(problem.training)
    units = units_of(record, problem.model.is_count, problem.model.effect)
    record = scale_record(record, units)
    fit = trials.fit_config(problem.model, dynamics, dynamics.steps)
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
        evaluate=partial(dynamics_scores.evaluate, config, problem),
        steps_per_update=GRADIENT_STEPS,
        unit="gradient steps",
        score=Score(SCORE, evaluation=dynamics_scores.SCORE),
        converged_metric="has_ended",
        ends_after=dynamics.steps if isinstance(dynamics.steps, int) else None,  # traced in a sweep
        work=Work(small_products=True),
        budget_shapes_learning=False,
    )


def make_guess(
    problem: Problem, units: Units, config: fits.Config, starts: int
) -> Callable[[jax.Array], Params]:
    """The first guesses `[S, ...]` by a key, which they consume."""
    if problem.training.sessions is None:
        newest = baselines.newest(problem.training, trials.MOST_STEPS)
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
