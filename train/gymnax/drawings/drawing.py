"""Films of episodes: what each environment looks like.

To add an environment, write a function `(env, params, state) -> picture`, uint8 `[H, W, 3]` of one
size for all states of an episode, and add a line to `DRAWINGS`.
"""

import math
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnax.environments.bsuite import catch, deep_sea
from gymnax.environments.classic_control import (
    acrobot,
    cartpole,
    continuous_mountain_car,
    mountain_car,
    pendulum,
)
from gymnax.environments.minatar import asterix, breakout, freeway, seaquest, space_invaders
from gymnax.environments.misc import (
    frozen_lake,
    meta_maze,
    point_robot,
    pong,
    reacher,
    rooms,
    swimmer,
)
from PIL import Image

from envs import gif
from envs.grid import Grid
from envs.snake import Snake
from envs.snake.pictures import drawing as snake
from envs.two_snake import TwoSnake
from envs.two_snake import drawing as two_snake
from envs.vector_field import CircularCartPole
from envs.wrappers import ActionRepeat, Wrapper
from train.gymnax.drawings import channels, classic_control, mazes, planes
from train.gymnax.drawings.canvas import add_caption

MOST_FRAMES = 300  # of a film; of longer episodes every second, third, ... state is shown
LONGEST = 0.1  # seconds that a frame is shown for, at most, where states are left out
HOLD = 2.0  # seconds that a film shows its last frame
SAMPLES, COLOURS = 12, 128  # frames that the colours of a film are taken from, and how many


class Drawing(NamedTuple):
    """How an environment is drawn."""

    frame: Callable[[Any, Any, Any], np.ndarray]  # of (env, params, state): uint8 [H, W, 3]
    speed: float  # steps a second that are watched best; where time is physical, as it passes


DRAWINGS: dict[type, Drawing] = {
    cartpole.CartPole: Drawing(classic_control.cart_pole, 50),
    acrobot.Acrobot: Drawing(classic_control.acrobot, 15),
    pendulum.Pendulum: Drawing(classic_control.pendulum, 20),
    mountain_car.MountainCar: Drawing(classic_control.mountain_car, 30),
    continuous_mountain_car.ContinuousMountainCar: Drawing(classic_control.mountain_car, 30),
    asterix.MinAsterix: Drawing(channels.frames_of(channels.ASTERIX), 15),
    breakout.MinBreakout: Drawing(channels.frames_of(channels.BREAKOUT), 15),
    freeway.MinFreeway: Drawing(channels.frames_of(channels.FREEWAY), 15),
    seaquest.MinSeaquest: Drawing(channels.frames_of(channels.SEAQUEST), 15),
    space_invaders.MinSpaceInvaders: Drawing(channels.frames_of(channels.SPACE_INVADERS), 15),
    pong.Pong: Drawing(channels.frames_of(channels.PONG), 20),
    catch.Catch: Drawing(mazes.catch, 4),
    deep_sea.DeepSea: Drawing(mazes.deep_sea, 4),
    frozen_lake.FrozenLake: Drawing(mazes.frozen_lake, 5),
    rooms.FourRooms: Drawing(mazes.rooms, 10),
    meta_maze.MetaMaze: Drawing(mazes.rooms, 10),
    point_robot.PointRobot: Drawing(planes.point_robot, 15),
    reacher.Reacher: Drawing(planes.reacher, 20),
    swimmer.Swimmer: Drawing(planes.swimmer, 20),
    Grid: Drawing(mazes.grid, 10),
    CircularCartPole: Drawing(classic_control.circular_cart_pole, 200),
}
"""By environment, subclasses included."""


SNAKES: dict[type, tuple[Any, Collection[str]]] = {
    Snake: (snake, snake.LOOKS),
    TwoSnake: (two_snake, two_snake.FRAMES),
}
"""Environments whose module draws and films them itself, and the endings that it knows."""


def can_draw(env: Any) -> bool:
    """Whether there is a drawing of an environment, or of the one inside of our wrappers."""
    while isinstance(env, Wrapper):
        env = env.env
    return _entry_for(env, DRAWINGS) is not None or _entry_for(env, SNAKES) is not None


