"""Fitting a sequence VAE to recorded data: `python -m train.vector_field --data FILE.npz ...`.

For what a file holds see `recordings`. The last part of the data is held out, to score forecasts of
its observations, beside those of simple models (`baselines`).
"""

import logging
import time
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.learners import sequence_vae
from jaxrl.dynamics.networks import latent_filter
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.loop import LoopMetrics
from train.host.compilation import ahead_of_time
from train.host.machine.progress import show_activity
from train.host.numbers import quantity
from train.host.scoring import scores
from train.host.training import Evaluation, Score, TrainedAgents, Training
from train.vector_field.config import Config
from train.vector_field.data import episodes, step_time
from train.vector_field.data.oddities import oddities, unusual_scales
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.recordings import Data
from train.vector_field.data.step_time import StepTime, step_length_text
from train.vector_field.experiment.held_out import AHEAD, SKIPPED
from train.vector_field.factories import make_model
from train.vector_field.recorded import baselines

SCORE = "r2_10"
SHOWN = (0, 1, 10, 30)
"""Steps ahead whose R² is recorded and printed."""
GRADIENT_STEPS = 50
"""Gradient steps in one update."""


_log = logging.getLogger(__name__)


class Fit(NamedTuple):
    """What a run learns."""

    params: Any
    opt_state: Any


class State(NamedTuple):
    """A fit in progress."""

    agent: Fit
    key: jax.Array
    updates: jax.Array  # int32


def make_training(config: Config) -> Training:
    """The training of a fit; raises ValueError, in one line, for files that cannot be used."""
    data = read_data(config)
    tell_about(config, data)
    # The model takes its sizes from the data.
    config = match_data_sizes(config, data)
    sequence_vae.check_config(config.vae)
    training, held_out = split(config, data)
    model, elbo = make_model(config), replace(config.vae.elbo, dt=config.env.dt)
    vae = replace(config.vae, elbo=elbo)
    beta = sequence_elbo.beta_schedule(vae.schedule, vae.beta, vae.warmup, vae.period)

    # Functions that are compiled; an update is many gradient steps on windows drawn at random.
    def init(key: jax.Array) -> State:
        init_key, key = jax.random.split(key)
        params = model.init(init_key, training.u.shape[-1])
        fit = Fit(params, sequence_vae.make_optimizer(vae).init(params))
        return State(fit, key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, LoopMetrics]:
        def step(carry: tuple[Fit, jax.Array], index: jax.Array):
            fit, key = carry
            key, window_key, loss_key = jax.random.split(key, 3)
            windows = episodes.sample(training, vae.window, config.batch_size, window_key)
            weight = beta(state.updates * GRADIENT_STEPS + index)
            *after, metrics = sequence_vae.gradient_step(
                vae, model, *fit, windows, loss_key, weight
            )
            return (Fit(*after), key), metrics

        start = (state.agent, state.key)
        (fit, key), metrics = jax.lax.scan(step, start, jnp.arange(GRADIENT_STEPS))
        metrics = jax.tree.map(jnp.mean, metrics)
        r2 = held_out_r2(config, model, held_out, fit)
        metrics |= {f"r2_{k}": r2[k] for k in SHOWN}
        state = State(fit, key, state.updates + 1)
        return state, LoopMetrics(jnp.zeros((), jnp.int32), {}, metrics)

    return Training(
        init=init,
        update=update,
        evaluate=partial(evaluate, config, model, training, held_out),
        steps_per_update=GRADIENT_STEPS,
        unit="gradient steps",
        score=Score(SCORE),
    )


def tell_about(config: Config, data: Data) -> None:
    """Says how long a step of the data is, and what is odd about them."""
    name, step_length = ", ".join(config.data), step_time_of(config)
    if not isinstance(config.env.dt, jax.Array):  # traced in a sweep, which has told it before
        step_time.tell(name, step_length, tuple(data.lengths.tolist()), config.env.dt)
    for oddity in (*oddities(data, config.env.noise), *unusual_scales(data)):
        _log.warning("%s: %s", name, oddity)


