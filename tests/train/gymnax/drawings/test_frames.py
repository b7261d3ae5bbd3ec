"""Pictures of states: things lie where trigonometry and the rules of the environment say."""

import math
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.pictures.tiles import rgb
from train.gymnax.drawings import channels, classic_control, drawing, mazes, planes
from train.gymnax.drawings.canvas import WIDTH

make = lru_cache(gymnax.make)
GAMES = {
    "Asterix-MinAtar": channels.ASTERIX,
    "Breakout-MinAtar": channels.BREAKOUT,
    "Freeway-MinAtar": channels.FREEWAY,
    "Seaquest-MinAtar": channels.SEAQUEST,
    "SpaceInvaders-MinAtar": channels.SPACE_INVADERS,
    "Pong-misc": channels.PONG,
}


def pixels_of(picture: np.ndarray, colour: str) -> np.ndarray:
    """Where a picture has exactly this colour: (x, y) in pixels, y downwards, float64 `[P, 2]`."""
    rows, cols = np.nonzero((picture == rgb(colour).astype(np.uint8)).all(-1))
    return np.stack([cols + 0.5, rows + 0.5], -1)


def middle(picture: np.ndarray, colour: str) -> np.ndarray:
    return pixels_of(picture, colour).mean(0)


def from_centre(picture: np.ndarray, colour: str) -> np.ndarray:
    """The middle of a colour, from the centre of the picture, y upwards."""
    height, width, _ = picture.shape
    return (middle(picture, colour) - [width / 2, height / 2]) * [1, -1]


@pytest.mark.parametrize(("x", "theta"), [(0, 0), (1.3, 0.2), (-2.4, -0.21), (0.4, 0.8)])
def test_the_tip_of_the_pole_is_where_trigonometry_says(x: float, theta: float):
    picture = drawing.frame(*make("CartPole-v1"), SimpleNamespace(x=x, theta=theta))
    red = pixels_of(picture, classic_control.TIP)
    posts = red[red[:, 1] > picture.shape[0] - 5, 0]  # their inner sides are the limits of the cart
    right = posts[posts > WIDTH / 2].min() - 0.5
    scale = 2 * (right - WIDTH / 2) / 4.8  # limits are ±2.4, and 0 is in the middle
    hinge = red[red[:, 0] > right][:, 1].min() - 0.5  # posts end at its height
    tip = red[red[:, 1] < hinge - 5].mean(0)
    # the pole is 1 long, twice `length`, and leans to the right where its angle is positive
    expected = [WIDTH / 2 + scale * (x + math.sin(theta)), hinge - scale * math.cos(theta)]
    np.testing.assert_allclose(tip, expected, atol=1.5)


def test_acrobat_reaches_the_line_exactly_where_its_episode_ends():
    env, params = make("Acrobot-v1")
    angles = np.random.default_rng(0).uniform(-math.pi, math.pi, (40, 2))
    outcomes = []
    for first, second in angles:
        state: Any = SimpleNamespace(joint_angle1=first, joint_angle2=second)
        picture = drawing.frame(env, params, state)
        unit = from_centre(picture, classic_control.GREEN)[1]  # height 1
        tip = from_centre(picture, classic_control.TIP) / unit
        expected = [
            math.sin(first) + math.sin(first + second),
            -math.cos(first) - math.cos(first + second),
        ]
        np.testing.assert_allclose(tip, expected, atol=0.03)
        if abs(expected[1] - 1) > 0.03:
            outcomes.append((tip[1] > 1, bool(env.is_terminated(state, params))))
    assert all(above == done for above, done in outcomes)
    assert {done for _, done in outcomes} == {True, False}


def pendulum_at(theta: float, torque: float) -> np.ndarray:
    env, params = make("Pendulum-v1")
    return drawing.frame(env, params, SimpleNamespace(theta=theta, last_u=torque))


def test_the_pendulum_turns_counterclockwise_from_upright():
    unit = from_centre(pendulum_at(0, 0), classic_control.TIP)[1]
    assert unit > 100
    for theta in (-2.5, -0.6, 0.3, 1.2, 3.0):
        tip = from_centre(pendulum_at(theta, 0), classic_control.TIP) / unit
        np.testing.assert_allclose(tip, [-math.sin(theta), math.cos(theta)], atol=0.02)


