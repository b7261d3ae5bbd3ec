"""Films of episodes: their frames and times, and what can be filmed."""

from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnax
import jax
import numpy as np
import pytest
from gymnax.environments.classic_control import cartpole
from PIL import Image

import envs
from envs.wrappers import ActionRepeat, FrameStack, StickyActions
from train.gymnax.drawings import drawing
from train.gymnax.drawings.canvas import STRIP, WIDTH, add_caption, shorten

IDS = {  # what is drawn, by name; the rest of gymnax has nothing to see
    *("CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0"),
    *("Asterix-MinAtar", "Breakout-MinAtar", "Freeway-MinAtar", "Seaquest-MinAtar"),
    *("SpaceInvaders-MinAtar", "Pong-misc", "Catch-bsuite", "DeepSea-bsuite", "FrozenLake-misc"),
    *("FourRooms-misc", "MetaMaze-misc", "PointRobot-misc", "Reacher-misc", "Swimmer-misc"),
    *("Snake-v0", "TwoSnake-v0", "Grid-v0", "CircularCartPole-v0"),
}
make = lru_cache(gymnax.make)


def read(path: Path) -> tuple[list[np.ndarray], list[int]]:
    """The frames of a GIF, uint8 `[H, W, 3]`, and their milliseconds."""
    frames, times = [], []
    with Image.open(path) as image:
        for i in range(getattr(image, "n_frames", 1)):
            image.seek(i)
            frames.append(np.asarray(image.convert("RGB")))
            times.append(image.info["duration"])
    return frames, times


def cart_states(count: int) -> Any:
    """States `[count]` of a cart that rolls to the right."""
    state: Any = cartpole.EnvState
    x, time = np.linspace(-1, 1, count), np.arange(count)
    return state(x=x, x_dot=0 * x, theta=0.2 * np.sin(x), theta_dot=0 * x, time=time)


CART_POLE, CART_POLE_PARAMS = make("CartPole-v1")


LONG = {
    *("Asterix-MinAtar", "Freeway-MinAtar", "Seaquest-MinAtar", "SpaceInvaders-MinAtar"),
    *("MetaMaze-misc", "DeepSea-bsuite", "Grid-v0"),
}
"""Environments whose states take long to trace."""


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=[pytest.mark.slow] * (x in LONG))
        for x in sorted(IDS - {"Snake-v0", "TwoSnake-v0"})
    ],
)
def test_every_environment_is_drawn(name: str):
    env, params = make(name)
    _, shapes = jax.eval_shape(env.reset_env, jax.random.key(0), params)
    state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
    picture = drawing.frame(env, params, state)
    assert drawing.can_draw(env)
    assert (picture.dtype, picture.shape[2]) == (np.uint8, 3)
    assert 420 <= picture.shape[1] <= WIDTH
    assert 120 <= picture.shape[0] <= 560
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) >= 3


def test_the_table_has_nothing_else():
    kinds = {type(make(name)[0]) for name in IDS}
    assert kinds == set(drawing.DRAWINGS) | set(drawing.SNAKES)


def test_a_film_has_a_frame_for_each_state(tmp_path: Path):
    path, states = tmp_path / "film.gif", cart_states(20)
    drawing.film(CART_POLE, CART_POLE_PARAMS, states, path, "time limit")
    frames, times = read(path)
    assert times == [20] * 19 + [2000]  # 50 steps a second, as time passes in CartPole
    for i in (0, 7, 19):
        state = jax.tree.map(lambda x, i=i: x[i], states)
        picture = drawing.frame(CART_POLE, CART_POLE_PARAMS, state)
        ending = "time limit" if i == 19 else ""
        expected = np.asarray(add_caption(picture, "CartPole-v1", i, ending))
        difference = np.abs(frames[i].astype(int) - expected)
        assert (difference.max(-1) > 16).mean() < 0.002  # all but a few mixtures on edges
    assert [entry.name for entry in tmp_path.iterdir()] == ["film.gif"]


