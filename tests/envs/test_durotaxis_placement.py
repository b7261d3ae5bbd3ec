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


def measured(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return (2 + np.sin(x / 9) + np.cos(y / 7)).astype(np.float32)


@pytest.mark.parametrize("name", TURNS)
def test_quarter_turns_are_exact(name: str):
    field = measured(60, 90)
    placed = placement.place(name, 90, 60)
    met = placement.turned(field, placed)
    np.testing.assert_array_equal(met, np.rot90(field, TURNS[name]))
    np.testing.assert_array_equal(placement.picture(met, placed), field)
    line = placed.shown(np.array([met.shape[1]] * 2), np.array([0, met.shape[0]]))
    ends = np.array(line).T
    wall = {"right": ends[:, 0] == 90, "left": ends[:, 0] == 0}
    wall |= {"up": ends[:, 1] == 0, "down": ends[:, 1] == 60}
    assert wall[name].all(), "the goal lies at the wall that is named"
    same = placement.place(str(placement.ANGLES[name]), 90, 60)
    assert same == placed
    assert placement.place(str(placement.ANGLES[name] - 360), 90, 60) == placed


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", ["up", "right", "left", "down"])
def test_a_colony_goes_where_it_should_as_a_plain_one_does(name: str):
    """The plain one knows directions and walls of the picture only."""
    height, width = 90, 130
    field, placed = measured(height, width), placement.place(name, width, height)
    ground = placement.turned(field, placed)
    env = Durotaxis(capacity=40, observation="local")
    params = replace(
        env.default_params,
        field=ground,
        width=float(placed.length),
        height=float(placed.breadth),
        threshold_nodes=40.0,
    )
    env.check(params)
    _, state = env.reset(jax.random.key(4), params)

    def seen(state) -> np.ndarray:
        count = int(state.colony.num_nodes)
        places = placed.shown(*(np.asarray(v)[:count] for v in (state.colony.x, state.colony.y)))
        return np.stack(places, axis=-1)

    ahead = np.array(DIRECTIONS[name], float)
    aside = np.array([-ahead[1], ahead[0]])  # clockwise of it, as y points down
    size = np.array([width, height], float)
    cells = seen(state).astype(float)
    way = (cells - size / 2) @ ahead + abs(size @ ahead) / 2
    assert (way < 0.1 * placed.length).all(), "it begins opposite to the goal"
    assert (np.abs((cells - size / 2) @ aside) <= 0.1 * placed.breadth).all()
    random = np.random.default_rng(2)
    for step in range(60):
        share, gamma, alpha, noise, theta = random.uniform(
            (0.4, 5, 0.5, 0.1, -0.4), (0.6, 9, 2, 0.4, 0.4)
        )
        action = jnp.array([share, gamma, alpha, noise, theta], jnp.float32)
        _, after, _, terminated, _, info = env.step(jax.random.key(step), state, action, params)
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
        nearest = np.max((cells - size / 2) @ ahead) + abs(size @ ahead) / 2
        arrived = nearest >= float(goal(jnp.float32(placed.length)))
        assert bool(info["outcome"]["arrived"]) == arrived
        if terminated:
            break
        np.testing.assert_allclose(seen(after), cells, atol=2e-3)
        cells, state = seen(after).astype(float), after
    assert arrived


@pytest.mark.parametrize("degrees", [17.0, 30.0, 45.0, 77.0, 135.0, 200.0, 300.5])
@pytest.mark.parametrize(("width", "height"), [(120, 80), (60, 200), (90, 90)])
def test_any_direction_has_the_largest_ground_that_fits(degrees, width, height):
    placed = placement.place(str(degrees), width, height)
    x = np.array([0, placed.length, placed.length, 0], float)
    y = np.array([0, 0, placed.breadth, placed.breadth], float)
    left, top = placed.shown(x, y)
    assert ((left >= -1e-6) & (left <= width + 1e-6)).all()
    assert ((top >= -1e-6) & (top <= height + 1e-6)).all()
    np.testing.assert_allclose(placed.met(left, top), (x, y), atol=1e-9)
    angle = math.radians(degrees)
    cosine, sine = abs(math.cos(angle)), abs(math.sin(angle))
    lengths = np.linspace(0.5, math.hypot(width, height), 4000)
    breadths = np.minimum((width - lengths * cosine) / sine, (height - lengths * sine) / cosine)
    best = (lengths * np.maximum(breadths, 0)).max()
    assert placed.length * placed.breadth <= best * 1.001
    assert (placed.length + 1) * (placed.breadth + 1) >= best * 0.999
    ahead = np.array([left[1] - left[0], top[1] - top[0]]) / placed.length
    np.testing.assert_allclose(ahead, [math.cos(angle), -math.sin(angle)], atol=1e-9)


def test_turned_ground_is_what_lies_under_it():
    field, placed = measured(90, 130), placement.place("25", 130, 90)
    met = placement.turned(field, placed)
    assert met.shape == (placed.breadth, placed.length)
    for row, column in ((0, 0), (10, 30), (placed.breadth - 1, placed.length - 1)):
        x, y = placed.shown(np.array([column + 0.5]), np.array([row + 0.5]))
        assert met[row, column] == field[int(y[0]), int(x[0])]


@pytest.mark.parametrize("name", ["forward", "nan", "361", ""])
def test_other_goals_are_refused(name: str):
    with pytest.raises(ValueError, match=r"expected right, left, up, down, or degrees"):
        placement.place(name, 60, 40)
