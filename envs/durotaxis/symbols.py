"""How a colony is drawn: its links, nodes, hull and centroid, on an image of any scale.

Colours are told apart by every kind of colour vision, and shapes say the same again. Images are
drawn `FINE` times as large as they are shown, for smooth edges: `refined` and `reduced`.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FINE = 3
INK, WHITE = (20, 24, 28), (255, 255, 255)
NEW, STAR = (240, 128, 40), (255, 96, 168)
Points = np.ndarray  # [P, 2], x and y in pixels of the image


def refined(image: Image.Image) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A larger copy to draw on, and the pen for it."""
    size = image.width * FINE, image.height * FINE
    large = image.resize(size, Image.Resampling.NEAREST)
    return large, ImageDraw.Draw(large)


def reduced(image: Image.Image) -> Image.Image:
    """The image in the size in which it is shown."""
    size = image.width // FINE, image.height // FINE
    return image.resize(size, Image.Resampling.BOX)


def draw_colony(
    pen: ImageDraw.ImageDraw,
    points: Points,
    parent: np.ndarray,
    is_new: np.ndarray,
    is_doomed: np.ndarray,
    radius: float,
    detailed: bool,
) -> None:
    """A colony of P nodes at `points` on a refined image; `parent`, `is_new`, `is_doomed` `[P]`.

    With details each link has an arrow to the child, and there are hull and centroid. `radius` is
    that of a node, in pixels as they are shown.
    """
    points, radius = points * FINE, radius * FINE
    if detailed and len(points) > 1:
        hull = outline(points)
        draw_dashes(pen, np.append(hull, hull[:1], 0))
    child = np.flatnonzero(parent >= 0)
    starts, ends = points[parent[child]], points[child]
    for colour, breadth in ((INK, 4), (WHITE, 2)):
        for start, end in zip(starts, ends, strict=True):
            pen.line([*start, *end], colour, round(breadth * FINE * 0.8))
    if detailed:
        for start, end in zip(starts, ends, strict=True):
            draw_arrow(pen, start, end, radius)
    for slot, point in enumerate(points):
        draw_node(pen, point, radius, bool(is_new[slot]), bool(is_doomed[slot]))
    if detailed:
        draw_star(pen, points.mean(0), 9.0 * FINE)


def draw_node(
    pen: ImageDraw.ImageDraw, at: np.ndarray, radius: float, is_new: bool, is_doomed: bool
) -> None:
    """A white disc; an orange one if it is new; dark with a cross where it will be gone."""
    disc = lambda r: (at[0] - r, at[1] - r, at[0] + r, at[1] + r)
    fill = NEW if is_new else WHITE
    pen.ellipse(disc(radius + FINE), INK)
    pen.ellipse(disc(radius), fill)
    if is_doomed:
        pen.ellipse(disc(0.78 * radius), INK)
        arm = 0.42 * radius
        for sign in (1, -1):
            ends = (at[0] - arm, at[1] - sign * arm, at[0] + arm, at[1] + sign * arm)
            pen.line(ends, fill, max(1, round(0.22 * radius)))


def draw_arrow(pen: ImageDraw.ImageDraw, start: np.ndarray, end: np.ndarray, size: float) -> None:
    """The head of an arrow in the middle of a link, where that is long enough."""
    way = end - start
    length = float(np.hypot(*way))
    if length < 3.5 * size:
        return
    along, across = way / length * size, np.array([-way[1], way[0]]) / length * size
    for colour, scale in ((INK, 1.0), (WHITE, 0.62)):
        tip = start + 0.5 * way + 0.6 * scale * along
        back = tip - 1.2 * scale * along
        corners = (tip, back + 0.62 * scale * across, back - 0.62 * scale * across)
        pen.polygon([tuple(corner) for corner in np.stack(corners).tolist()], colour)


def draw_star(pen: ImageDraw.ImageDraw, at: np.ndarray, radius: float) -> None:
    """A star with an outline."""
    angle = np.pi / 5 * np.arange(10) - np.pi / 2
    for colour, size in ((INK, radius + 2.2 * FINE), (STAR, radius)):
        reach = np.where(np.arange(10) % 2, 0.42, 1.0) * size
        corners = np.stack([at[0] + reach * np.cos(angle), at[1] + reach * np.sin(angle)], -1)
        pen.polygon([tuple(corner) for corner in corners.tolist()], colour)


def draw_dashes(pen: ImageDraw.ImageDraw, path: Points) -> None:
    """A dashed line through some points."""
    for start, end in pairwise(path):
        length = float(np.hypot(*(end - start)))
        for begin in np.arange(0, length, 9 * FINE):
            stretch = np.array([begin, min(begin + 5 * FINE, length)]) / length
            ends = start + stretch[:, None] * (end - start)
            for colour, breadth in ((INK, 3), (WHITE, 1.4)):
                pen.line([tuple(p) for p in ends.tolist()], colour, round(breadth * FINE))


def outline(points: Points) -> Points:
    """The convex hull of some points, `[V, 2]` in order: Andrew's monotone chain (1979)."""
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
    """Above 0 where the way from a to b turns one way to c, below where it turns the other."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@lru_cache(maxsize=4)
def font(size: int) -> ImageFont.FreeTypeFont:
    """The one font that Pillow itself brings."""
    return ImageFont.load_default(size)  # pyright: ignore[reportReturnType]