def test_long_episodes_are_thinned_and_keep_their_last_two_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "film.gif"
    monkeypatch.setattr(drawing, "MOST_FRAMES", 12)
    drawing.film(CART_POLE, CART_POLE_PARAMS, cart_states(36), path)
    frames, times = read(path)
    steps = [0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 34, 35]
    assert times == [60] * 13 + [2000]
    empty = np.zeros((1, WIDTH, 3), np.uint8)
    for step, picture in zip(steps, frames, strict=True):
        captions = [
            np.asarray(add_caption(empty, "CartPole-v1", other))[:STRIP].astype(int)
            for other in range(36)
        ]
        differences = [np.abs(picture[:STRIP] - caption).sum() for caption in captions]
        assert np.argmin(differences) == step


def test_time_that_passes_in_fine_steps_passes_as_fast_in_the_film(tmp_path: Path):
    env, params = make("CircularCartPole-v0")
    _, shapes = jax.eval_shape(env.reset_env, jax.random.key(0), params)
    states = jax.tree.map(lambda x: np.zeros((41, *x.shape), x.dtype), shapes)
    drawing.film(env, params, states, tmp_path / "film.gif")
    _, times = read(tmp_path / "film.gif")
    # steps 0, 4, ..., 36, 39 and 40: every fourth, for 4 times 5 ms
    assert params.dt == 0.005
    assert times == [20] * 11 + [2000]


def test_a_wrapped_environment_is_filmed_as_the_one_inside(tmp_path: Path):
    env = FrameStack(StickyActions(CART_POLE), 2)
    states = cart_states(5)
    wrapped = SimpleNamespace(env=SimpleNamespace(env=states))
    drawing.film(CART_POLE, CART_POLE_PARAMS, states, tmp_path / "plain.gif")
    drawing.film(env, env.default_params, wrapped, tmp_path / "wrapped.gif")
    assert drawing.can_draw(env)
    assert (tmp_path / "plain.gif").read_bytes() == (tmp_path / "wrapped.gif").read_bytes()


def test_time_passes_as_fast_where_actions_are_repeated(tmp_path: Path):
    env, states = FrameStack(ActionRepeat(CART_POLE, 4), 2), cart_states(5)
    wrapped = SimpleNamespace(env=SimpleNamespace(env=states))
    drawing.film(env, env.default_params, wrapped, tmp_path / "film.gif")
    assert read(tmp_path / "film.gif")[1] == [80] * 4 + [2000]  # 4 times 20 ms


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", ["Snake-v0", "TwoSnake-v0"])
@pytest.mark.parametrize("ending", ["", "time up", "stopped here"])
def test_snakes_are_filmed_by_their_own_modules(name: str, ending: str, tmp_path: Path):
    env, params = envs.make(name, rows=9, cols=9)
    _, state = jax.device_get(env.reset(jax.random.key(0), params))
    states = jax.tree.map(lambda x: np.stack([x, x, x]), state)
    drawing.film(env, params, states, tmp_path / "film.gif", ending)
    frames, times = read(tmp_path / "film.gif")
    assert (len(frames), times[-1]) == (3, 2000)
    assert drawing.frame(env, params, state).shape == frames[0].shape
    strips = [frame[:STRIP] for frame in frames]
    assert (strips[0] == strips[1]).all()
    assert (strips[1] != strips[2]).any() == (ending != "" or name == "Snake-v0")  # has crashed


def test_the_rest_is_refused_in_one_line(tmp_path: Path):
    for name in ("MemoryChain-bsuite", "BernoulliBandit-misc", "VectorField-v0"):
        env, params = make(name)
        assert not drawing.can_draw(env)
        with pytest.raises(ValueError, match=f"^{name} cannot be drawn; add its drawing") as error:
            drawing.film(env, params, cart_states(3), tmp_path / "film.gif")
        assert "\n" not in str(error.value)
        with pytest.raises(ValueError, match=f"^{name} cannot be drawn"):
            drawing.frame(env, params, cart_states(3))
    with pytest.raises(ValueError, match="there are no states to draw; expected at least one"):
        drawing.film(CART_POLE, CART_POLE_PARAMS, cart_states(0), tmp_path / "film.gif")
    assert not list(tmp_path.iterdir())


def test_an_ending_too_long_for_its_place_is_cut():
    font: Any = SimpleNamespace(getlength=lambda text: 10.0 * len(text))
    assert shorten("goal reached", font, 120) == "goal reached"
    assert shorten("goal reached", font, 119) == "goal reach…"
    assert shorten("goal reached", font, 5) == "…"
