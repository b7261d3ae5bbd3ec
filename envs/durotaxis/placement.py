"""Where the ground of a colony lies in what was measured, for goals in any direction.

In the rules the goal is at the right: x leads to it, from 0 to the `length` of the ground, and y
lies across, from 0 to its `breadth`. A placement turns that ground into the picture of the
experiment, whose y points down: by 90 degrees counter-clockwise for a goal above, and so on. Of
ground in another direction it is the largest upright rectangle that fits in. NumPy, on the host.
"""

import math
from typing import NamedTuple

import numpy as np

ANGLES = {"right": 0.0, "up": 90.0, "left": 180.0, "down": 270.0}
"""Degrees counter-clockwise, as seen in pictures."""


class Placement(NamedTuple):
    """Ground of `length` × `breadth` px, turned and centred in a picture of `width` × `height`."""

    degrees: float
    width: int  # px, of the picture
    height: int
    length: int  # px, from the start to the goal
    breadth: int

    @property
    def is_upright(self) -> bool:
        """Whether the picture is the ground as it is in the rules."""
        return self.degrees == 0.0

    @property
    def axes(self) -> np.ndarray:
        """The unit vectors of x and y of the rules in the picture, `[2, 2]`; exact where upright
        or turned by a multiple of 90 degrees."""
        quarter = {0.0: (1, 0), 90.0: (0, 1), 180.0: (-1, 0), 270.0: (0, -1)}
        angle = math.radians(self.degrees)
        cosine, sine = quarter.get(self.degrees, (math.cos(angle), math.sin(angle)))
        return np.array([(cosine, -sine), (sine, cosine)], float)

    def to_picture(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points (x, y) of the rules as points of the picture, px, in their shape and dtype."""
        if self.is_upright:
            return x, y
        return _rotate_points(
            x, y, (self.length, self.breadth), (self.width, self.height), self.axes.T
        )

    def to_ground(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The inverse of `to_picture`: points of the picture as points of the rules, px."""
        if self.is_upright:
            return x, y
        return _rotate_points(
            x, y, (self.width, self.height), (self.length, self.breadth), self.axes
        )


def place(goal: str, width: int, height: int) -> Placement:
    """The placement of a goal, `right`, `left`, `up`, `down` or degrees, in a picture of that size.

    Raises ValueError, in one line, for another goal.
    """
    degrees = degrees_of(goal)
    length, breadth = _inside(degrees, width, height)
    return Placement(degrees, int(width), int(height), length, breadth)


def degrees_of(goal: str) -> float:
    """The direction of a goal: from 0 to below 360 degrees, counter-clockwise from right.

    Raises ValueError for what is neither a name of one nor a number of degrees.
    """
    if goal in ANGLES:
        return ANGLES[goal]
    try:
        degrees = float(goal)
    except ValueError:
        degrees = math.nan
    if not abs(degrees) <= 360:
        raise ValueError(
            f"goal is {goal!r}; expected right, left, up, down, or degrees counter-clockwise from "
            "right, -360 to 360"
        )
    return degrees % 360.0


def rotate_field(field: np.ndarray, placement: Placement) -> np.ndarray:
    """A measured field `[height, width]` as the colony meets it, `[breadth, length]`.

    Exact for multiples of 90 degrees; otherwise each cell is the nearest of those measured. A field
    of no cells stays as it is.
    """
    if not field.size or placement.is_upright:
        return field
    columns, rows = np.meshgrid(
        np.arange(placement.length) + 0.5, np.arange(placement.breadth) + 0.5
    )
    x, y = placement.to_picture(columns, rows)
    row = np.clip(np.floor(y).astype(int), 0, field.shape[0] - 1)
    column = np.clip(np.floor(x).astype(int), 0, field.shape[1] - 1)
    return field[row, column]


def picture(ground: np.ndarray, placement: Placement) -> np.ndarray:
    """The inverse of `rotate_field`: ground `[breadth, length]` in the picture, `[height, width]`.

    NaN where the picture is not part of the ground.
    """
    if placement.is_upright:
        return ground
    columns, rows = np.meshgrid(np.arange(placement.width) + 0.5, np.arange(placement.height) + 0.5)
    column, row = (np.floor(v).astype(int) for v in placement.to_ground(columns, rows))
    inside = (row >= 0) & (row < placement.breadth) & (column >= 0) & (column < placement.length)
    pixels = np.full(inside.shape, np.nan, ground.dtype)
    pixels[inside] = ground[row[inside], column[inside]]
    return pixels


def _rotate_points(
    x: np.ndarray,
    y: np.ndarray,
    size: tuple[int, int],
    new_size: tuple[int, int],
    rotation: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Points of a rectangle after `rotation` `[2, 2]` about its centre, the centre of the new one.

    In their shape and dtype; sizes are those along x and y, px.
    """
    x, y = np.asarray(x), np.asarray(y)
    a, b = x.astype(float) - size[0] / 2, y.astype(float) - size[1] / 2
    new_x, new_y = (
        length / 2 + a * row[0] + b * row[1] for length, row in zip(new_size, rotation, strict=True)
    )
    return new_x.astype(x.dtype), new_y.astype(y.dtype)


def _inside(degrees: float, width: int, height: int) -> tuple[int, int]:
    """Length and breadth of the largest rectangle inside, one side of which has this direction.

    Either all its corners lie on the sides of the outer rectangle, or two of them do, on its long
    sides, where it is half as high as the short side allows.
    """
    if degrees % 90 == 0:
        return (int(width), int(height)) if degrees % 180 == 0 else (int(height), int(width))
    cosine, sine = (abs(f(math.radians(degrees))) for f in (math.cos, math.sin))
    short, long = min(width, height), max(width, height)
    if short <= 2 * sine * cosine * long or math.isclose(sine, cosine):
        sides = short / 2 / sine, short / 2 / cosine
        length, breadth = sides if width >= height else sides[::-1]
    else:
        difference = cosine**2 - sine**2
        length = (width * cosine - height * sine) / difference
        breadth = (height * cosine - width * sine) / difference
    return int(length + 1e-9), int(breadth + 1e-9)