def match_data_sizes(config: Config, data: Data) -> Config:
    """The configuration with the sizes of the data. Raises ValueError if its noise does not fit."""
    env = replace(config.env, channels=data.y.shape[-1], num_inputs=data.u.shape[-1])
    if env.noise == "poisson" and not data.holds_counts:
        raise ValueError("y holds numbers that are not counts; choose env.noise gaussian")
    if env.noise == "none":
        raise ValueError("recorded data are noisy; choose env.noise gaussian or poisson")
    return replace(config, env=env)


def split(config: Config, data: Data) -> tuple[Data, Data]:
    """Training data and held-out data; raises ValueError unless these can be scored."""
    least = config.vae.window + SKIPPED + AHEAD
    advice = "a smaller --vae.window or "
    training, held_out = episodes.split(data, config.validation_share, least, advice)
    episodes.refuse_unscored(held_out, AHEAD)
    return training, held_out


def constants_of(config: Config) -> Constants:
    """What is known without a world: the time of a step."""
    return Constants(jnp.asarray(config.env.dt), jnp.zeros(0), jnp.zeros(0), ())


def held_out_r2(config: Config, model: Any, held_out: Data, fit: Fit) -> jax.Array:
    """R² `[K + 1]` of forecasts of the held-out data."""
    model_constants = constants_of(config)

    def of_episode(y: jax.Array, u: jax.Array, observed: jax.Array | None) -> jax.Array:
        return latent_filter.forecast(model, fit.params, model_constants, y, u, AHEAD, observed)

    return episodes.r2(held_out, episodes.forecasts(held_out, of_episode))


def compiled_r2(
    config: Config, model: Any, held_out: Data, fit: Fit
) -> ahead_of_time.CompiledFunction:
    """`held_out_r2` of fits like this one."""
    return ahead_of_time.trace(partial(held_out_r2, config, model, held_out), fit).compile()


def evaluate(
    config: Config,
    model: Any,
    training: Data,
    held_out: Data,
    *trained: *TrainedAgents,
) -> Evaluation:
    """R² of forecasts of the held-out data, for every seed, and that of simple models."""
    started = time.perf_counter()
    r2_of = compiled_r2(config, model, held_out, trained[0][0])
    compile_seconds = time.perf_counter() - started

    def measure(fit: Fit, key: jax.Array) -> dict[str, Any]:
        del key  # nothing is drawn
        r2 = r2_of(fit)
        return {SCORE: float(r2[10]), "r2": np.asarray(r2).tolist()}

    with show_activity("fitting simple models"):
        simple = simple_r2(training, held_out, config.model.grid.dims)
    step_length = step_time_of(config)
    r2_lists = {name: np.asarray(x).tolist() for name, x in simple.items()}
    about = {"step_time": step_length.length, "time_unit": step_length.unit, "baselines": r2_lists}
    return scores.evaluate_by_measure(*trained, SCORE, measure, table, compile_seconds, **about)


def simple_r2(training: Data, held_out: Data, dims: int) -> dict[str, Any]:
    """R² of simple models, as `baselines.r2`; NaN, and a line that says why, where they fail."""
    with baselines.warn_of_failure():
        return baselines.r2(training, held_out, dims, AHEAD)
    return dict.fromkeys(baselines.NAMES, np.full(AHEAD + 1, np.nan)) | {"arx_order": None}


def table(content: dict[str, Any]) -> Table:
    """A row for each seed and each simple model."""
    step_text = step_length_text(StepTime(content["step_time"], content["time_unit"]))
    caption = (
        f"R² of observations so many steps{step_text} ahead, in the held-out part of the record"
    )
    if order := content["baselines"]["arx_order"]:
        caption += f"; ARX of {quantity(order, 'steps')} of the past"
    r2_table = Table(title="forecasts of recorded data", caption=caption)
    for heading in ("seed", *("now" if k == 0 else f"+{k}" for k in SHOWN)):
        r2_table.add_column(heading, justify="right")
    for row in content["seeds"]:
        r2_table.add_row(str(row["seed"]), *(f"{row['r2'][k]:.3f}" for k in SHOWN))
    r2_table.add_section()
    for name, label in baselines.NAMES.items():
        r2 = content["baselines"][name]
        r2_table.add_row(label, *(f"{r2[k]:.3f}" if np.isfinite(r2[k]) else "" for k in SHOWN))
    return r2_table
