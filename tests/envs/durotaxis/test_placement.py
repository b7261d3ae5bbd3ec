"""Goals in any direction: the turned ground, and colonies on it against a plain one."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.durotaxis import placement
from envs.durotaxis.env import Durotaxis, goal

TURNS = {"right": 0, "up": -1, "left": 2, "down": 1}
"""Of `np.rot90`, which turns counter-clockwise: what brings the goal to the right."""
DIRECTIONS = {"right": (1, 0), "left": (-1, 0), "up": (0, -1), "down": (0, 1)}


def measured_field(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return (2 + np.sin(x / 9) + np.cos(y / 7)).astype(np.float32)


@pytest.mark.parametrize("name", TURNS)
def test_quarter_turns_are_exact(name: str):
    field = measured_field(60, 90)
    goal_placement = placement.place(name, 90, 60)
    ground = placement.rotate_field(field, goal_placement)
    np.testing.assert_array_equal(ground, np.rot90(field, TURNS[name]))
    np.testing.assert_array_equal(placement.picture(ground, goal_placement), field)
    line = goal_placement.to_picture(
        np.array([ground.shape[1]] * 2), np.array([0, ground.shape[0]])
    )
    ends = np.array(line).T
    wall = {"right": ends[:, 0] == 90, "left": ends[:, 0] == 0}
    wall |= {"up": ends[:, 1] == 0, "down": ends[:, 1] == 60}
    assert wall[name].all(), "the goal lies at the wall that is named"
    same_placement = placement.place(str(placement.ANGLES[name]), 90, 60)
    assert same_placement == goal_placement
    assert placement.place(str(placement.ANGLES[name] - 360), 90, 60) == goal_placement


@pytest.mark.slow
@pytest.mark.parametrize("name", ["up", "right", "left", "down"])
def test_a_colony_goes_where_it_should_as_a_plain_one_does(name: str):
    """The plain one knows directions and walls of the picture only."""
    # The ground turned towards the goal, and a colony on it.
    height, width = 90, 130
    field, goal_placement = measured_field(height, width), placement.place(name, width, height)
    ground = placement.rotate_field(field, goal_placement)
    env = Durotaxis(capacity=40, observation="local")
    params = replace(
        env.default_params,
        field=ground,
        width=float(goal_placement.length),
        height=float(goal_placement.breadth),
        threshold_nodes=40.0,
    )
    env.check(params)
    _, state = env.reset(jax.random.key(4), params)

    def cell_positions(state) -> np.ndarray:
        count = int(state.colony.num_nodes)
        places = goal_placement.to_picture(
            *(np.asarray(v)[:count] for v in (state.colony.x, state.colony.y))
        )
        return np.stack(places, axis=-1)

    # The plain colony in the picture: it begins opposite to the goal.
    ahead = np.array(DIRECTIONS[name], float)
    aside = np.array([-ahead[1], ahead[0]])  # clockwise of it, as y points down
    size = np.array([width, height], float)
    cells = cell_positions(state).astype(float)
    way = (cells - size / 2) @ ahead + abs(size @ ahead) / 2
    assert (way < 0.1 * goal_placement.length).all(), "it begins opposite to the goal"
    assert (np.abs((cells - size / 2) @ aside) <= 0.1 * goal_placement.breadth).all()
    random = np.random.default_rng(2)
    for step in range(60):
        share, gamma, alpha, noise, theta = random.uniform(
            (0.4, 5, 0.5, 0.1, -0.4), (0.6, 9, 2, 0.4, 0.4)
        )
        action = jnp.array([share, gamma, alpha, noise, theta], jnp.float32)
        _, after, _, terminated, _, info = env.step(jax.random.key(step), state, action, params)
        # The plain one deletes those farthest behind, and the others spawn ahead.
        order = sorted(range(len(cells)), key=lambda i: (cells[i] @ ahead, i))
        gone = set(order[: math.floor(np.float32(share) * np.float32(len(cells)))])
        children = []
        for i, cell in enumerate(cells):
            if i not in gone:
                column, row = np.clip(np.trunc(cell), 0, size - 1).astype(int)
                stiffness = float(field[row, column])
                reach = gamma / (1 + (alpha / stiffness) ** 2) + noise
                child = cell + reach * (math.cos(theta) * ahead + math.sin(theta) * aside)
                edge = np.maximum(2.0, 0.01 * size)
                children.append(np.clip(child, edge, size - edge))
        cells = np.array([c for i, c in enumerate(cells) if i not in gone] + children)
        # Both end, and lie, at the same places.
        nearest = np.max((cells - size / 2) @ ahead) + abs(size @ ahead) / 2
        arrived = nearest >= float(goal(jnp.float32(goal_placement.length)))
        assert bool(info["outcome"]["arrived"]) == arrived
        if terminated:
            break
        np.testing.assert_allclose(cell_positions(after), cells, atol=2e-3)
        cells, state = cell_positions(after).astype(float), after
    assert arrived


@pytest.mark.parametrize("degrees", [17.0, 30.0, 45.0, 77.0, 135.0, 200.0, 300.5])
@pytest.mark.parametrize(("width", "height"), [(120, 80), (60, 200), (90, 90)])
def test_any_direction_has_the_largest_ground_that_fits(degrees, width, height):
    goal_placement = placement.place(str(degrees), width, height)
    x = np.array([0, goal_placement.length, goal_placement.length, 0], float)
    y = np.array([0, 0, goal_placement.breadth, goal_placement.breadth], float)
    left, top = goal_placement.to_picture(x, y)
    assert ((left >= -1e-6) & (left <= width + 1e-6)).all()
    assert ((top >= -1e-6) & (top <= height + 1e-6)).all()
    np.testing.assert_allclose(goal_placement.to_ground(left, top), (x, y), atol=1e-9)
    angle = math.radians(degrees)
    cosine, sine = abs(math.cos(angle)), abs(math.sin(angle))
    lengths = np.linspace(0.5, math.hypot(width, height), 4000)
    breadths = np.minimum((width - lengths * cosine) / sine, (height - lengths * sine) / cosine)
    best = (lengths * np.maximum(breadths, 0)).max()
    assert goal_placement.length * goal_placement.breadth <= best * 1.001
    assert (goal_placement.length + 1) * (goal_placement.breadth + 1) >= best * 0.999
    ahead = np.array([left[1] - left[0], top[1] - top[0]]) / goal_placement.length
    np.testing.assert_allclose(ahead, [math.cos(angle), -math.sin(angle)], atol=1e-9)


def test_turned_ground_is_what_lies_under_it():
    field, goal_placement = measured_field(90, 130), placement.place("25", 130, 90)
    ground = placement.rotate_field(field, goal_placement)
    assert ground.shape == (goal_placement.breadth, goal_placement.length)
    for row, column in ((0, 0), (10, 30), (goal_placement.breadth - 1, goal_placement.length - 1)):
        x, y = goal_placement.to_picture(np.array([column + 0.5]), np.array([row + 0.5]))
        assert ground[row, column] == field[int(y[0]), int(x[0])]


@pytest.mark.parametrize("name", ["forward", "nan", "361", ""])
def test_other_goals_are_refused(name: str):
    with pytest.raises(ValueError, match=r"expected right, left, up, down, or degrees"):
        placement.place(name, 60, 40)
