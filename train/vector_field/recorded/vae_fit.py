"""Fitting a sequence VAE to recorded data: `python -m train.vector_field --data FILE.npz ...`.

For what a file holds see `recordings`. The last part of the data is held out, to score forecasts of
its observations, beside those of simple models (`baselines`).
"""

import logging
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.learners import sequence_vae
from jaxrl.dynamics.networks import latent_filter
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.loop import LoopMetrics
from jaxrl.types import AgentState
from train.host.compilation import ahead_of_time
from train.host.files.whole_files import write_arrays
from train.host.machine.progress import show_activity
from train.host.numbers import quantity
from train.host.scoring import scores
from train.host.showing.pictures import BLUE, GREY, legend_below, save
from train.host.training import Evaluation, Score, TrainedAgents, Training
from train.vector_field.config import Config
from train.vector_field.data import episodes, step_time
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.recordings import Data, oddities, unusual_scales
from train.vector_field.data.step_time import StepTime
from train.vector_field.experiment.scores import AHEAD, SKIPPED
from train.vector_field.factories import make_model
from train.vector_field.pictures import series
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
    data, step_length = read_data(config), step_time_of(config)
    step_time.tell(", ".join(config.data), step_length, tuple(data.lengths.tolist()), config.env.dt)
    for oddity in (*oddities(data, config.env.noise), *unusual_scales(data)):
        _log.warning("%s: %s", ", ".join(config.data), oddity)
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


def step_length_text(length: StepTime) -> str:
    """ " of 0.02 s", where that is known."""
    return "" if length == StepTime() else f" of {length.text()}"


def draw_all(directory: Path, config: Config, agents: list[AgentState]) -> list[Path]:
    """Writes a picture of the learned dynamics and the forecasts of each seed, and the arrays."""
    data = read_data(config)
    config = match_data_sizes(config, data)
    model = make_model(config)
    training, held_out = split(config, data)
    r2_of = compiled_r2(config, model, held_out, agents[0])
    arrays = learned_arrays(config, model, agents[0], data)
    arrays["r2"] = np.stack([np.asarray(r2_of(agent)) for agent in agents])
    simple = simple_r2(training, held_out, model.latent)
    arrays |= {f"r2_{name}": np.asarray(simple[name]) for name in baselines.NAMES}
    paths = [directory / "recorded.png", directory / "recorded.npz"]
    e, steps = shown_part(data, held_out)
    draw(paths[0], config, arrays["states"][e, steps], arrays)
    paths.append(directory / "channels.png")
    series.channels(
        paths[-1],
        np.where(data.observed[e, steps], data.y[e, steps], np.nan),
        arrays["forecasts"][e, steps],
        data.u[e, steps],
        step_time_of(config),
        f"Channels and forecasts of the held-out part, seed {config.run.seeds[0]}",
        begin=steps.start,
    )
    write_arrays(paths[1], arrays)
    return paths


def shown_part(data: Data, held_out: Data) -> tuple[int, slice]:
    """Which episode of all, and which steps of it, pictures show: the longest that was held out.

    Of several the last. A shorter one may have no forecast to be shown.
    """
    place = -1 - int(np.argmax(held_out.lengths[::-1]))
    end = int(data.lengths[place])
    return place, slice(end - int(held_out.lengths[place]), end)