def test_the_arrow_of_the_pendulum_shows_where_its_torque_turns_it():
    env, params = make("Pendulum-v1")
    green = classic_control.GREEN
    assert not len(pixels_of(pendulum_at(0, 0), green))
    for torque in (-2.0, 1.0):
        state: Any = SimpleNamespace(theta=0.0, theta_dot=0.0, time=0)
        after = env.step_env(jax.random.key(0), state, jnp.array([torque]), params)[1]
        moved = -math.sin(after.theta)  # to the right
        assert moved * from_centre(pendulum_at(0, torque), green)[0] > 0


@pytest.mark.parametrize("name", ["MountainCar-v0", "MountainCarContinuous-v0"])
@pytest.mark.parametrize("position", [-1.0, -math.pi / 6, -0.2, 0.3])
def test_the_car_stands_on_the_hill(name: str, position: float):
    env, params = make(name)
    place = lambda x: drawing.frame(env, params, SimpleNamespace(position=x))
    empty, picture = place(-5.0), place(position)  # far away there is no car in the picture
    assert not len(pixels_of(empty, classic_control.CAR))
    hill = pixels_of(empty, classic_control.HILL)
    cols = np.arange(40, WIDTH - 4) + 0.5
    top = np.array([hill[hill[:, 0] == col, 1].min() for col in cols])
    # it accelerates by -cos(3x): the valley is at -π/6 and the top at π/6
    valley, peak = (cols[top == end].mean() for end in (top.max(), top.min()))
    scale = (peak - valley) / (math.pi / 3)
    at = lambda x: valley + scale * (x + math.pi / 6)
    sine = np.sin(3 * ((cols - valley) / scale - math.pi / 6))
    assert np.corrcoef(sine, top)[0, 1] < -0.9999

    ground = np.array([at(position), np.interp(at(position), cols, top)])
    slope = np.interp(at(position) + 3, cols, top) - np.interp(at(position) - 3, cols, top)
    along = np.array([6, slope]) / math.hypot(6, slope)
    offset = middle(picture, classic_control.CAR) - ground
    assert abs(offset @ along) < 3.5  # a tenth of the car
    assert 5 < offset @ [along[1], -along[0]] < 15  # above the ground, as high as a car
    flag = pixels_of(picture, classic_control.RED)
    assert abs(flag[:, 0].min() - at(params.goal_position)) < 3


