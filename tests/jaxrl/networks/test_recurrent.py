"""The network with a memory: its steps in NumPy, sequences against single steps, its start."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxrl.networks.conv import Conv
from jaxrl.networks.mlp import MLP, ActorCritic, GaussianActorCritic
from jaxrl.networks.recurrent import RecurrentActorCritic

T, N, D, A, H = 7, 3, 5, 4, 6
BOARD = (4, 6, 2)  # rows, cols, C
DISCRETE = RecurrentActorCritic(MLP((8,)), ActorCritic(MLP(()), A), H)
NETWORKS = {
    "discrete": (DISCRETE, (D,)),
    "continuous": (
        RecurrentActorCritic(
            MLP((8,), "tanh"), GaussianActorCritic(MLP((7,)), MLP(()), 2, -1.0, (1.0, 2.0)), H
        ),
        (D,),
    ),
    "boards": (
        RecurrentActorCritic(
            nn.Sequential((Conv((3,), strides=2), MLP((8,)))), ActorCritic(MLP((7,)), A), H
        ),
        BOARD,
    ),
}
networks = pytest.mark.parametrize(("network", "shape"), NETWORKS.values(), ids=NETWORKS.keys())


def random_params(network, obs, key) -> Any:
    """Weights and biases all drawn anew, so that none is 0."""
    start = jax.eval_shape(network.init, key, obs, network.initial_memory())
    leaves, structure = jax.tree.flatten(start)
    keys = jax.random.split(key, len(leaves))
    random_leaves = [0.5 * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, random_leaves)


def assert_close(actual, expected):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), actual, expected
    )


@pytest.mark.fast_cases(1)
@networks
def test_a_sequence_equals_single_steps_with_resets_by_hand(network, shape, key):
    keys = jax.random.split(key, 4)
    obs = jax.random.normal(keys[0], (T, N, *shape))
    params = random_params(network, obs[0, 0], keys[1])
    first = jax.random.normal(keys[2], (N, H))
    starts = np.array(jax.random.bernoulli(keys[3], 0.3, (T, N)))
    starts[0], starts[3], starts[4] = (False, True, False), (True, False, False), False
    policy, value = jax.jit(lambda *inputs: network.apply(params, *inputs, method="sequence"))(
        obs, first, jnp.asarray(starts)
    )
    assert value.shape == (T, N)
    step = jax.jit(lambda obs, memory: network.apply(params, obs, memory))
    outputs = jax.tree.map(np.asarray, (policy, value))
    for n in range(N):
        memory = first[n]
        for t in range(T):
            if starts[t, n]:
                memory = network.initial_memory()
            *expected, memory = step(obs[t, n], memory)
            assert_close(jax.tree.map(lambda x, t=t, n=n: x[t, n], outputs), tuple(expected))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_a_step_is_the_gated_recurrent_unit(key):
    """Cho et al. (2014), with the reset gate on the product, as in cuDNN and Flax."""
    keys = jax.random.split(key, 3)
    obs, memory = jax.random.normal(keys[0], (D,)), jax.random.normal(keys[1], (H,))
    params = random_params(DISCRETE, obs, keys[2])
    network: Any = DISCRETE
    policy, value, after = network.apply(params, obs, memory)
    w: Any = jax.tree.map(lambda x: np.asarray(x, np.float64), params["params"])
    layer = lambda p, x: x @ p["kernel"] + p.get("bias", 0.0)
    x = np.maximum(layer(w["torso"]["Dense_0"], np.asarray(obs)), 0.0)
    gru, h = w["gru"], np.asarray(memory, np.float64)
    reset = sigmoid(layer(gru["ir"], x) + layer(gru["hr"], h))
    keep = sigmoid(layer(gru["iz"], x) + layer(gru["hz"], h))
    new = np.tanh(layer(gru["in"], x) + reset * layer(gru["hn"], h))
    h = (1 - keep) * new + keep * h
    assert_close(after, h)
    assert_close(policy.logits, layer(w["heads"]["policy"], h))
    assert_close(value, layer(w["heads"]["value"], h)[0])


def test_it_has_the_parameters_of_its_parts(key):
    params = DISCRETE.init(key, jnp.zeros(D), DISCRETE.initial_memory())
    gates = 3 * (8 * H + H) + 3 * H * H + H  # a bias for each gate, and one inside the reset
    heads = (H * A + A) + (H + 1)
    assert sum(x.size for x in jax.tree.leaves(params)) == (D * 8 + 8) + gates + heads


def test_weights_start_orthogonal_and_biases_and_memory_at_zero(key):
    gru: Any = DISCRETE.init(key, jnp.zeros(D), DISCRETE.initial_memory())["params"]["gru"]
    np.testing.assert_array_equal(DISCRETE.initial_memory(), np.zeros(H))
    assert set(gru) == {"ir", "iz", "in", "hr", "hz", "hn"}
    for layer in gru.values():
        assert_close(layer["kernel"].T @ layer["kernel"], np.eye(H))
        np.testing.assert_array_equal(layer.get("bias", 0.0), 0.0)


def test_gradients_reach_back_to_the_start_of_an_episode_and_no_further(key):
    """How the value of each step depends on each observation, `[T, T]`."""
    obs_key, key = jax.random.split(key)
    obs = jax.random.normal(obs_key, (T, D))
    params = random_params(DISCRETE, obs[0], key)
    starts = jnp.arange(T) == 3

    def values(obs):
        memory = DISCRETE.initial_memory()
        return DISCRETE.apply(params, obs, memory, starts, method="sequence")[1]

    slope = np.abs(jax.jit(jax.jacobian(values))(obs)).sum(axis=-1)
    t, s = np.mgrid[:T, :T]
    depends = (s <= t) & ((t < 3) | (s >= 3))
    np.testing.assert_array_equal(slope > 0, depends)


def test_a_board_below_a_torso_of_vectors_is_refused(key):
    with pytest.raises(ValueError, match="one vector each: put Conv or Flatten below"):
        jax.eval_shape(DISCRETE.init, key, jnp.zeros((4, D)), DISCRETE.initial_memory())
