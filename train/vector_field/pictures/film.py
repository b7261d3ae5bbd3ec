"""A film of one experiment: how the learned field approaches the true one.

Axes: M streamlines, L points of each, T newest states, N moments.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from PIL import Image

from envs import gif
from jaxrl.numerics.trees import take
from jaxrl.types import AgentState
from train.host.compilation import compiled
from train.host.machine.progress import Display
from train.host.numbers import quantity
from train.host.showing.pictures import VERMILLION
from train.host.training import Training
from train.vector_field.config import Config
from train.vector_field.experiment.field_errors import relative_error
from train.vector_field.experiment.reach import embed, grid_points, project
from train.vector_field.factories import make_env, make_learner
from train.vector_field.pictures.maps import SPEEDS, error_name, jumps

FRAMES = 41
"""Largest number of frames, including the initial state."""
ACROSS, POINTS, LENGTH = 17, 13, 1.7
"""Streamlines along each axis; L; length of one at mean speed, in spacings of their starts."""
TAIL = 150
"""T."""
FRAME_SECONDS, LAST_SECONDS = 0.15, 2.5
"""Seconds that a frame is shown; the same for the last frame."""
EDGES = {"left": 0.03, "right": 0.97, "bottom": 0.03, "top": 0.86, "wspace": 0.06}


class Moment(NamedTuple):
    """The content of a frame."""

    samples: int
    error: float
    lines: np.ndarray  # [M, L, 2]
    trail: np.ndarray  # [T, 2], newest last


def film(
    directory: Path, config: Config, make_training: Callable[[Config], Training], updates: int
) -> Path:
    """Writes `learning.gif` into a run directory: the first field, first policy and first seed.

    Repeats the experiment up to `updates`, with the training of `make_training`. It does not depend
    on the other policies and fields of the run, whose random numbers are independent of its own.
    """
    name, field = config.policies[0], config.env.fields[0]
    config = replace(config, policies=(name,), env=replace(config.env, fields=(field,)))
    path = directory / "learning.gif"
    with Display("film") as display:
        true, moments = repeat_experiment(config, make_training(config), updates, display)
        display.end()
        display.say(f"film: drawing {quantity(len(moments), 'frames')}")
        title = f"{field.replace('_', ' ')}, {name}, seed {config.run.seed}"
        if config.env.dimension > 2:
            title += f"; the plane of coordinates {config.plane[0]} and {config.plane[1]}"
        measure = error_name(config.env.dimension)
        write(path, true, moments, config.box, title, measure)
    return path


def repeat_experiment(
    config: Config, training: Training, updates: int, display: Display
) -> tuple[np.ndarray, list[Moment]]:
    """`(streamlines of the true field [M, L, 2], moments)` of a run of one field and one policy."""
    (name,) = config.policies
    stride = -(-updates // (FRAMES - 1)) or 1
    display.say(f"film: compiling the experiment of seed {config.run.seed}")
    state = jax.jit(training.init)(compiled.keys_of(config.run.seed)[0])
    look = jax.jit(partial(streamlines_of, config))
    update = jax.jit(training.update).lower(state).compile()

    def moment(done: int) -> Moment:
        _, lines, error = look(state.agent[name])
        trail = project(state.experiments[name].trail[0, 0, -TAIL:], config.plane)
        samples = done * training.steps_per_update
        return Moment(samples, float(error), np.asarray(lines), np.asarray(trail))

    moments = [moment(0)]
    display.begin(0.0, training.unit)
    began = time.perf_counter()
    for done in range(1, updates + 1):
        state, _ = update(state)
        if done % stride == 0 or done == updates:
            moments.append(moment(done))
            samples = moments[-1].samples
            rate = samples / (time.perf_counter() - began)
            display.update(done / updates, samples, rate, (training.score.name, moments[-1].error))
    return np.asarray(look(state.agent[name])[0]), moments


def streamlines_of(config: Config, agents: AgentState) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`(true streamlines [M, L, 2], learned ones [M, L, 2], field error)`.

    `agents` have axes for policies and fields, `[1, 1, ...]`.
    """
    env, learner = make_env(config), make_learner(config)
    agent = take(agents, (0, 0))
    world, points = learner.world(agent), grid_points(config.box)
    gap = 2 * config.box / ACROSS
    axis = jnp.linspace(gap / 2 - config.box, config.box - gap / 2, ACROSS)
    begin = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    project_field = partial(field_on_plane, config)
    true, learned = (
        project_field(partial(env.velocity, params=world)),
        project_field(partial(learner.velocity, agent)),
    )
    pace = LENGTH * gap / (POINTS - 1)
    pace = pace / jnp.sqrt(jnp.mean(jnp.linalg.norm(true(points), axis=-1)))
    everywhere = jnp.ones(points.shape[:2])
    error = relative_error(learned(points), true(points), everywhere)
    return streamlines(true, begin, pace), streamlines(learned, begin, pace), error