@pytest.mark.parametrize("name", GAMES)
def test_a_cell_has_the_colour_of_its_channel(name: str):
    env, params = make(name)
    game_channels = GAMES[name]
    rows, cols, count = env.observation_space(params).shape
    assert count == len(game_channels)
    cells = np.random.default_rng(1).random((rows, cols, count)) < 0.15
    picture, size = channels.picture(cells, game_channels), WIDTH // cols
    left = (WIDTH - cols * size) // 2
    for row, col in np.ndindex(rows, cols):
        pixel = picture[row * size + size // 2, left + col * size + size // 2].tolist()
        colours = [game_channels[i].colour for i in range(count) if cells[row, col, i]]
        assert pixel in [rgb(colour).tolist() for colour in colours or [channels.EMPTY]]


@pytest.mark.parametrize("name", GAMES)
def test_the_legend_has_every_colour_once(name: str):
    named_channels = [channel for channel in GAMES[name] if channel.name]
    assert len({channel.colour for channel in named_channels}) == len(named_channels)
    legend_image = channels.legend(GAMES[name])
    for channel in named_channels:
        assert len(pixels_of(legend_image, channel.colour)) >= channels.SWATCH**2


def test_the_ball_of_breakout_is_seen_over_its_trail_and_the_bricks():
    env, params = make("Breakout-MinAtar")
    _, state = jax.device_get(env.reset(jax.random.key(0), params))
    assert (state.ball_y, state.ball_x) == (state.last_y, state.last_x)
    size = WIDTH // 10
    corner = np.array([state.ball_x, state.ball_y]) * size
    board = drawing.frame(env, params, state)[: WIDTH - 1]
    white = pixels_of(board, channels.WHITE)
    assert len(white) == (size - 1) ** 2
    assert ((corner < white) & (white < corner + size)).all()
    assert len(pixels_of(board, channels.ORANGE)) == 29 * (size - 1) ** 2
    state = state.replace(ball_y=np.int32(6), ball_x=np.int32(2))
    board = drawing.frame(env, params, state)
    assert (board[6 * size + 5, 2 * size + 5] == 255).all()


def test_an_observation_with_other_channels_is_refused():
    with pytest.raises(ValueError, match="the observation has 3 channels; expected 4"):
        channels.picture(np.zeros((10, 10, 3)), channels.BREAKOUT)


def test_boards_show_what_moves_in_its_cell():
    catch, params = make("Catch-bsuite")  # 10 rows, 5 columns: cells of 44 pixels
    state = SimpleNamespace(ball_y=3, ball_x=4, paddle_y=9, paddle_x=1)
    picture = drawing.frame(catch, params, state)
    np.testing.assert_allclose(middle(picture, mazes.BALL), [110 + 4.5 * 44, 3.5 * 44], atol=1)
    np.testing.assert_allclose(middle(picture, mazes.AGENT), [110 + 1.5 * 44, 9.5 * 44], atol=1)

    lake, params = make("FrozenLake-misc")  # SFFF FHFH FFFH HFFG: cells of 110 pixels
    picture = drawing.frame(lake, params, SimpleNamespace(position=6))
    np.testing.assert_allclose(middle(picture, mazes.RED), [2.5 * 110, 1.5 * 110], atol=1)
    for cell, colour in {(1, 3): mazes.WATER, (3, 3): mazes.TREASURE, (0, 0): mazes.BANK}.items():
        row, col = (110 * i + 10 for i in cell)
        assert picture[row, col].tolist() == rgb(colour).tolist()

    rooms, params = make("FourRooms-misc")
    state = SimpleNamespace(pos=np.array([4, 1]), goal=np.array([8, 9]))
    picture = drawing.frame(rooms, params, state)
    cell = WIDTH / 13
    np.testing.assert_allclose(middle(picture, mazes.AGENT), [1.5 * cell, 4.5 * cell], atol=1)
    np.testing.assert_allclose(middle(picture, mazes.GOAL), [9.5 * cell, 8.5 * cell], atol=1)


def test_a_dive_goes_down_the_sea_and_ends_on_its_ground():
    env, params = make("DeepSea-bsuite", size=4)
    at = lambda row, col: drawing.frame(env, params, SimpleNamespace(row=row, column=col))
    size = WIDTH / 5  # of a cell: the ground is a fifth row
    left = (WIDTH - 4 * size) / 2
    for row, col in [(0, 0), (2, 1), (4, 3)]:
        expected = [left + (col + 0.5) * size, (row + 0.5) * size]
        np.testing.assert_allclose(middle(at(row, col), mazes.AGENT), expected, atol=1)
    treasure = middle(at(0, 0), mazes.TREASURE)
    np.testing.assert_allclose(treasure, [left + 3.5 * size, 3.5 * size], atol=1)


def test_points_and_arms_lie_where_their_states_say():
    env, params = make("PointRobot-misc")
    position, goal = np.array([0.2, 0.1]), np.array([-0.6, 0.8])
    picture = drawing.frame(env, params, SimpleNamespace(pos=position, goal=goal))
    disc = pixels_of(picture, planes.GOAL)
    scale = np.ptp(disc[:, 0] + 1) / (2 * params.goal_radius)
    offset = (middle(picture, planes.AGENT) - disc.mean(0)) * [1, -1] / scale
    np.testing.assert_allclose(offset, position - goal, atol=0.02)

    env, params = make("Reacher-misc")
    angles, goal = np.array([0.3, 1.9]), np.array([-1.2, 0.9])
    picture = drawing.frame(env, params, SimpleNamespace(angles=angles, goal_xy=goal))
    there, tip = (from_centre(picture, colour) for colour in (planes.GOAL, planes.AGENT))
    scale = np.linalg.norm(there) / np.linalg.norm(goal)
    np.testing.assert_allclose(there / scale, goal, atol=0.02)
    np.testing.assert_allclose(tip / scale, [np.cos(angles).sum(), np.sin(angles).sum()], atol=0.02)


def test_what_leaves_the_picture_is_held_at_its_edge():
    env, params = make("Swimmer-misc")
    state = {"urchin_xys": np.zeros((0, 2)), "goal_xy": np.zeros(2)}
    inside, outside = (
        drawing.frame(env, params, SimpleNamespace(xy=np.array(place), **state))
        for place in ([0.7, 0.7], [9.0, 0.7])
    )
    assert len(pixels_of(outside, planes.AGENT)) < len(pixels_of(inside, planes.AGENT))  # hollow
    assert middle(outside, planes.AGENT)[0] > WIDTH - 15
