"""Fitting a sequence VAE to recorded data: `python -m train.vector_field --data FILE.npz`.

The file holds `y` `[T, n]` or `[E, T, n]`, what was observed in E episodes, and `u` `[T, m]` or
`[E, T, m]`, the input given after each observation. The last part of the record is held out, to
score forecasts of its observations.
"""

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from jaxrl.agents import sequence_vae
from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.stimulation import Known
from jaxrl.loop import Metrics
from jaxrl.networks import latent_filter
from jaxrl.networks.latent import Window
from jaxrl.types import AgentState
from train.host import scores, settings
from train.host.pictures import BLUE, GREY, legend_below, save
from train.host.records import write_arrays
from train.vector_field.config import Config, make_model
from train.vector_field.recordings import Data, load, oddities
from train.vector_field.scores import AHEAD, SKIPPED, forecast_r2

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


def make_training(config: Config) -> settings.Training:
    """Raises ValueError, in one line, for a file that cannot be used."""
    data = load(config.data)
    for oddity in oddities(data):
        _log.warning("%s: %s", config.data, oddity)
    config = fitting(config, data)
    sequence_vae.check_config(config.vae)
    training, held_out = split(data, config.validation_share, config.vae.window + SKIPPED + AHEAD)
    model, elbo = make_model(config), replace(config.vae.elbo, dt=config.env.dt)
    vae = replace(config.vae, elbo=elbo)
    beta = sequence_elbo.beta_schedule(vae.schedule, vae.beta, vae.warmup, vae.period)

    def init(key: jax.Array) -> State:
        init_key, key = jax.random.split(key)
        params = model.init(init_key, training.u.shape[-1])
        fit = Fit(params, sequence_vae.make_optimizer(vae).init(params))
        return State(fit, key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, Metrics]:
        def step(carry: tuple[Fit, jax.Array], index: jax.Array):
            fit, key = carry
            key, window_key, loss_key = jax.random.split(key, 3)
            windows = sample(training, vae.window, config.batch_size, window_key)
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
        return state, Metrics(jnp.zeros((), jnp.int32), {}, metrics)

    return settings.Training(
        init=init,
        update=update,
        evaluate=partial(evaluate, config, model, held_out),
        steps_per_update=GRADIENT_STEPS,
        unit="gradient steps",
        score=SCORE,
    )


def fitting(config: Config, data: Data) -> Config:
    """The configuration with the sizes of the data. Raises ValueError if its noise does not fit."""
    env = replace(config.env, channels=data.y.shape[-1], num_inputs=data.u.shape[-1])
    if env.noise == "poisson" and (np.any(data.y < 0) or np.any(data.y != np.round(data.y))):
        raise ValueError("y holds numbers that are not counts; choose env.noise gaussian")
    if env.noise == "none":
        raise ValueError("recorded data are noisy; choose env.noise gaussian or poisson")
    return replace(config, env=env)


def split(data: Data, share: float, least: int) -> tuple[Data, Data]:
    """Training data and held-out data: the last episodes, or the end of the only episode.

    Raises ValueError unless both have at least `least` steps in a row.
    """
    episodes, steps = data.y.shape[:2]
    if not 0 < share < 1:
        raise ValueError(f"validation_share is {share}; expected a share between 0 and 1")
    if episodes > 1:
        first = episodes - max(1, round(share * episodes))
        parts = Data(*(x[:first] for x in data)), Data(*(x[first:] for x in data))
    else:
        first = steps - round(share * steps)
        parts = Data(*(x[:, :first] for x in data)), Data(*(x[:, first:] for x in data))
    shortest = min(part.y.shape[1] for part in parts)
    if shortest < least:
        raise ValueError(
            f"only {shortest} steps in a row in the training or held-out data; expected at least "
            f"{least}: record longer, or choose a smaller vae.window or another validation_share"
        )
    return parts


def sample(data: Data, length: int, count: int, key: jax.Array) -> Window:
    """`count` windows of `length` steps, drawn uniformly from the data: `[B, W]`."""
    episodes, steps = data.y.shape[:2]
    episode_key, start_key = jax.random.split(key)
    episode = jax.random.randint(episode_key, (count, 1), 0, episodes)
    start = jax.random.randint(start_key, (count, 1), 0, steps - length + 1)
    place = start + jnp.arange(length)[None]
    y, u = jnp.asarray(data.y), jnp.asarray(data.u)
    before = jnp.where((place > 0)[..., None], u[episode, jnp.maximum(place - 1, 0)], 0.0)
    return Window(y[episode, place], before, jnp.ones((count, length), bool))


def held_out_r2(config: Config, model: Any, held_out: Data, fit: Fit) -> jax.Array:
    """R² `[K + 1]` of forecasts of the held-out data, averaged over episodes."""
    known = Known(jnp.asarray(config.env.dt), jnp.zeros(0), jnp.zeros(0), ())

    def of_episode(y: jax.Array, u: jax.Array) -> jax.Array:
        expected = latent_filter.forecast(model, fit.params, known, y, u, AHEAD)
        return forecast_r2(expected[SKIPPED:], y[SKIPPED:])

    y, u = jnp.asarray(held_out.y), jnp.asarray(held_out.u)
    return jnp.mean(jax.vmap(of_episode)(y, u), axis=0)


