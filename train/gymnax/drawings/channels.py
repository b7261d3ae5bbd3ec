"""Drawings of games that show cells in channels: those of MinAtar, and Pong.

A picture is the observation: each channel has a colour, and a legend says what it is.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from PIL import Image, ImageDraw

from envs.snake.pictures.tiles import rgb
from train.gymnax.drawings.canvas import INK, PALE, WIDTH, font

EMPTY, LINE = "#16202b", "#1e2a36"
SKY, BLUE, GREEN, YELLOW = "#56b4e9", "#0072b2", "#009e73", "#f0e442"
ORANGE, RED, PINK = "#e69f00", "#d55e00", "#cc79a7"
WHITE, GREY = "#ffffff", "#66717d"
"""Colours that the colour-blind tell apart (Okabe & Ito 2008), for the dark."""
MARGIN, ROW, SWATCH, GAP = 10, 22, 13, 7  # of the legend, pixels
SMALLEST = 20  # pixels of a cell that has a line around it


class Channel(NamedTuple):
    name: str  # in the legend; "": not there
    colour: str
    behind: bool = False
    """Under all others, as trails are; of the rest the later channels are on top."""


Channels = tuple[Channel, ...]
TRAIL = Channel("trail", GREY, behind=True)
ASTERIX = (Channel("player", SKY), Channel("enemy", RED), TRAIL, Channel("gold", YELLOW))
BREAKOUT = (
    Channel("paddle", SKY),
    Channel("ball", WHITE),
    TRAIL,
    Channel("brick", ORANGE, behind=True),
)
FREEWAY = (
    Channel("chicken", SKY),
    Channel("car", RED),
    Channel("speed 1: fastest", "#f2dcae", behind=True),
    Channel("speed 2", "#c9b387", behind=True),
    Channel("speed 3", "#a08b62", behind=True),
    Channel("speed 4", "#786540", behind=True),
    Channel("speed 5: slowest", "#514120", behind=True),
)
SEAQUEST = (
    Channel("submarine, front", SKY),
    Channel("submarine, back", BLUE),
    Channel("own bullet", WHITE),
    TRAIL,
    Channel("enemy bullet", PINK),
    Channel("fish", ORANGE),
    Channel("enemy submarine", RED),
    Channel("oxygen", GREEN),
    Channel("divers rescued", "#b9e3a8"),
    Channel("diver", YELLOW),
)
SPACE_INVADERS = (
    Channel("cannon", SKY),
    Channel("", RED, behind=True),  # all aliens, which the next two channels tell apart
    Channel("alien, to the left", ORANGE),
    Channel("alien, to the right", RED),
    Channel("own bullet", WHITE),
    Channel("enemy bullet", PINK),
)
PONG = (Channel("paddles", SKY), Channel("ball", WHITE), Channel("ball before", GREY, behind=True))


def frames_of(channels: Channels) -> Callable[[Any, Any, Any], np.ndarray]:
    """The drawing, of `(env, params, state)`, of a game that shows these channels."""
    return lambda env, params, state: picture(
        np.asarray(_observation(env, params, state)), channels
    )


def picture(cells: np.ndarray, channels: Channels) -> np.ndarray:
    """An observation `[R, C, K]` as a picture uint8 `[H, W, 3]`; cells that are not 0 are set.

    Raises ValueError for another number of channels.
    """
    rows, cols, count = cells.shape
    if count != len(channels):
        raise ValueError(f"the observation has {count} channels; expected {len(channels)}")
    size = WIDTH // cols
    line = 1 if size >= SMALLEST else 0
    cell_pixels = np.empty((rows, size, cols, size, 3), np.uint8)
    cell_pixels[:] = rgb(LINE)
    cell_pixels[:, line:, :, line:] = rgb(EMPTY)
    for i in sorted(range(count), key=lambda i: not channels[i].behind):
        row, col = np.nonzero(cells[:, :, i])
        cell_pixels[row, line:, col, line:] = rgb(channels[i].colour)
    board = cell_pixels.reshape(rows * size, cols * size, 3)
    spare = WIDTH - cols * size
    board = np.pad(board, ((0, 0), (spare // 2, spare - spare // 2), (0, 0)))
    return np.concatenate([board, legend(channels)])


@lru_cache(maxsize=4)
def legend(channels: Channels) -> np.ndarray:
    """The colours and names, in as many columns as fit, uint8 `[H, W, 3]`."""
    named_channels, room = [channel for channel in channels if channel.name], WIDTH - 2 * MARGIN
    widest = max(font(13).getlength(channel.name) for channel in named_channels)
    columns = max(1, min(len(named_channels), int(room / (SWATCH + 2 * GAP + widest))))
    rows, width = -(-len(named_channels) // columns), room // columns
    image = Image.new("RGB", (WIDTH, rows * ROW + MARGIN), INK)
    pen = ImageDraw.Draw(image)
    for i, channel in enumerate(named_channels):
        row, col = divmod(i, columns)
        left, middle = MARGIN + col * width, MARGIN // 2 + row * ROW + ROW // 2
        top = middle - SWATCH // 2
        pen.rectangle((left, top, left + SWATCH - 1, top + SWATCH - 1), channel.colour)
        pen.text((left + SWATCH + GAP, middle), channel.name, PALE, font(13), anchor="lm")
    return np.asarray(image)


@partial(jax.jit, static_argnums=0)
def _observation(env: Any, params: Any, state: Any) -> jax.Array:
    return env.get_obs(state, params)
