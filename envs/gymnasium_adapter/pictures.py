"""What an environment looks like, for `render_mode="rgb_array"`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from PIL import Image

from envs.durotaxis import Durotaxis
from envs.durotaxis.pictures import drawing as colony
from envs.durotaxis.pictures import scenery
from envs.grid import Grid
from envs.grid import drawing as maze
from envs.snake import Snake
from envs.snake.pictures import drawing as snake
from envs.two_snake import TwoSnake
from envs.two_snake import drawing as duel
from envs.wrappers import Wrapper


class Drawing(NamedTuple):
    draw: Callable[[Any, Any, Any], Image.Image]  # of an environment, its params and its state
    fps: float  # at which steps are watched best


def _draw_colony(env: Durotaxis, params: Any, state: Any) -> Image.Image:
    stiffness = scenery.ground(state.law, params.field, params.width, params.height)
    return colony.draw(stiffness, state.colony, step=int(state.time))


DRAWINGS: dict[type, Drawing] = {
    Snake: Drawing(lambda env, params, state: snake.draw(env.board, state), 20),
    TwoSnake: Drawing(lambda env, params, state: duel.draw(env.board, state), 20),
    Grid: Drawing(lambda env, params, state: maze.picture(env.layout, int(state.position)), 10),
    Durotaxis: Drawing(_draw_colony, 8),
}
"""By environment, subclasses included; others have no picture. A maze is drawn as its layout."""


def metadata(env: Any) -> dict[str, Any]:
    """`render_modes` and `render_fps`; there are no modes where there is no drawing."""
    drawing = _drawing(env)
    if drawing is None:
        return {"render_modes": []}
    return {"render_modes": ["rgb_array"], "render_fps": drawing.fps}


def check_mode(env: Any, render_mode: str | None) -> None:
    """Raises ValueError for a mode in which an environment cannot be drawn."""
    modes = [None, *metadata(env)["render_modes"]]
    if render_mode not in modes:
        expected = " or ".join(map(repr, modes))
        raise ValueError(f"render_mode of {env.name} is {render_mode!r}; expected {expected}")


def frame(env: Any, params: Any, state: Any) -> np.ndarray:
    """The picture of one state, uint8 `[H, W, 3]`.

    Raises ValueError for an environment that has no drawing.
    """
    drawing = _drawing(env)
    if drawing is None:
        raise ValueError(f"{env.name} has no drawing; expected one with render mode rgb_array")
    while isinstance(env, Wrapper):
        env, params, state = env.env, env.inner(params), state.env
    image = drawing.draw(env, params, jax.device_get(state))
    return np.array(image.convert("RGB"))


def _drawing(env: Any) -> Drawing | None:
    while isinstance(env, Wrapper):
        env = env.env
    return next((drawing for kind, drawing in DRAWINGS.items() if isinstance(env, kind)), None)