def evaluate(
    config: Config,
    model: Any,
    held_out: Data,
    agents: list[AgentState],
    seeds: list[int],
    keys: list[jax.Array],
) -> settings.Evaluation:
    """R² of forecasts of the held-out data, for every seed."""
    r2_of = jax.jit(partial(held_out_r2, config, model, held_out))

    def measure(fit: Fit, key: jax.Array) -> dict[str, Any]:
        del key  # nothing is drawn
        r2 = r2_of(fit)
        return {SCORE: float(r2[10]), "r2": np.asarray(r2).tolist()}

    return scores.measured(agents, seeds, keys, SCORE, measure, table)


def table(content: dict[str, Any]) -> Table:
    """A row for each seed."""
    caption = "R² of observations so many steps ahead, in the held-out part of the record"
    made = Table(title="forecasts of recorded data", caption=caption)
    for heading in ("seed", *("now" if k == 0 else f"+{k}" for k in SHOWN)):
        made.add_column(heading, justify="right")
    for row in content["seeds"]:
        made.add_row(str(row["seed"]), *(f"{row['r2'][k]:.3f}" for k in SHOWN))
    return made


def draw_all(directory: Path, config: Config, agents: list[AgentState]) -> list[Path]:
    """Writes a picture of the learned dynamics and the forecasts of each seed, and the arrays."""
    data = load(config.data)
    config = fitting(config, data)
    model = make_model(config)
    _, held_out = split(data, config.validation_share, config.vae.window + SKIPPED + AHEAD)
    r2_of = jax.jit(partial(held_out_r2, config, model, held_out))
    found = learned(config, model, agents[0], data)
    found["r2"] = np.stack([np.asarray(r2_of(agent)) for agent in agents])
    paths = [directory / "recorded.png", directory / "recorded.npz"]
    draw(paths[0], config, model, agents[0], held_out, found)
    write_arrays(paths[1], found)
    return paths


def draw(
    path: Path, config: Config, model: Any, fit: Fit, held_out: Data, found: dict[str, np.ndarray]
) -> None:
    """The learned field with the filtered states of the held-out data, and R² of the forecasts."""
    figure = Figure(figsize=(9, 4.4), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    y, u = jnp.asarray(held_out.y[0]), jnp.asarray(held_out.u[0])
    states = np.asarray(jax.jit(partial(latent_filter.states, model))(fit.params, y, u))
    axis, field = found["axis"], found["field"]
    left.streamplot(axis, axis, field[..., 0].T, field[..., 1].T, color=GREY, linewidth=0.8)
    left.plot(*states[:, :2].T, color=BLUE, linewidth=0.8, alpha=0.7)
    left.set(xlabel="latent 1", ylabel="latent 2", aspect="equal")
    title = f"learned dynamics and the filtered state, seed {config.run.seeds[0]}"
    left.set_title(title, loc="left", size=10)
    for seed, of_seed in zip(config.run.seeds, found["r2"], strict=True):
        right.plot(of_seed, label=f"seed {seed}")
    right.set(xlabel="steps ahead", ylabel="R²", ylim=(None, 1))
    right.set_title("forecasts of the held-out part", loc="left", size=10)
    legend_below(figure, right.get_legend_handles_labels()[0])
    save(figure, path)


def learned(config: Config, model: Any, fit: Fit, data: Data) -> dict[str, np.ndarray]:
    """What a model makes of all data, by name.

    `states` `[E, T, d]` that its filter finds; `forecasts` `[E, T, K + 1, n]` after each step; its
    `field` `[25, 25, d]` where the first two dimensions are on `axis` `[25]` and the others at
    their mean; the matrix `decoder` `[n, d]` and `offset` `[n]` of its decoder.
    """
    known = Known(jnp.asarray(config.env.dt), jnp.zeros(0), jnp.zeros(0), ())

    @jax.jit
    def of_episode(y: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        ahead = latent_filter.forecast(model, fit.params, known, y, u, SHOWN[-1])
        return latent_filter.states(model, fit.params, y, u), ahead

    found = [of_episode(*map(jnp.asarray, pair)) for pair in zip(data.y, data.u, strict=True)]
    states, forecasts = (np.stack([np.asarray(x[i]) for x in found]) for i in (0, 1))
    axis = np.linspace(-1.1, 1.1, 25) * np.abs(states[..., :2]).max()
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1)
    rest = np.zeros((*points.shape[:2], model.latent - 2)) + states[..., 2:].mean((0, 1))
    everywhere = jnp.asarray(np.concatenate([points, rest], -1), jnp.float32)
    return {
        "states": states,
        "forecasts": forecasts,
        "axis": axis,
        "field": np.asarray(model.velocity(fit.params, everywhere)),
        "decoder": np.asarray(fit.params["decoder"]["matrix"]),
        "offset": np.asarray(fit.params["decoder"]["offset"]),
    }