def draw(path: Path, config: Config, states: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
    """The learned field with the filtered `states` `[T, d]`, and R² of the forecasts."""
    figure = Figure(figsize=(9, 4.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    axis, field = arrays["axis"], arrays["field"]
    if field.shape[-1] == 1:
        left.axhline(0, color=GREY, linewidth=0.8)
        left.plot(axis, field[:, 0], color=GREY, linewidth=1.4)
        left.plot(states[:, 0], np.interp(states[:, 0], axis, field[:, 0]), ".", color=BLUE, ms=3)
        left.set(xlabel="latent 0", ylabel="its velocity")
    else:
        left.streamplot(axis, axis, field[..., 0].T, field[..., 1].T, color=GREY, linewidth=0.8)
        left.plot(*states[:, :2].T, color=BLUE, linewidth=0.8, alpha=0.7)
        left.set(xlabel="latent 0", ylabel="latent 1", aspect="equal")
    title = f"learned dynamics and the filtered state, seed {config.run.seeds[0]}"
    left.set_title(title, loc="left", size=10)
    for seed, seed_r2 in zip(config.run.seeds, arrays["r2"], strict=True):
        right.plot(seed_r2, label=f"seed {seed}")
    for (name, label), dashes in zip(baselines.NAMES.items(), (":", "-.", "--"), strict=True):
        right.plot(arrays[f"r2_{name}"], dashes, color=GREY, linewidth=1.4, label=label)
    least = {name: np.fmin.reduce(arrays[name], axis=None) for name in arrays if name[:2] == "r2"}
    low = np.fmin(least["r2"], least["r2_linear_gaussian"])
    low = np.fmin(low, np.maximum(least["r2_persistence"], -0.1))  # which may fall far below
    right.set(
        xlabel=f"steps{step_length_text(step_time_of(config))} ahead",
        ylabel="R²",
        ylim=(low - 0.02, 1),
    )
    right.set_title("forecasts of the held-out part", loc="left", size=10)
    legend_below(figure, right.get_legend_handles_labels()[0])
    save(figure, path)


def learned_arrays(config: Config, model: Any, fit: Fit, data: Data) -> dict[str, np.ndarray]:
    """What a model makes of all data, by name; NaN in the padding of shorter episodes.

    `states` `[E, T, d]` that its filter finds, with `variances`; `lengths` `[E]`; `forecasts`
    `[E, T, K + 1, n]` after each step; its `field` `[25, 25, d]` where the first two dimensions are
    on `axis` `[25]` and the others at their mean; of its decoder, if it has them, the matrix
    `decoder` `[n, d]` and `offset` `[n]`. Of a single dimension the field is `[25, 1]`.
    """
    model_constants = constants_of(config)

    @jax.jit
    def run_episode(y: jax.Array, u: jax.Array, observed: jax.Array | None) -> tuple:
        ahead = latent_filter.forecast(
            model, fit.params, model_constants, y, u, SHOWN[-1], observed
        )
        belief = latent_filter.beliefs(model, fit.params, model_constants, y, u, observed)
        return belief.mean, jnp.diagonal(belief.covariance, axis1=-2, axis2=-1), ahead

    episode_parts = []
    for y, u, observed, length in zip(*data[:4], strict=True):
        mask = None if data.is_complete else observed
        parts = (np.array(x) for x in run_episode(y, u, mask))
        episode_parts.append([np.where(_column(length, x), x, np.nan) for x in parts])
    states, variances, forecasts = (np.stack(x) for x in zip(*episode_parts, strict=True))
    axis = np.linspace(-1.1, 1.1, 25) * np.nanmax(np.abs(states[..., :2]))
    points = np.stack(np.meshgrid(*[axis] * min(model.latent, 2), indexing="ij"), -1)
    others = np.nanmean(states[..., 2:], (0, 1)) if model.latent > 2 else np.zeros(0)
    elsewhere = np.broadcast_to(others, (*points.shape[:-1], len(others)))
    everywhere = np.concatenate([points, elsewhere], -1)
    decoder = {"decoder": "matrix", "offset": "offset"}
    return {
        "states": states,
        "variances": variances,
        "lengths": data.lengths,
        "forecasts": forecasts,
        "axis": axis,
        "field": np.asarray(model.velocity(fit.params, jnp.asarray(everywhere, jnp.float32))),
        "process_noise": np.asarray(model.noise(fit.params)),
        **{
            name: np.asarray(fit.params["decoder"][part])
            for name, part in decoder.items()
            if part in fit.params["decoder"]
        },
    }


def _column(length: int, x: np.ndarray) -> np.ndarray:
    """Which rows of x `[T, ...]` are no padding, with as many axes."""
    return (np.arange(len(x)) < length).reshape(-1, *[1] * (x.ndim - 1))
