"""Drawing of a colony: its nodes, edges, convex hull and centroid.

Colours are distinct for every kind of colour vision, and shapes repeat what they mean. For smooth
lines images are drawn `SCALE` times larger than shown: see `enlarge` and `shrink`.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SCALE = 3
INK, WHITE = (20, 24, 28), (255, 255, 255)
NEW, STAR = (240, 128, 40), (255, 96, 168)
Points = np.ndarray  # [P, 2], x and y in pixels of the image


def enlarge(image: Image.Image) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A copy `SCALE` times larger to draw on, and the pen for it."""
    size = image.width * SCALE, image.height * SCALE
    large = image.resize(size, Image.Resampling.NEAREST)
    return large, ImageDraw.Draw(large)


def shrink(image: Image.Image) -> Image.Image:
    """The enlarged image at the size at which it is shown."""
    size = image.width // SCALE, image.height // SCALE
    return image.resize(size, Image.Resampling.BOX)


def draw_colony(
    pen: ImageDraw.ImageDraw,
    points: Points,
    parent: np.ndarray,
    is_new: np.ndarray,
    is_deleted: np.ndarray,
    radius: float,
    detailed: bool,
) -> None:
    """Draws P nodes at `points` on an enlarged image; `parent`, `is_new`, `is_deleted` are `[P]`.

    `detailed` adds arrows from parents to children, the hull and the centroid. `radius` is that of
    a node, in pixels of the image as shown.
    """
    points, radius = points * SCALE, radius * SCALE
    if detailed and len(points) > 1:
        hull = outline(points)
        draw_dashes(pen, np.append(hull, hull[:1], 0))
    child = np.flatnonzero(parent >= 0)
    starts, ends = points[parent[child]], points[child]
    for colour, width in ((INK, 4), (WHITE, 2)):
        for start, end in zip(starts, ends, strict=True):
            pen.line([*start, *end], colour, round(width * SCALE * 0.8))
    if detailed:
        for start, end in zip(starts, ends, strict=True):
            draw_arrow(pen, start, end, radius)
    for slot, point in enumerate(points):
        draw_node(pen, point, radius, bool(is_new[slot]), bool(is_deleted[slot]))
    if detailed:
        draw_star(pen, points.mean(0), 9.0 * SCALE)


def draw_node(
    pen: ImageDraw.ImageDraw, at: np.ndarray, radius: float, is_new: bool, is_deleted: bool
) -> None:
    """A white disc, orange if the node is new; dark with a cross if it is about to be deleted."""
    disc = lambda r: (at[0] - r, at[1] - r, at[0] + r, at[1] + r)
    fill = NEW if is_new else WHITE
    pen.ellipse(disc(radius + SCALE), INK)
    pen.ellipse(disc(radius), fill)
    if is_deleted:
        pen.ellipse(disc(0.78 * radius), INK)
        arm = 0.42 * radius
        for sign in (1, -1):
            ends = (at[0] - arm, at[1] - sign * arm, at[0] + arm, at[1] + sign * arm)
            pen.line(ends, fill, max(1, round(0.22 * radius)))


def draw_arrow(pen: ImageDraw.ImageDraw, start: np.ndarray, end: np.ndarray, size: float) -> None:
    """An arrow head in the middle of an edge, if the edge is long enough."""
    delta = end - start
    length = float(np.hypot(*delta))
    if length < 3.5 * size:
        return
    along, across = delta / length * size, np.array([-delta[1], delta[0]]) / length * size
    for colour, scale in ((INK, 1.0), (WHITE, 0.62)):
        tip = start + 0.5 * delta + 0.6 * scale * along
        back = tip - 1.2 * scale * along
        corners = (tip, back + 0.62 * scale * across, back - 0.62 * scale * across)
        pen.polygon([tuple(corner) for corner in np.stack(corners).tolist()], colour)


def draw_star(pen: ImageDraw.ImageDraw, at: np.ndarray, radius: float) -> None:
    """A star with an outline."""
    angle = np.pi / 5 * np.arange(10) - np.pi / 2
    for colour, size in ((INK, radius + 2.2 * SCALE), (STAR, radius)):
        reach = np.where(np.arange(10) % 2, 0.42, 1.0) * size
        corners = np.stack([at[0] + reach * np.cos(angle), at[1] + reach * np.sin(angle)], -1)
        pen.polygon([tuple(corner) for corner in corners.tolist()], colour)


def draw_dashes(pen: ImageDraw.ImageDraw, path: Points) -> None:
    """A dashed line through the points."""
    for start, end in pairwise(path):
        length = float(np.hypot(*(end - start)))
        for begin in np.arange(0, length, 9 * SCALE):
            stretch = np.array([begin, min(begin + 5 * SCALE, length)]) / length
            ends = start + stretch[:, None] * (end - start)
            for colour, width in ((INK, 3), (WHITE, 1.4)):
                pen.line([tuple(p) for p in ends.tolist()], colour, round(width * SCALE))


def outline(points: Points) -> Points:
    """The vertices of the convex hull, `[V, 2]` in order: Andrew's monotone chain (1979)."""
    ordered = sorted(set(map(tuple, points.tolist())))
    sides = []
    for way in (ordered, ordered[::-1]):
        side: list[tuple[float, float]] = []
        for point in way:
            while len(side) > 1 and _turn(side[-2], side[-1], point) <= 0:
                side.pop()
            side.append(point)
        sides += side[:-1]
    return np.array(sides or ordered).reshape(-1, 2)


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """The cross product of b - a and c - a: its sign is the direction in which a, b, c turn."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@lru_cache(maxsize=4)
def font(size: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow."""
    return ImageFont.load_default(size)  # pyright: ignore[reportReturnType]
