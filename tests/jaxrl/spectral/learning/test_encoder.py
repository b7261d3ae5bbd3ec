"""Encoder and Fourier features against NumPy, one observation against a batch of them."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

from jaxrl.networks.mlp import MLP
from jaxrl.spectral.learning import encoder as encoder_module
from jaxrl.spectral.learning.encoder import Encoder, Fourier, TwoSided


def fourier(frequencies: int, x: jax.Array) -> Any:
    return Fourier(frequencies).apply({}, x)


def waves(x: np.ndarray, count: int) -> np.ndarray:
    """x itself, then for each coordinate its waves from the longest to the shortest."""
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        harmonics = [np.cos(k * np.pi * (c + 1) / 2) for c in row for k in range(1, count + 1)]
        rows.append([*row, *harmonics])
    return np.reshape(rows, (*x.shape[:-1], -1))


@pytest.mark.parametrize("shape", [(2,), (5, 2), (3, 4, 1)])
def test_fourier_features_term_by_term(shape):
    x = np.random.default_rng(0).uniform(-1, 1, shape)
    features = fourier(3, jnp.asarray(x, jnp.float32))
    assert features.shape == (*shape[:-1], shape[-1] * 4)
    np.testing.assert_allclose(features, waves(x, 3), atol=1e-5)


def test_fourier_features_have_half_waves_and_level_ends():
    one = jax.jit(lambda x: fourier(4, jnp.reshape(x, (1,)))[1:])
    np.testing.assert_allclose(one(jnp.array(-1.0)), [1, 1, 1, 1], atol=1e-6)
    np.testing.assert_allclose(one(jnp.array(1.0)), [-1, 1, -1, 1], atol=1e-6)
    for end in (-1.0, 1.0):
        np.testing.assert_allclose(jax.jacobian(one)(jnp.array(end)), np.zeros(4), atol=1e-5)
    grid = jnp.linspace(-1, 1, 2001)
    signs = np.sign(jax.vmap(one)(grid))
    changes = (np.diff(signs[np.all(signs != 0, axis=1)], axis=0) != 0).sum(axis=0)
    np.testing.assert_array_equal(changes, [1, 2, 3, 4])


@pytest.mark.slow
def test_encoder_is_a_linear_head_on_its_torso(key):
    """What turns the head turns the features: u T = torso (W T) + b T."""
    encoder: Any = Encoder(MLP((8, 7)), 3)
    apply = jax.jit(encoder.apply)
    obs = jax.random.normal(jax.random.key(1), (5, 2))
    params = encoder.init(key, obs[0])["params"]
    assert sorted(params) == ["head", "torso"]
    assert params["head"]["kernel"].shape == (7, 3)
    layers = MLP((8, 7)).apply({"params": params["torso"]}, obs)
    bias = jnp.arange(3.0)
    params = {**params, "head": {**params["head"], "bias": bias}}
    features = apply({"params": params}, obs)
    expected = np.asarray(layers) @ np.asarray(params["head"]["kernel"]) + np.arange(3.0)
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)
    turn = np.random.default_rng(2).normal(size=(3, 3)).astype(np.float32)
    by_hand = encoder_module.with_head({"params": params}, lambda x: x @ turn)
    np.testing.assert_allclose(apply(by_hand, obs), expected @ turn, rtol=1e-4, atol=1e-5)


def test_a_turn_takes_the_momentum_along(key):
    """The slope of a loss of what the features span is that of the old head times turn⁻ᵀ."""
    encoder: Any = Encoder(MLP((8,)), 3)
    obs = jax.random.normal(jax.random.key(1), (6, 2))
    params = encoder.init(key, obs[0])
    turn = np.random.default_rng(2).normal(size=(3, 3)).astype(np.float32)
    inverse, weights = np.linalg.inv(turn), jnp.arange(1.0, 19.0).reshape(6, 3)

    def loss(params, unturn):
        return jnp.sum(weights * jnp.sin(encoder.apply(params, obs) @ unturn))

    turned_params, _ = encoder_module.rotate_head(params, (), jnp.asarray(turn))
    before = jax.grad(loss)(params, np.eye(3, dtype=np.float32))
    after = jax.grad(loss)(turned_params, inverse)
    _, mean = encoder_module.rotate_head(params, {"mu": before, "nu": before}, jnp.asarray(turn))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), mean["mu"], after)
    jax.tree.map(np.testing.assert_array_equal, mean["nu"], before)


def test_one_observation_as_in_a_batch(key):
    encoder: Any = Encoder(nn.Sequential((Fourier(4), MLP((8,)))), 3)
    obs = jax.random.normal(jax.random.key(1), (5, 2))
    params = encoder.init(key, obs[0])
    batch = encoder.apply(params, obs)
    assert batch.shape == (5, 3)
    singles = np.stack([encoder.apply(params, x) for x in obs])
    np.testing.assert_allclose(batch, singles, rtol=1e-5, atol=1e-6)


def test_two_sided_encoders_are_two_that_turn_alike():
    """Each side is its own torso and head; turned heads give turned features."""
    network = TwoSided(MLP((8,)), MLP((8,)), 3)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)), jnp.float32)
    params: Any = network.init(jax.random.key(0), x[0])
    out: Any = network.apply(params, x)
    assert out.shape == (5, 2, 3)
    inner = params["params"]
    for side, name in enumerate(("first", "second")):
        side_params = {"params": {"torso": inner[name], "head": inner["head"][name]}}
        expected: Any = Encoder(MLP((8,)), 3).apply(side_params, x)
        np.testing.assert_allclose(out[:, side], expected, atol=1e-6)
    rotation = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)), jnp.float32)
    state = optax.adam(1e-3).init(params)
    turned_params, _ = encoder_module.rotate_head(params, state, rotation)
    turned_out: Any = network.apply(turned_params, x)
    np.testing.assert_allclose(turned_out, out @ rotation, atol=1e-5)