def field_on_plane(config: Config, velocity: Callable[[jax.Array], jax.Array]) -> Callable:
    """A field as one of the plane that is shown, `[..., 2] -> [..., 2]`."""
    to_state = lambda z: embed(z, config.env.dimension, config.plane)
    return lambda z: project(velocity(to_state(z)), config.plane)


def streamlines(
    velocity: Callable[[jax.Array], jax.Array], begin: jax.Array, pace: jax.Array
) -> jax.Array:
    """`[M, L, 2]`: from `begin` `[M, 2]` along `velocity`, in steps of `pace` times √speed.

    So slow streamlines stay visible beside fast ones, while their lengths still differ.
    """

    def displacement(z: jax.Array) -> jax.Array:
        v = velocity(z)
        return pace * v / jnp.sqrt(jnp.linalg.norm(v, axis=-1, keepdims=True) + 1e-9)

    def step(z: jax.Array, _):
        return z + displacement(z + displacement(z) / 2), z

    _, path = jax.lax.scan(step, begin, length=POINTS)
    return jnp.swapaxes(path, 0, 1)


def write(
    path: Path,
    true: np.ndarray,
    moments: Sequence[Moment],
    box: float,
    title: str,
    measure: str = "error",
) -> None:
    """Writes the GIF; both sides have the same colour scale. `measure` names the error."""
    longest = float(lengths(true).max())
    table = colour_table()
    quantized = gif.quantizer(table)

    def frames() -> Iterator[tuple[np.ndarray, float]]:
        for i, moment in enumerate(moments):
            frame = image(true, moment, box, longest, title, measure)
            plain = np.array(quantized(frame))
            plain[(np.asarray(frame) == 255).all(axis=-1)] = len(table) - 1  # not nearly white
            yield plain, LAST_SECONDS if i == len(moments) - 1 else FRAME_SECONDS

    gif.write(path, frames(), table)


def colour_table() -> np.ndarray:
    """`[252, 3]` uint8: the colours of the frames in shades towards white, and white last."""
    kinds = (
        (SPEEDS(np.linspace(0, 1, 44))[:, :3], 4),
        ([to_rgb(VERMILLION)], 45),
        ([(0, 0, 0)], 30),
    )
    shades = [
        1 - (1 - np.asarray(colour)) * part
        for colours, count in kinds
        for colour in colours
        for part in np.linspace(0, 1, count + 1)[1:]
    ]
    return np.round(255 * np.array([*shades, np.ones(3)])).astype(np.uint8)


def image(
    true: np.ndarray, moment: Moment, box: float, longest: float, title: str, measure: str
) -> Image.Image:
    """A frame: the true and the learned field, each with the newest path of the state."""
    figure = Figure(figsize=(8.4, 4.75), dpi=100)
    figure.text(0.03, 0.94, title, weight="bold", size=12)
    left, right = figure.subplots(1, 2, gridspec_kw=EDGES)
    for axes, lines, name in ((left, true, "true"), (right, moment.lines, "learned")):
        axes.set(xlim=(-box, box), ylim=(-box, box), xticks=[], yticks=[], aspect="equal")
        axes.set_title(name, size=11, loc="left")
        draw_streamlines(axes, lines, longest)
        draw_trail(axes, moment.trail, box)
    caption = f"{quantity(moment.samples, 'samples')}, {measure} {moment.error:.2f}"
    right.set_title(caption, size=11, loc="right")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())


def lengths(lines: np.ndarray) -> np.ndarray:
    """`[M, L - 1]`: lengths of the segments of `lines` `[M, L, 2]`, proportional to √speed."""
    return np.linalg.norm(np.diff(lines, axis=1), axis=-1)


def draw_streamlines(axes: Axes, lines: np.ndarray, longest: float) -> None:
    """Draws streamlines that get thicker along their direction, coloured by speed."""
    pieces = np.stack([lines[:, :-1], lines[:, 1:]], axis=2).reshape(-1, 2, 2)
    widths = np.tile(np.linspace(0.3, 2.8, POINTS - 1), len(lines))
    style = {"cmap": SPEEDS, "norm": Normalize(0, longest), "capstyle": "round"}
    axes.add_collection(
        LineCollection(list(pieces), linewidths=widths, array=lengths(lines).ravel(), **style)
    )


def draw_trail(axes: Axes, trail: np.ndarray, box: float) -> None:
    """Draws the path of the state, fading into the past; a dot marks the current state.

    A dot at the edge is whole, and there is none outside of ± `box`.
    """
    pieces = np.stack([trail[:-1], trail[1:]], axis=1)
    strength = np.linspace(0, 0.9, len(pieces))[:, None]
    colours = np.hstack([np.tile(to_rgb(VERMILLION), (len(pieces), 1)), strength])
    is_drawn = ~jumps(trail, box)
    lines = LineCollection(
        list(pieces[is_drawn]), colors=colours[is_drawn], linewidths=1.6, zorder=3
    )
    axes.add_collection(lines)
    style = {"markersize": 7, "color": VERMILLION, "markeredgecolor": "white", "zorder": 4}
    if np.all(np.abs(trail[-1]) <= box):
        axes.plot(*trail[-1], "o", clip_on=False, **style)
