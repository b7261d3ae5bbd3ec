"""The actor and the critics for continuous actions: by hand, where they start, what they refuse."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.losses.distributions.continuous import SquashedNormal
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.mlp import MLP

D, A, H = 5, 2, 8
LOW, HIGH = (-2.0, 0.0), (3.0, 0.5)
ACTOR = GaussianActor(MLP((H,)), A, LOW, HIGH)
CRITICS = QFunctions(MLP((H,)))


def any_params(network, *example) -> Any:
    """Parameters as training may find them, with biases."""
    shapes = jax.eval_shape(network.init, jax.random.key(0), *example)
    random = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(random.normal(size=x.shape), x.dtype), shapes)


def actor_within(low: float, high: float) -> GaussianActor:
    """Without hidden layers, its log scale in this range."""
    return GaussianActor(MLP(()), A, LOW, HIGH, log_scale_range=(low, high))


def actor_without_bounds() -> GaussianActor:
    no_bound: Any = None
    return GaussianActor(MLP(()), A, no_bound, no_bound)


def count(params) -> int:
    return sum(x.size for x in jax.tree.leaves(params))


def layer(x: np.ndarray, params) -> np.ndarray:
    return x @ np.asarray(params["kernel"], np.float64) + np.asarray(params["bias"], np.float64)


def test_actor_by_hand():
    """log σ is -5 + 7 / (1 + exp(-(x + log(5 / 2)))): between -5 and 2, and 0 where x is 0."""
    params = any_params(ACTOR, jnp.zeros(D))
    assert count(params) == (D * H + H) + 2 * (H * A + A)
    obs = np.random.default_rng(1).normal(size=(3, 4, D))  # say, T and N
    policy: Any = jax.jit(ACTOR.apply)(params, jnp.asarray(obs, jnp.float32))
    layers = params["params"]
    hidden = np.maximum(layer(obs, layers["torso"]["Dense_0"]), 0)
    x = layer(hidden, layers["log_scale"])
    log_scale = -5 + 7 / (1 + np.exp(-x) * 2 / 5)
    assert isinstance(policy, SquashedNormal)
    np.testing.assert_allclose(policy.raw.mean, layer(hidden, layers["mean"]), atol=1e-4)
    np.testing.assert_allclose(np.log(policy.raw.scale), log_scale, atol=1e-4)
    for end, expected in ((policy.low, LOW), (policy.high, HIGH)):
        np.testing.assert_array_equal(end, np.broadcast_to(expected, (3, 4, A)))


@pytest.mark.slow
def test_actor_starts_almost_as_a_standard_normal():
    params = jax.jit(ACTOR.init)(jax.random.key(0), jnp.zeros(D))
    policy: Any = ACTOR.apply(params, jax.random.normal(jax.random.key(1), (100, D)))
    np.testing.assert_allclose(policy.raw.mean, 0.0, atol=0.2)
    np.testing.assert_allclose(policy.raw.scale, 1.0, atol=0.2)


@pytest.mark.parametrize(("low", "high"), [(-5.0, 2.0), (-1.0, 0.5)])
def test_the_scale_stays_in_its_range_and_can_come_back(low: float, high: float):
    network = actor_within(low, high)
    layers = any_params(network, jnp.zeros(D))["params"]

    def log_scale(bias: jax.Array) -> jax.Array:
        head = {"kernel": jnp.zeros((D, A)), "bias": bias}
        policy: Any = network.apply({"params": layers | {"log_scale": head}}, jnp.ones(D))
        return jnp.log(policy.raw.scale)

    for bias, end in ((-30.0, low), (30.0, high)):
        np.testing.assert_allclose(log_scale(jnp.full(A, bias)), end, atol=1e-5)
    for bias in (-8.0, 8.0):
        slope = jax.grad(lambda x: jnp.sum(log_scale(x)))(jnp.full(A, bias))
        assert np.all(np.asarray(slope) > 1e-5)


def test_critics_by_hand():
    """Each has its own torso and head, on the observation and the action side by side."""
    params = any_params(CRITICS, jnp.zeros(D), jnp.zeros(A))
    assert count(params) == 2 * (((D + A) * H + H) + (H + 1))
    random = np.random.default_rng(2)
    obs, action = random.normal(size=(3, 4, D)), random.normal(size=(3, 4, A))
    inputs = (jnp.asarray(obs, jnp.float32), jnp.asarray(action, jnp.float32))
    q: Any = jax.jit(CRITICS.apply)(params, *inputs)
    assert q.shape == (3, 4, 2)
    for k in range(2):
        own = jax.tree.map(lambda x, k=k: x[k], params["params"])
        hidden = layer(np.concatenate([obs, action], axis=-1), own["torso"]["Dense_0"])
        expected = layer(np.maximum(hidden, 0), own["q"])[..., 0]
        np.testing.assert_allclose(q[..., k], expected, rtol=1e-4, atol=1e-4)
    one: Any = CRITICS.apply(params, inputs[0][0, 0], inputs[1][0, 0])
    np.testing.assert_allclose(one, q[0, 0], rtol=1e-4, atol=1e-4)


def test_critics_start_apart_and_orthogonal():
    params = jax.jit(CRITICS.init)(jax.random.key(0), jnp.zeros(D), jnp.zeros(A))
    kernel = np.asarray(params["params"]["torso"]["Dense_0"]["kernel"])  # [2, D + A, H]
    assert not np.allclose(kernel[0], kernel[1], atol=0.1)
    for own in kernel:
        np.testing.assert_allclose(own @ own.T, 2 * np.eye(D + A), atol=1e-5)


def test_integer_observations_are_computed_with_as_float32():
    obs, action = np.arange(D), jnp.ones(A)
    params = any_params(CRITICS, jnp.zeros(D), action)
    q: Any = CRITICS.apply(params, obs, action)
    np.testing.assert_array_equal(q, CRITICS.apply(params, jnp.asarray(obs, jnp.float32), action))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (GaussianActor(MLP(()), A, 1.0, (2.0, 1.0)), "low must be below high"),
        (GaussianActor(MLP(()), A, -1.0, np.inf), "expected a finite box"),
        (GaussianActor(MLP(()), A, (0.0,) * 3, 1.0), "give one number each, or 2"),
        (actor_without_bounds(), "expected a finite box"),
        (actor_within(-5.0, -1.0), "is -5.0 to -1.0, expected a number below"),
        (actor_within(-np.inf, 1.0), "and one above: the scale starts at 1"),
        (QFunctions(MLP(()), size=0), "size is 0, expected at least 1"),
    ],
)
def test_impossible_networks_are_refused_in_one_line(network, message):
    inputs = (jnp.zeros(D), jnp.zeros(A))[: 1 + isinstance(network, QFunctions)]
    with pytest.raises(ValueError, match=message) as error:
        jax.eval_shape(network.init, jax.random.key(0), *inputs)
    assert "\n" not in str(error.value)
