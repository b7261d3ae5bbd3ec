"""Drawings of points and arms in a plane: PointRobot, Reacher and Swimmer.

Each function gives a picture uint8 `[H, W, 3]` of one state.
"""

import math
from typing import Any

import numpy as np

from train.gymnax.drawings.canvas import BLUE, BROWN, GREEN, INK, PALE, Canvas

GOAL, AGENT, URCHIN = GREEN, BLUE, "#b8400e"


def point_robot(env: Any, params: Any, state: Any) -> np.ndarray:
    """The robot, the half circle that goals lie on, and the goal, as large as it counts."""
    radius, goal_radius = float(params.circle_radius), float(params.goal_radius)
    reach = radius + 1.3 * goal_radius
    canvas = Canvas((-reach, reach), (-0.5 * reach, reach))
    angles = np.linspace(0, math.pi, 60)
    circle = [(radius * math.cos(a), radius * math.sin(a)) for a in angles]
    canvas.line(circle, canvas.pixels(2), PALE)
    canvas.disc(state.goal, goal_radius, GOAL)
    _agent(canvas, state.pos)
    return canvas.image()


def reacher(env: Any, params: Any, state: Any) -> np.ndarray:
    """Links of length 1, each at its own angle to the x axis, and the place to reach."""
    links = np.stack([np.cos(state.angles), np.sin(state.angles)], -1)  # [joints, 2]
    joints = np.concatenate([np.zeros((1, 2)), np.cumsum(links, 0)])
    reach = 1.1 * len(links)
    canvas = Canvas((-reach, reach), (-reach, reach))
    canvas.disc(state.goal_xy, 0.06 * reach, GOAL)
    canvas.line(list(joints), 0.035 * reach, BROWN)
    for joint in joints[:-1]:
        canvas.disc(joint, 0.028 * reach, INK)
    canvas.disc(joints[-1], 0.035 * reach, AGENT)
    return canvas.image()


def swimmer(env: Any, params: Any, state: Any) -> np.ndarray:
    """The swimmer, its goal, and the urchins, of which it should keep clear."""
    reach = 1.5
    canvas = Canvas((-reach, reach), (-reach, reach))
    canvas.disc(state.goal_xy, 0.12, GOAL)
    for urchin in state.urchin_xys:
        for angle in np.arange(8) * math.pi / 8:
            spike = 0.11 * np.array([math.cos(angle), math.sin(angle)])
            canvas.line([urchin - spike, urchin + spike], 0.02, URCHIN)
        canvas.disc(urchin, 0.065, URCHIN)
    _agent(canvas, state.xy)
    return canvas.image()


def _agent(canvas: Canvas, place: np.ndarray) -> None:
    """A disc; hollow, and at the edge of the picture, where it has left it."""
    edge = canvas.pixels(11)
    position = np.clip(place, np.add(canvas.low, edge), np.subtract(canvas.high, edge))
    canvas.disc(position, edge, "white")
    canvas.disc(position, canvas.pixels(9), AGENT)
    if not np.array_equal(position, place):
        canvas.disc(position, canvas.pixels(5), "white")
