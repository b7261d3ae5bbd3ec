"""PPO with rewards of several components."""

from typing import Any

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.agents import ppo
from jaxrl.blocks import flatten
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.types import Transition


class Parts:
    """Three values of an observation of three numbers, and a policy that does not care."""

    def apply(self, params, obs):
        return Categorical(jnp.zeros((*obs.shape[:-1], 2))), params * obs


def rollout_in_parts(steps: int = 6, num_envs: int = 4) -> Transition:
    """Rewards in three components, with endings of both kinds."""
    rng = np.random.default_rng(0)
    normal = lambda: jnp.asarray(rng.normal(size=(steps, num_envs, 3)), jnp.float32)
    ended = rng.random((2, steps, num_envs)) < 0.2
    obs = normal()
    return Transition(
        obs=obs,
        action=jnp.zeros((steps, num_envs), jnp.int32),
        reward=normal(),
        next_obs=jnp.concatenate([obs[1:], normal()[:1]]),
        terminated=jnp.asarray(ended[0]),
        truncated=jnp.asarray(ended[1] & ~ended[0]),
        extras=ppo.Extras(jnp.zeros((steps, num_envs)), obs),
    )


def flat_batch(network: Any, params: Any, rollout: Transition, config: ppo.Config) -> ppo.Batch:
    return flatten(ppo.make_batch(network, params, rollout, config), 1).data


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, (0.5, 0.0, 2.0)])
def test_components_are_learned_one_by_one_and_add_up(weights):
    """Each as if it were all of the reward; the policy follows their weighted sum."""
    network: Any = Parts()
    config = ppo.Config(discount=0.9, gae_lambda=0.8, minibatches=1, component_weights=weights)
    rollout, one = rollout_in_parts(), jnp.ones(())
    joint_batch = flat_batch(network, one, rollout, config)
    assert joint_batch.target.shape == (24, 3)
    advantage = 0
    for k in range(3):

        class Part:
            def apply(self, params, obs, k=k):
                return Parts().apply(params, obs)[0], params * obs[..., k]

        component_rollout = rollout._replace(
            reward=rollout.reward[..., k],
            extras=rollout.extras._replace(value=rollout.extras.value[..., k]),
        )
        part: Any = Part()
        batch = flat_batch(part, one, component_rollout, config)
        np.testing.assert_allclose(joint_batch.target[:, k], batch.target, rtol=1e-4, atol=1e-5)
        advantage += (weights or (1.0,) * 3)[k] * batch.advantage
    np.testing.assert_allclose(joint_batch.advantage, advantage, rtol=1e-4, atol=1e-5)
    _, metrics = ppo.loss(network, 0.5 * one, joint_batch, config)
    error = 0.5 * (0.5 * np.asarray(joint_batch.obs) - np.asarray(joint_batch.target)) ** 2
    expected = (error * np.array(weights or (1.0,) * 3)).sum(axis=1).mean()
    np.testing.assert_allclose(metrics["value_loss"], expected, rtol=1e-4)


def test_one_value_of_all_components_learns_their_sum():
    class Sum:
        def apply(self, params, obs):
            return Parts().apply(params, obs)[0], obs.sum(axis=-1)

    network: Any = Sum()
    config = ppo.Config(minibatches=1)
    rollout = rollout_in_parts()
    rollout = rollout._replace(extras=rollout.extras._replace(value=rollout.obs.sum(axis=-1)))
    one = jnp.ones(())
    batch = ppo.make_batch(network, one, rollout, config)
    expected = ppo.make_batch(
        network, one, rollout._replace(reward=rollout.reward.sum(axis=-1)), config
    )
    chex.assert_trees_all_close(batch, expected, rtol=1e-5, atol=1e-5)


def test_weights_for_other_components_are_refused():
    network: Any = Parts()
    config = ppo.Config(minibatches=1, component_weights=(1.0, 2.0))
    with pytest.raises(ValueError, match="2 component_weights for 3 components of the reward: gi"):
        ppo.make_batch(network, jnp.ones(()), rollout_in_parts(), config)
