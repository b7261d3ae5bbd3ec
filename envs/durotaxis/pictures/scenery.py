"""The background of every picture of a colony: the ground, the goal and a legend.

Two views are side by side: the whole ground, and a close-up that follows the colony.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from envs.durotaxis import substrate
from envs.durotaxis.env import goal
from envs.durotaxis.pictures import symbols
from envs.durotaxis.pictures.symbols import INK, SCALE, WHITE
from envs.durotaxis.placement import Placement, place
from envs.durotaxis.substrate import Law
from envs.durotaxis.units import PIXELS, Units

WIDEST, HIGHEST, CLOSE_UP = 630, 420, 420  # pixels: at most, of the ground; side of the close-up
STRIP, LEGEND, GAP = 44, 46, 12  # pixels above, below and around the views
LEVELS = 96  # colours of the ground
LOG_SCALE_RATIO = 50.0  # of stiffest to softest ground; above it colours are logarithmic
FRAME = (35, 49, 64)
VIRIDIS = np.array(  # by S. van der Walt and N. Smith (2015), public domain; 17 of its 256 colours
    [
        *[(68, 1, 84), (72, 24, 106), (71, 45, 123), (66, 64, 134), (59, 82, 139)],
        *[(51, 99, 141), (44, 114, 142), (38, 130, 142), (33, 145, 140), (31, 160, 136)],
        *[(40, 174, 128), (63, 188, 115), (94, 201, 98), (132, 212, 75), (173, 220, 48)],
        *[(216, 226, 25), (253, 231, 37)],
    ],
    np.float64,
)


class View(NamedTuple):
    """A part of the ground, shown in a box of a picture."""

    box: tuple[int, int, int, int]  # left, top, right, bottom, pixels
    scale: float  # pixels per px of the ground
    x: float  # px at the left side
    y: float  # px at the top

    def place(self, points: np.ndarray) -> np.ndarray:
        """The pixels of the picture at which points of the ground `[..., 2]`, px, lie."""
        return (points - (self.x, self.y)) * self.scale + self.box[:2]


class Scene(NamedTuple):
    """The ground as it is drawn behind every position of an episode."""

    image: Image.Image  # all but the colony, the close-up and the caption
    ground: Image.Image  # a pixel for each px
    whole: View
    reach: float  # side of the close-up, px
    goal: np.ndarray  # [2, 2], the ends of its line, px
    placement: Placement
    units: Units

    def close_up(self, x: float, y: float) -> View:
        """The close-up around a point, px."""
        right, top = self.image.width - GAP, STRIP
        box = (right - CLOSE_UP, top, right, top + CLOSE_UP)
        scale = CLOSE_UP / self.reach
        return View(box, scale, x - self.reach / 2, y - self.reach / 2)


def ground(law: Law, field: np.ndarray, width: float, height: float) -> np.ndarray:
    """The stiffness of every cell of the ground, float32 `[H, W]`; see `substrate`."""
    x, y = np.meshgrid(np.arange(int(width)), np.arange(int(height)))
    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    stiffness = jax.jit(substrate.intensity)(law, jnp.asarray(field), x, y, width, height)
    return np.asarray(stiffness)


def make_scene(
    stiffness: np.ndarray,
    reach: float,
    placement: Placement | None = None,
    units: Units = PIXELS,
) -> Scene:
    """The scene on ground of `stiffness` `[H, W]`; the close-up has a side of `reach` px.

    The stiffness is in `units`; the goal is that of `placement`, by default at the right.
    """
    height, width = stiffness.shape
    placement = placement or place("right", width, height)
    scale = min(WIDEST / width, HIGHEST / height)
    size = round(width * scale), round(height * scale)
    across, left = WIDEST + CLOSE_UP + 3 * GAP, GAP + (WIDEST - size[0]) // 2
    top = STRIP + (HIGHEST - size[1]) // 2
    image = Image.new("RGB", (across, STRIP + HIGHEST + LEGEND), FRAME)
    levels, is_log = shades(stiffness)
    cells = Image.fromarray(viridis(levels))
    image.paste(cells.resize(size, Image.Resampling.NEAREST), (left, top))
    whole = View((left, top, left + size[0], top + size[1]), scale, 0.0, 0.0)
    scene = Scene(image, cells, whole, reach, goal_line(placement), placement, units)
    draw_goal(image, whole, scene.goal)
    _draw_legend(image, stiffness, is_log, units)
    return scene


def goal_line(placement: Placement) -> np.ndarray:
    """The ends of the line of the goal in the picture, `[2, 2]` px."""
    x = float(goal(jnp.float32(placement.length)))
    return np.stack(
        placement.to_picture(np.array([x, x]), np.array([0.0, placement.breadth])), axis=-1
    )


def draw_goal(image: Image.Image, view: View, line: np.ndarray) -> None:
    """Draws the visible part of the dashed line of the goal, whose ends `[2, 2]` are px."""
    pen, visible_line = ImageDraw.Draw(image), clip_line(view.place(line), view.box)
    if visible_line is None:
        return
    start, end = visible_line
    length = float(np.hypot(*(end - start)))
    for at in np.arange(0, length, 12):
        dash = [start + min(stop, length) / length * (end - start) for stop in (at, at + 7)]
        for colour, width in ((INK, 5), (WHITE, 2)):
            pen.line([tuple(point.tolist()) for point in dash], colour, width)


def clip_line(line: np.ndarray, box: tuple[int, int, int, int]) -> np.ndarray | None:
    """The part of a line, by its ends `[2, 2]`, inside of a box; None: it lies outside.

    Liang and Barsky (1984).
    """
    start, along = line[0], line[1] - line[0]
    first, last = 0.0, 1.0
    for axis in (0, 1):
        for side, sign in ((box[axis], 1.0), (box[axis + 2], -1.0)):
            inside, rise = sign * (start[axis] - side), sign * along[axis]
            if rise == 0:
                if inside < 0:
                    return None
            elif rise > 0:
                first = max(first, -inside / rise)
            else:
                last = min(last, -inside / rise)
    return np.stack([start + first * along, start + last * along]) if first < last else None


def shades(stiffness: np.ndarray) -> tuple[np.ndarray, bool]:
    """Stiffness scaled from 0, softest, to 1, stiffest, and whether the scale is logarithmic.

    NaN, where there is no ground, stays.
    """
    low, high = float(np.nanmin(stiffness)), float(np.nanmax(stiffness))
    is_log = low > 0 and high / low > LOG_SCALE_RATIO
    values = np.log(stiffness) if is_log else stiffness
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return (values - low) / ((high - low) or 1.0), is_log


def viridis(shade: np.ndarray) -> np.ndarray:
    """Colours for numbers from 0 to 1, in `LEVELS` steps, the frame's for NaN: uint8 `[..., 3]`."""
    missing = np.isnan(shade)
    shade = np.where(missing, 0.0, shade)
    shade = np.round(np.asarray(shade) * (LEVELS - 1)) / (LEVELS - 1)
    knots = np.linspace(0, 1, len(VIRIDIS))
    colours = np.stack([np.interp(shade, knots, c) for c in VIRIDIS.T], -1).round()
    return np.where(missing[..., None], FRAME, colours).astype(np.uint8)


