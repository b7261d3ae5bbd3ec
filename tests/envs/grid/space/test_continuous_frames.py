"""Pictures of positions against a slow painter, and as an environment and a network show them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.checker import env_checker
from envs.grid import layouts
from envs.grid.space import continuous, continuous_frames
from envs.grid.space.continuous import ContinuousMaze
from train.allo.space.frame_input import FrameInput, mean_frame

LAYOUT = layouts.parse("..#.\n.#..\n....")
PLACES = np.array([[0.5, 0.5], [2.2, 1.9], [1.35, 3.8]])


def paint(position: np.ndarray, tile: int, floor, wall, walker) -> np.ndarray:
    """One picture, pixel by pixel."""
    rows, cols = LAYOUT.height * tile, LAYOUT.width * tile
    picture = np.zeros((rows, cols, len(floor)))
    for i in range(rows):
        for j in range(cols):
            below = np.array(floor if LAYOUT.free[i // tile, j // tile] else wall)
            middle = np.array([i + 0.5, j + 0.5]) / tile
            cover = min(max(0.5 + (0.5 - np.linalg.norm(middle - position)) * tile, 0), 1)
            picture[i, j] = (1 - cover) * below + cover * np.array(walker)
    return picture


@pytest.mark.parametrize(
    ("colours", "floor", "wall", "walker"),
    [
        ("rgb", [1, 1, 1], [110 / 255] * 3, [0, 0, 1]),
        ("grey", [1], [110 / 255], [0]),
    ],
)
def test_pictures_are_those_of_a_slow_painter(colours, floor, wall, walker):
    pictures = continuous_frames.frames(LAYOUT.free, PLACES, 4, colours)
    expected = [paint(place, 4, floor, wall, walker) for place in PLACES]
    np.testing.assert_allclose(pictures, expected, atol=1e-6)
    on_device = continuous_frames.frames(
        jnp.asarray(LAYOUT.free), jnp.asarray(PLACES[1]), 4, colours, jnp
    )
    np.testing.assert_allclose(on_device, expected[1], atol=1e-6)
    shape = continuous_frames.frame_shape(LAYOUT.height, LAYOUT.width, 4, colours)
    assert on_device.shape == shape


def test_a_walker_has_the_area_of_its_disc_wherever_it_is():
    """So that no place stands out; a pixel's part of the disc is its cover, to first order."""
    free = np.ones((5, 5), bool)
    places = np.random.default_rng(0).uniform(1, 4, (50, 2))
    pictures = continuous_frames.frames(free, places, 8, "grey")
    area = (1 - pictures).sum(axis=(1, 2, 3)) / 8**2
    np.testing.assert_allclose(area, np.pi * 0.5**2, rtol=0.03)


def test_the_environment_shows_them():
    env = ContinuousMaze(LAYOUT, 0.7, "rendered", tile=4, colours="grey")
    params = env.default_params
    obs, state = env.reset(jax.random.key(0), params)
    expected = continuous_frames.frames(LAYOUT.free, np.asarray(state.position), 4, "grey")
    np.testing.assert_allclose(obs, expected, atol=1e-5)
    assert env.observation_space(params).shape == (12, 16, 1)
    assert env != ContinuousMaze(LAYOUT, 0.7, "rendered", tile=4)


@pytest.mark.slow
def test_the_environment_keeps_the_contract():
    env_checker(ContinuousMaze(LAYOUT, 0.7, "rendered"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation": "index"}, "observation 'index' is unknown"),
        ({"colours": "red"}, "colours 'red' is unknown; expected one of rgb, grey"),
        ({"tile": 0}, "tile is 0; expected at least one pixel"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ContinuousMaze(LAYOUT, **arguments)


def test_a_network_takes_positions_and_pictures_alike():
    module: Any = FrameInput(LAYOUT, 4, "rgb")
    obs = jnp.asarray(continuous.coordinates(PLACES, 3, 4), jnp.float32)
    pictures = continuous_frames.frames(LAYOUT.free, PLACES, 4, "rgb")
    expected = pictures - mean_frame(LAYOUT, 4, "rgb")
    np.testing.assert_allclose(module.apply({}, obs), expected, atol=1e-5)
    np.testing.assert_allclose(module.apply({}, jnp.asarray(pictures)), expected, atol=1e-6)
    np.testing.assert_allclose(module.apply({}, obs[1]), expected[1], atol=1e-5)


def test_the_mean_picture_is_that_of_many_places():
    rng = np.random.default_rng(0)
    cells = LAYOUT.cells[rng.integers(0, LAYOUT.num_states, 20_000)]
    places = cells + rng.uniform(size=cells.shape)
    pictures = continuous_frames.frames(LAYOUT.free, places, 2, "grey")
    np.testing.assert_allclose(pictures.mean(axis=0), mean_frame(LAYOUT, 2, "grey"), atol=0.02)
