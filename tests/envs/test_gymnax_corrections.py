"""Spaces of gymnax's environments against what these show, and data that are not there."""

import gzip
import struct
from pathlib import Path
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.utils import load_mnist

from envs import gymnax_corrections
from envs.gymnasium_adapter import GymnasiumEnv
from envs.gymnax_corrections import observation_space
from envs.spaces import contains
from envs.wrappers import LastAction

STATES: dict[str, list[dict[str, Any]]] = {
    "MemoryChain-bsuite": [
        {"time": t, "context": jnp.array([bit, 1 - bit, bit]), "query": 2}
        for t in (0, 4, 6)
        for bit in (0, 1)
    ],
    "GaussianBandit-misc": [
        {"time": t, "last_reward": jnp.float32(x)} for t in (0.0, 300.0) for x in (-5.0, 5.0)
    ],
    "BernoulliBandit-misc": [
        {"time": t, "last_reward": jnp.float32(x)} for t in (0.0, 300.0) for x in (0.0, 1.0)
    ],
    "MetaMaze-misc": [
        {"time": t, "last_reward": jnp.float32(x)} for t in (0.0, 300.0) for x in (-2.0, 10.0)
    ],
}
"""What may be met in an episode of 300 steps, at most 6 of them in a chain."""
LONG = {"max_steps_in_episode": 300}
NUMBERS = dict.fromkeys(STATES, LONG) | {"MetaMaze-misc": LONG | {"punishment": -2.0}}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "env_id",
    [
        pytest.param(env_id, marks=[pytest.mark.slow] if env_id.startswith("Gaussian") else [])
        for env_id in STATES
    ],
)
def test_what_is_shown_lies_in_the_space(env_id):
    """The ends of everything that is bounded, with clocks from 0 to 300 and from -1 on."""
    options = {"num_bits": 3} if env_id == "MemoryChain-bsuite" else {}
    env, params = gymnax.make(env_id, **options)
    _, start = jax.jit(env.reset_env)(jax.random.key(0), params)
    params = params.replace(**NUMBERS[env_id])
    clocks = [{"normalize_time": x} for x in (True, False)] if "Memory" not in env_id else [{}]
    for clock in clocks:
        space = observation_space(env, params.replace(**clock))
        for state in STATES[env_id]:
            obs = env.get_obs(start.replace(**state), params.replace(**clock))
            assert contains(space, obs), state
        assert not contains(space, obs + 301.0)


def test_catch_shows_real_numbers_as_its_space_says():
    env, params = gymnax.make("Catch-bsuite")
    obs, _ = env.reset(jax.random.key(0), params)
    space = observation_space(env, params)
    assert contains(space, obs)
    assert (space.shape, space.dtype) == (obs.shape, obs.dtype)


def test_wrappers_and_adapter_have_the_right_space():
    env, params = gymnax.make("MemoryChain-bsuite")
    expected = [-1, 0, -1]
    adapted: Any = GymnasiumEnv(env).observation_space
    np.testing.assert_array_equal(adapted.low, expected)
    around: Any = LastAction(env).observation_space(params)
    np.testing.assert_array_equal(around.low, [*expected, 0, 0])


def test_classes_that_say_better_are_asked():
    class Better(type(gymnax.make("GaussianBandit-misc")[0])):
        def observation_space(self, params):
            return "mine"

    assert observation_space(Better(), None) == "mine"


def write_mnist(directory: Path) -> None:
    """Three images of one grey value each, 0, 100 and 255, and labels."""
    images = np.repeat(np.array([0, 100, 255], np.uint8), 28 * 28).tobytes()
    for name in gymnax_corrections.MNIST_FILES:
        sizes = (3, 28, 28) if "images" in name else (3,)
        content = struct.pack(f">{1 + len(sizes)}I", 0, *sizes)
        content += images if "images" in name else bytes(3)
        (directory / name).write_bytes(gzip.compress(content))


def test_mnist_is_not_fetched_from_the_network(tmp_path, monkeypatch):
    """Its class takes the files where they are."""
    calls = []
    monkeypatch.setattr(load_mnist, "urlretrieve", lambda *x: calls.append(x))
    monkeypatch.setattr(gymnax_corrections, "MNIST", tmp_path)
    with pytest.raises(ValueError, match=r"needs the data of MNIST, .*train-images.*: put "):
        gymnax_corrections.make("MNISTBandit-bsuite")
    write_mnist(tmp_path)
    load = load_mnist.load_mnist
    monkeypatch.setattr(load_mnist, "load_mnist", lambda: load(str(tmp_path)))
    env, params = gymnax_corrections.make("MNISTBandit-bsuite")
    space = observation_space(env, params)
    assert not calls
    for seed in range(8):
        assert contains(space, env.reset_env(jax.random.key(seed), params)[0])