def _draw_legend(
    image: Image.Image, stiffness: np.ndarray, is_log: bool, units: Units = PIXELS
) -> None:
    """Draws the colour bar to the left, and what the symbols mean to the right."""
    pen, y, font = ImageDraw.Draw(image), image.height - LEGEND // 2, symbols.font(16)
    write = lambda x, text: pen.text((x, y), text, WHITE, font, anchor="lm")
    x, unit = GAP, f" {units.stiffness_name}".rstrip()
    for text in ("stiffness", f"{np.nanmin(stiffness):.3g}"):
        write(x, text)
        x += int(font.getlength(text)) + 8
    bar = viridis(np.linspace(0, 1, 150))[None].repeat(14, 0)
    image.paste(Image.fromarray(bar), (x, y - 7))
    write(x + 158, f"{np.nanmax(stiffness):.3g}{unit}" + " (log scale)" * is_log)
    x = image.width - GAP
    for text in ("goal", "hull", "centroid", "to be deleted", "new", "node"):
        x -= int(font.getlength(text))
        write(x, text)
        x -= 16
        _draw_symbol(image, text, x, y)
        x -= 26


def _draw_symbol(image: Image.Image, name: str, x: int, y: int) -> None:
    """One symbol of the legend, drawn as it is in the pictures."""
    box = (x - 10, y - 10, x + 10, y + 10)
    patch, pen = symbols.enlarge(image.crop(box))
    centre = np.full(2, 10.0 * SCALE)
    if name == "goal":
        for top in (2, 11):
            pen.line((centre[0], top * SCALE, centre[0], (top + 6) * SCALE), WHITE, 2 * SCALE)
    elif name == "hull":
        symbols.draw_dashes(pen, centre + SCALE * np.array([(-9, 0), (9, 0)]))
    elif name == "centroid":
        symbols.draw_star(pen, centre, 9.0 * SCALE)
    else:
        symbols.draw_node(pen, centre, 6.0 * SCALE, name == "new", name == "to be deleted")
    image.paste(symbols.shrink(patch), box[:2])