def frame(env: Any, params: Any, state: Any) -> np.ndarray:
    """The picture of one state, uint8 `[H, W, 3]`, without a caption but for snakes.

    Raises ValueError for an environment that cannot be drawn, see `can_draw`.
    """
    check(env)
    env, params, state = _unwrap(env, params, state)
    drawing = _entry_for(env, DRAWINGS)
    if drawing is None:
        module, _ = _entry_for(env, SNAKES)
        return np.asarray(module.draw(env.board, state))
    return drawing.frame(env, params, state)


def film(env: Any, params: Any, states: Any, path: str | Path, ending: str = "") -> None:
    """Writes the GIF of one episode, the states `[S, ...]` of which are in NumPy arrays.

    Each frame has the number of its step, the last one also `ending`, a few words on how the
    episode ended. Of an episode of more than `MOST_FRAMES` states every second, third, ... is
    shown, and the last two always. Where actions are repeated a state is shown for so many steps.

    Raises ValueError for an environment that cannot be drawn, see `can_draw`, and for no states.
    """
    check(env)
    repeats = _repeats(env)
    env, params, states = _unwrap(env, params, states)
    drawing, count = _entry_for(env, DRAWINGS), len(states.time)
    if not count:
        raise ValueError("there are no states to draw; expected at least one")
    speed = (gif.FASTEST if drawing is None else drawing.speed) / repeats
    stride = max(math.ceil(count / MOST_FRAMES), math.ceil(speed / gif.FASTEST))
    # two snakes show by their last but one state where one of them died
    frame_indices = sorted({*range(0, count, stride), max(0, count - 2), count - 1})
    states = jax.tree.map(lambda x: np.asarray(x)[frame_indices], states)
    if drawing is None:
        _film_snakes(env, states, path, ending)
    else:
        seconds = min(stride / speed, max(LONGEST, 1 / speed))
        gif.write(path, *_frames(env, params, states, ending, drawing, seconds))


def check(env: Any) -> None:
    """Raises ValueError for an environment that cannot be drawn."""
    if not can_draw(env):
        raise ValueError(
            f"{env.name} cannot be drawn; add its drawing to DRAWINGS in "
            "train/gymnax/drawings/drawing.py"
        )


def _frames(
    env: Any, params: Any, states: Any, ending: str, drawing: Drawing, seconds: float
) -> tuple[Iterator[tuple[np.ndarray, float]], np.ndarray]:
    """The frames and the colours of a film, as `gif.write` expects them."""
    last = len(states.time) - 1

    def picture(i: int) -> Image.Image:
        state = jax.tree.map(lambda x: x[i], states)
        pixels = drawing.frame(env, params, state)
        return add_caption(pixels, env.name, int(state.time), ending if i == last else "")

    sample_indices = sorted({round(i) for i in np.linspace(0, last, SAMPLES)})
    colours = gif.commonest_colours([np.asarray(picture(i)) for i in sample_indices], COLOURS)
    indexed = gif.quantizer(colours)
    times = [seconds] * last + [HOLD]
    return ((np.asarray(indexed(picture(i))), time) for i, time in enumerate(times)), colours


def _film_snakes(env: Any, states: Any, path: str | Path, ending: str) -> None:
    """An ending that their module knows decides the colours, another one is only written."""
    module, endings = _entry_for(env, SNAKES)
    captions = [*[""] * (len(states.time) - 1), ending]
    is_known = ending != "" and ending in endings
    options = {"ending": ending} if is_known else {"captions": captions}
    module.film(env.board, states, path, **options)


def _unwrap(env: Any, params: Any, state: Any) -> tuple[Any, Any, Any]:
    """What is inside of our wrappers."""
    while isinstance(env, Wrapper):
        env, params, state = env.env, env.inner(params), state.env
    return env, params, state


def _repeats(env: Any) -> int:
    """The steps of what is inside of our wrappers between two states, as actions are repeated."""
    count = 1
    while isinstance(env, Wrapper):
        count *= env.num_repeats if isinstance(env, ActionRepeat) else 1
        env = env.env
    return count


def _entry_for(env: Any, table: dict[type, Any]) -> Any:
    """The entry of an environment, None if there is none."""
    return next((entry for kind, entry in table.items() if isinstance(env, kind)), None)
