"""Heads: policies of every kind of action on one torso."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.losses.distributions.continuous import ClippedNormal, Normal, SquashedNormal
from jaxrl.losses.distributions.discrete import Categorical, PerNode
from jaxrl.losses.distributions.joint import Joint
from jaxrl.networks.heads import (
    BoxHead,
    DiscreteHead,
    HeadedActorCritic,
    JointHead,
    MultiDiscreteHead,
)
from jaxrl.networks.mlp import MLP
from jaxrl.networks.recurrent import RecurrentActorCritic

PARTS = (DiscreteHead(3), BoxHead(2, -1.0, (1.0, 2.0)), MultiDiscreteHead((2, 4)))


@pytest.mark.slow
def test_a_joint_head_is_its_parts(key):
    network = HeadedActorCritic(MLP((8,)), MLP((8,)), JointHead(PARTS, ("move", "push", "press")))
    (policy, value), _ = network.init_with_output(key, jnp.ones((5, 4)))
    assert isinstance(policy, Joint)
    kinds = {name: type(part) for name, part in policy.parts.items()}
    assert kinds == {"move": Categorical, "push": SquashedNormal, "press": PerNode}
    action = policy.sample(key)
    assert jax.tree.map(jnp.shape, action) == {"move": (5,), "push": (5, 2), "press": (5, 2)}
    assert value.shape == policy.log_prob(action).shape == policy.entropy().shape == (5,)


@pytest.mark.slow
def test_the_same_with_a_memory(key):
    heads = HeadedActorCritic(MLP(()), MLP(()), JointHead(PARTS))
    network = RecurrentActorCritic(MLP((8,)), heads, 6)
    (policy, value, memory), _ = network.init_with_output(key, jnp.ones(4), jnp.zeros(6))
    assert [type(part) for part in policy.parts] == [Categorical, SquashedNormal, PerNode]
    assert (value.shape, memory.shape) == ((), (6,))


@pytest.mark.slow
def test_each_choice_has_its_own_logits(key):
    """A uniform policy takes each pair equally often, and no action that does not exist."""
    head = MultiDiscreteHead((2, 3))
    policy, variables = head.init_with_output(key, jnp.zeros(4))
    action = jax.vmap(policy.sample)(jax.random.split(key, 3_000))
    counts = np.zeros((2, 3))
    np.add.at(counts, tuple(np.asarray(action).T), 1)
    np.testing.assert_allclose(counts / 3_000, 1 / 6, atol=0.03)
    np.testing.assert_allclose(policy.entropy(), np.log(6), rtol=1e-6)
    bias = jnp.array([0.0, 1.0, 2.0, 3.0, 4.0])
    biased = {"params": {"policy": {**variables["params"]["policy"], "bias": bias}}}
    p = jax.nn.softmax(bias[:2]), jax.nn.softmax(bias[2:])
    for pair in ((0, 2), (1, 0)):
        expected = np.log(p[0][pair[0]]) + np.log(p[1][pair[1]])
        policy: Any = head.apply(biased, jnp.zeros(4))
        np.testing.assert_allclose(policy.log_prob(jnp.array(pair)), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("low", "high", "kind", "mean"),
    [
        ((0.0, -1.0), (np.inf, 1.0), ClippedNormal, [1.0, 0.0]),
        ((-np.inf, 2.0), (5.0, 8.0), ClippedNormal, [4.0, 5.0]),
        ((-np.inf, -np.inf), (np.inf, np.inf), Normal, [0.0, 0.0]),
        ((-1.0, 0.0), (1.0, 4.0), SquashedNormal, [0.0, 2.0]),
    ],
)
def test_bounds_choose_the_policy_and_where_it_starts(low, high, kind, mean, key):
    policy, _ = BoxHead(2, low, high).init_with_output(key, jnp.zeros(3))
    assert type(policy) is kind
    np.testing.assert_allclose(policy.mode(), mean)
    action = policy.sample(key)
    assert np.all((action >= np.array(low)) & (action <= np.array(high)))
