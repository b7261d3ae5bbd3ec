"""Drawings of classic control: carts with poles, rods and a car on a hill.

Each function gives a picture uint8 `[H, W, 3]` of one state, with the lengths and limits of the
params. The sign of an angle follows from the equations of motion of its environment.
"""

import math
from typing import Any

import numpy as np

from train.gymnax.drawings.canvas import BLUE, BROWN, GREEN, INK, PALE, PAPER, RED, Canvas

POLE, TIP, HINGE = BROWN, RED, INK
HILL, CAR = "#8a8f7c", BLUE
RISE, FLOOR = 0.45, 0.55  # of the hill: height 0.45 sin(3x) + 0.55, as Gym draws it


def cart_pole(env: Any, params: Any, state: Any) -> np.ndarray:
    """θ is 0 upright and grows clockwise; `length` is half of the pole's.

    Posts are at the limits of the cart, and the pale wedge has those of the pole.
    """
    limit, length = float(params.x_threshold), 2 * float(params.length)
    canvas = Canvas((-1.15 * limit, 1.15 * limit), (-0.16 * limit, 1.2 * length))
    x, widest = float(state.x), float(params.theta_threshold_radians)
    for side in (-1, 1):
        canvas.rectangle((side * limit, -1), (side * (limit + canvas.pixels(5)), 0), RED)
    wedge = [_clockwise_vector(1.15 * length, angle) for angle in np.linspace(-widest, widest, 9)]
    canvas.polygon([(x, 0), *((x + dx, dy) for dx, dy in wedge)], PALE)
    _cart_and_pole(canvas, x, float(state.theta), length)
    return canvas.image()


def circular_cart_pole(env: Any, params: Any, state: Any) -> np.ndarray:
    """The circular track is unrolled: what leaves on one side enters on the other."""
    half, length = float(params.track_length) / 2, 2 * float(params.half_length)
    canvas = Canvas((-half, half), (-1.15 * length, 1.15 * length))
    x = half * float(state.track_angle) / math.pi
    for copy in (x - 2 * half, x, x + 2 * half):
        _cart_and_pole(canvas, copy, float(state.pole_angle), length)
    return canvas.image()


def _cart_and_pole(canvas: Canvas, x: float, angle: float, length: float) -> None:
    """The hinge is at height 0; the track is below it."""
    track = -0.235
    canvas.rectangle((canvas.low[0], track), (canvas.high[0], track - canvas.pixels(2)), INK)
    canvas.rectangle((x - 0.26, 0.04), (x + 0.26, -0.16), BLUE)
    for side in (-0.15, 0.15):
        canvas.disc((x + side, -0.16), 0.075, INK)
    dx, dy = _clockwise_vector(length, angle)
    _rod(canvas, (x, 0), (x + dx, dy), 0.08)


def acrobot(env: Any, params: Any, state: Any) -> np.ndarray:
    """Angles are 0 hanging and grow counterclockwise, the second one from the first link on.

    The line is the height to reach, where it is one: with links of equal length.
    """
    first, second = float(params.link_length_1), float(params.link_length_2)
    reach = 1.12 * (first + second)
    canvas = Canvas((-reach, reach), (-reach, reach))
    if first == second:
        width = canvas.pixels(2)
        canvas.rectangle((-reach, first + width / 2), (reach, first - width / 2), GREEN)
    angle = float(state.joint_angle1)
    elbow = first * np.array([math.sin(angle), -math.cos(angle)])
    angle += float(state.joint_angle2)
    tip = elbow + second * np.array([math.sin(angle), -math.cos(angle)])
    thickness = 0.07 * (first + second) / 2
    canvas.line([(0, 0), elbow], 1.6 * thickness, BLUE)
    canvas.disc((0, 0), 1.1 * thickness, HINGE)
    _rod(canvas, elbow, tip, thickness)
    return canvas.image()


def pendulum(env: Any, params: Any, state: Any) -> np.ndarray:
    """θ is 0 upright and grows counterclockwise. The arc is the torque, a right angle the most."""
    length = float(params.l)
    canvas = Canvas((-1.3 * length, 1.3 * length), (-1.3 * length, 1.3 * length))
    angle = float(state.theta)
    turn = math.pi / 2 * float(state.last_u) / float(params.max_torque)
    if abs(turn) > 0.05:
        _arrow(canvas, 0.5 * length, angle, angle + turn)
    dx, dy = _clockwise_vector(length, -angle)
    _rod(canvas, (0, 0), (dx, dy), 0.1 * length)
    return canvas.image()


def _arrow(canvas: Canvas, radius: float, start: float, end: float) -> None:
    """An arc with a point, around the origin; angles from upright, counterclockwise."""
    at = lambda r, angle: _clockwise_vector(r, -angle)
    half, ahead = 0.16 * radius, math.copysign(0.3, end - start)
    canvas.line([at(radius, a) for a in np.linspace(start, end, 24)], 0.09 * radius, GREEN)
    canvas.polygon([at(radius - half, end), at(radius + half, end), at(radius, end + ahead)], GREEN)


def mountain_car(env: Any, params: Any, state: Any) -> np.ndarray:
    """The car, on the hill that its acceleration is the slope of; a flag, and the wall behind."""
    low, high = float(params.min_position), float(params.max_position)
    margin = 0.06 * (high - low)
    left, right = low - margin, high + margin
    canvas = Canvas((left, right), (0.0, FLOOR + RISE + 0.22))
    x = np.linspace(left, right, 160)
    canvas.polygon([(left, 0), *zip(x, height(x), strict=True), (right, 0)], HILL)
    canvas.rectangle((left, 0), (low - 0.045, FLOOR + RISE + 0.05), INK)
    _flag(canvas, float(params.goal_position))
    _car(canvas, float(state.position))
    return canvas.image()


def height(x: Any) -> Any:
    """The height of the hill at position x."""
    return RISE * np.sin(3 * x) + FLOOR


def _flag(canvas: Canvas, x: float) -> None:
    foot, top = height(x), height(x) + 0.19
    canvas.line([(x, foot), (x, top)], canvas.pixels(3), INK)
    canvas.polygon([(x, top), (x + 0.09, top - 0.035), (x, top - 0.07)], RED)


def _car(canvas: Canvas, x: float) -> None:
    """Stands on the hill at position x, tilted by its slope there."""
    slope = math.atan(3 * RISE * math.cos(3 * x))
    along = np.array([math.cos(slope), math.sin(slope)])
    up = np.array([-math.sin(slope), math.cos(slope)])
    ground = np.array([x, height(x)])
    at = lambda right, high: ground + right * along + high * up
    body = [(-0.075, 0.018), (-0.075, 0.05), (-0.04, 0.05), (-0.022, 0.078)]
    body += [(0.03, 0.078), (0.045, 0.05), (0.075, 0.046), (0.075, 0.018)]
    canvas.polygon([at(*corner) for corner in body], CAR)
    for side in (-0.043, 0.043):
        canvas.disc(at(side, 0.019), 0.019, INK)
        canvas.disc(at(side, 0.019), 0.008, PAPER)


def _clockwise_vector(length: float, angle: float) -> tuple[float, float]:
    """A vector of this length, turned clockwise from upright."""
    return length * math.sin(angle), length * math.cos(angle)


def _rod(canvas: Canvas, start: Any, end: Any, width: float) -> None:
    """A rod with a hinge at its start and a coloured tip."""
    canvas.line([start, end], width, POLE)
    canvas.disc(start, 0.75 * width, HINGE)
    canvas.disc(end, 0.75 * width, TIP)
