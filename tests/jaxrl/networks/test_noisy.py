"""Noisy layers against explicit noisy matrices, and the moments of their noise."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP
from jaxrl.networks.noisy import NoisyDense

D, F = 3, 4
LAYER = NoisyDense(F)


@pytest.fixture(scope="module")
def params():
    """Random means and scales."""
    shapes = jax.eval_shape(LAYER.init, jax.random.key(0), jnp.zeros(D))
    random = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(random.normal(size=x.shape), jnp.float32), shapes)


@jax.jit
def with_noise(params, x, key):
    return LAYER.apply(params, x, rngs={"noise": key})


def noise_of(key: jax.Array) -> np.ndarray:
    """`[D + F]` f(ε) of the layer's first draw under `key`."""
    noise_key = nn.apply(lambda layer: layer.make_rng("noise"), LAYER)({}, rngs={"noise": key})
    normal = np.asarray(jax.random.normal(noise_key, (D + F,)), np.float64)
    return np.sign(normal) * np.sqrt(np.abs(normal))


def test_noise_is_that_of_the_explicit_matrix(params):
    layer = jax.tree.map(np.asarray, params["params"])
    x, key = np.random.default_rng(1).normal(size=(2, 6, D)).astype(np.float32), jax.random.key(5)
    noise = noise_of(key)
    incoming, outgoing = noise[:D], noise[D:]
    kernel = layer["kernel"] + layer["kernel_scale"] * np.outer(incoming, outgoing)
    expected = x @ kernel + (layer["bias"] + layer["bias_scale"] * outgoing)
    output = with_noise(params, x, jax.random.clone(key))
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    output = with_noise(params, x[0, 0], jax.random.clone(key))  # one example
    np.testing.assert_allclose(output, expected[0, 0], rtol=1e-4, atol=1e-5)
    output: Any = LAYER.apply(params, x)  # without a key the mean weights
    np.testing.assert_allclose(output, x @ layer["kernel"] + layer["bias"], rtol=1e-4, atol=1e-5)


def test_each_key_has_its_own_noise_of_the_right_size(params):
    """Mean 0 and variance E|ε| (E|ε| Σ σ² x² + σ_b²), with E|ε| = √(2/π)."""
    layer = jax.tree.map(np.asarray, params["params"])
    x = np.array([1.0, -2.0, 0.5], np.float32)
    keys = jax.random.split(jax.random.key(2), 20_000)
    outputs = np.asarray(jax.vmap(with_noise, (None, None, 0))(params, x, keys))
    mean = x @ layer["kernel"] + layer["bias"]
    m = np.sqrt(2 / np.pi)
    mixed = (x * layer["kernel_scale"].T) ** 2  # the bias is on ε_out alone
    variance = m * (m * mixed.sum(axis=1) + layer["bias_scale"] ** 2)
    np.testing.assert_allclose(outputs.mean(0), mean, atol=5 * np.sqrt(variance.max() / 20_000))
    np.testing.assert_allclose(outputs.var(0), variance, rtol=0.1)


def test_noise_starts_at_half_over_the_root_of_the_inputs():
    start: Any = LAYER.init(jax.random.key(0), jnp.zeros(D))["params"]
    for name in ("kernel_scale", "bias_scale"):
        np.testing.assert_allclose(start[name], 0.5 / np.sqrt(D), rtol=1e-6)


@pytest.mark.slow
def test_every_layer_of_a_network_is_noisy_and_atoms_are_dueled_one_by_one():
    network = QNetwork(MLP((8,), noisy=True), 3, dueling=True, streams=(5,), noisy=True, atoms=6)
    obs = jnp.ones((2, D))
    params = jax.jit(network.init)(jax.random.key(0), obs)
    names = {path[-1].key for path, _ in jax.tree.leaves_with_path(params)}
    assert names == {"kernel", "bias", "kernel_scale", "bias_scale"}
    noisy_layers = sum("kernel_scale" in str(path) for path, _ in jax.tree.leaves_with_path(params))
    assert noisy_layers == 5  # the torso, two streams, two heads
    apply = jax.jit(functools.partial(network.apply, capture_intermediates=True))
    logits, variables = apply(params, obs, rngs={"noise": jax.random.key(1)})
    assert logits.shape == (2, 3, 6)
    heads: Any = variables["intermediates"]
    value = np.asarray(heads["value"]["__call__"][0]).reshape(2, 1, 6)
    advantage = np.asarray(heads["advantage"]["__call__"][0]).reshape(2, 3, 6)
    expected = value + advantage - advantage.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-6)
