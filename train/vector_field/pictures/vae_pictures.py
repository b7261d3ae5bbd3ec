"""Pictures of a sequence VAE that was fitted to recorded data, and what they show as arrays."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from jaxrl.dynamics.networks import latent_filter
from jaxrl.types import AgentState
from train.host.files.whole_files import write_arrays
from train.host.showing.pictures import BLUE, GREY, legend_below, save
from train.vector_field.config import Config
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.recordings import Data
from train.vector_field.data.step_time import step_length_text
from train.vector_field.factories import make_model
from train.vector_field.pictures import series
from train.vector_field.recorded import baselines
from train.vector_field.recorded.vae_fit import (
    SHOWN,
    Fit,
    compiled_r2,
    constants_of,
    match_data_sizes,
    simple_r2,
    split,
)


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
    e, steps = series.shown_part(data, held_out)
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
