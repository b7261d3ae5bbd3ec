"""What the drawings of environments share: shapes in the units of a world, and captions."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH = 440  # pixels of a picture
SMOOTH = 4  # shapes are drawn so many times larger and then averaged, for smooth edges
STRIP = 34  # pixels of the caption above a picture
PAPER, INK, PALE = "#f1ede3", "#233140", "#d9d2c3"
BLUE, RED, BROWN, GREEN = "#1d4fb5", "#d4301f", "#a86b00", "#2f7d6c"
"""Colours that differ for the colour-blind, in hue or in lightness."""

Point = Sequence[float] | np.ndarray  # (x, y), y upwards


class Canvas:
    """A picture of the part `x` × `y` of a plane; all lengths are in the units of that plane."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], paper: str = PAPER):
        self.low, self.high = (x[0], y[0]), (x[1], y[1])
        self.scale = WIDTH * SMOOTH / (x[1] - x[0])
        height = max(1, round(self.scale * (y[1] - y[0]) / SMOOTH))
        self.large = Image.new("RGB", (WIDTH * SMOOTH, height * SMOOTH), paper)
        self.pen = ImageDraw.Draw(self.large)

    def pixels(self, count: float) -> float:
        """The length of so many pixels."""
        return count * SMOOTH / self.scale

    def disc(self, centre: Point, radius: float, colour: str) -> None:
        (x, y), r = self._places([centre])[0], radius * self.scale
        self.pen.ellipse((x - r, y - r, x + r, y + r), colour)

    def line(self, points: Sequence[Point], width: float, colour: str) -> None:
        """Draws a line through all points, with round ends."""
        places = self._places(points)
        self.pen.line(places, colour, max(1, round(width * self.scale)), joint="curve")
        for end in (points[0], points[-1]):
            self.disc(end, width / 2, colour)

    def polygon(self, corners: Sequence[Point] | np.ndarray, colour: str) -> None:
        self.pen.polygon(self._places(corners), colour)

    def rectangle(self, corner: Point, opposite: Point, colour: str) -> None:
        (x, y), (u, v) = corner, opposite
        self.polygon([(x, y), (u, y), (u, v), (x, v)], colour)

    def image(self) -> np.ndarray:
        """The picture, uint8 `[H, W, 3]`."""
        return np.asarray(self.large.reduce(SMOOTH))

    def _places(self, points: Sequence[Point] | np.ndarray) -> list[tuple[float, float]]:
        """Where points lie in the large picture; half a pixel less, since Pillow draws centres."""
        left, top = self.low[0], self.high[1]
        return [((x - left) * self.scale - 0.5, (top - y) * self.scale - 0.5) for x, y in points]


def add_caption(picture: np.ndarray, name: str, step: int, ending: str = "") -> Image.Image:
    """A picture `[H, W, 3]` below the environment's name, the ending and the step.

    A narrower one is put in the middle of `WIDTH` pixels.
    """
    height, width = picture.shape[:2]
    image = Image.new("RGB", (max(width, WIDTH), STRIP + height), INK)
    image.paste(Image.fromarray(picture), ((image.width - width) // 2, STRIP))
    pen, middle, edge, gap = ImageDraw.Draw(image), STRIP // 2, 10, 12
    large, small = font(17), font(14)
    step_text = f"step {step}"
    pen.text((edge, middle), name, PALE, small, anchor="lm")
    pen.text((image.width - edge, middle), step_text, "white", large, anchor="rm")
    left = edge + small.getlength(name) + gap
    right = image.width - edge - large.getlength(step_text) - gap
    ending = shorten(ending, small, right - left)
    pen.text(((left + right) / 2, middle), ending, "white", small, anchor="mm")
    return image


def shorten(text: str, font: ImageFont.FreeTypeFont, room: float) -> str:
    """Cuts a text to a width in pixels; an ellipsis shows that something is missing."""
    if font.getlength(text) <= room:
        return text
    while text and font.getlength(f"{text}…") > room:
        text = text[:-1]
    return f"{text}…"


@lru_cache(maxsize=8)
def font(size: int) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow."""
    return ImageFont.load_default(size)  # pyright: ignore[reportReturnType]
