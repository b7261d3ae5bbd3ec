"""Policies in the mirror: the outputs of a plain network of pairs, and exact symmetry."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.observations import reflect_near, reflect_tail
from jaxrl.networks.mirror import MirrorActorCritic

SIZES = {"tail": (28, reflect_tail), "near": (191, reflect_near)}


@pytest.fixture(params=SIZES)
def network(request, key):
    """A network, its parameters (not those at the start, whose biases are 0), and observations."""
    size, reflect = SIZES[request.param]
    module = MirrorActorCritic((12, 8, 6), reflect)
    obs = jax.random.normal(key, (5, size))
    start = module.init(key, obs)
    params = jax.tree.map(lambda x: x + 0.1 * jnp.cos(jnp.arange(x.size)).reshape(x.shape), start)
    return module, params, obs


def plain_outputs(module, params, obs: np.ndarray) -> tuple[np.ndarray, float]:
    """Logits and value of one observation, unit by unit."""
    weights = jax.tree.map(np.asarray, params["params"])
    reflected = np.asarray(module.reflect(jnp.asarray(obs)))
    relu = lambda x: np.maximum(x, 0.0)
    first = weights["first"]
    own, other = (relu(x @ first["kernel"] + first["bias"]) for x in (obs, reflected))
    for i in range(2):
        even, odd = weights[f"even_{i}"], weights[f"odd_{i}"]["kernel"]
        same, swapped = (even["kernel"] + odd) / 2**0.5, (even["kernel"] - odd) / 2**0.5
        own, other = (
            relu(x @ same + y @ swapped + even["bias"]) for x, y in ((own, other), (other, own))
        )
    even, odd = (own + other) / 2**0.5, (own - other) / 2**0.5
    forward, aside = even @ weights["policy"]["kernel"] + weights["policy"]["bias"]
    turn = (odd @ weights["turn"]["kernel"])[0]
    value = (even @ weights["value"]["kernel"] + weights["value"]["bias"])[0]
    return np.array([forward, aside + turn, aside - turn]), value


def test_it_is_a_dense_network_of_pairs(network):
    module, params, obs = network
    policy, value = module.apply(params, obs)
    for row, logits, one in zip(obs, policy.logits, value, strict=True):
        plain_logits, plain_value = plain_outputs(module, params, np.asarray(row))
        np.testing.assert_allclose(logits - logits[0], plain_logits - plain_logits[0], atol=1e-5)
        np.testing.assert_allclose(one, plain_value, atol=1e-5)


def test_the_mirror_image_has_the_mirrored_policy_and_the_same_value(network):
    module, params, obs = network
    policy, value = module.apply(params, obs)
    mirrored, same = module.apply(params, jax.vmap(module.reflect)(obs))
    np.testing.assert_allclose(mirrored.logits, policy.logits[:, jnp.array([0, 2, 1])], atol=1e-5)
    np.testing.assert_allclose(same, value, atol=1e-5)
    assert np.std(policy.logits, axis=0).min() > 0.01


@pytest.mark.slow
def test_units_keep_the_norm_of_observations_at_the_start(key):
    """Half of the units are 0, as after dense layers that start orthogonal."""
    obs = jax.random.normal(key, (2000, 28))
    module = MirrorActorCritic((256, 256), reflect_tail)
    _, state = module.apply(module.init(key, obs), obs, capture_intermediates=True)
    layers: Any = state["intermediates"]
    even, odd = (layers[f"{name}_0"]["__call__"][0] for name in ("even", "odd"))
    size = jnp.mean(jnp.square(jax.nn.relu(even + odd)) + jnp.square(jax.nn.relu(even - odd)))
    np.testing.assert_allclose(size * 128, 28, rtol=0.1)


@pytest.mark.parametrize(("widths", "text"), [((5, 4), r"\(5, 4\)"), ((), r"\(\)")])
def test_what_has_no_pairs_is_refused(widths, text, key):
    with pytest.raises(ValueError, match=rf"features are {text}: pairs of units need even widths"):
        MirrorActorCritic(widths, reflect_tail).init(key, jnp.zeros(28))
