"""Agents with one value, where the environment gives its reward in components: PPO apart."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import pytest

from jaxrl.agents import dqn, pqn, sac
from jaxrl.types import Transition
from tests.jaxrl.agents import dqn_parts, sac_parts

Q_CONFIG = dqn.Config(warmup=0, capacity=16, batch_size=4, updates_per_rollout=1)


def pqn_rollout(seed: int) -> Transition:
    rollout = dqn_parts.random_rollout(seed)
    return rollout._replace(extras=pqn.Extras(rollout.reward))


AGENTS = {
    "dqn": (dqn.make(dqn_parts.Mlp(), Q_CONFIG, num_envs=4), dqn_parts.random_rollout),
    "pqn": (pqn.make(dqn_parts.Mlp(), pqn.Config(minibatches=1, epochs=1)), pqn_rollout),
    "sac": (
        sac_parts.agent(
            sac.Config(warmup=0, capacity=16, batch_size=4, updates_per_rollout=1), num_envs=4
        ),
        sac_parts.random_rollout,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_one_value_learns_the_sum_of_the_components(name):
    """The same update, to the last bit, as of a reward in one number."""
    agent, rollout_of = AGENTS[name]
    rollout: Any = rollout_of(0)
    in_parts = rollout._replace(reward=jnp.stack([0.25 * rollout.reward, 0.75 * rollout.reward], 2))
    summed = in_parts._replace(reward=in_parts.reward[..., 0] + in_parts.reward[..., 1])
    state = jax.jit(agent.init)(jax.random.key(0), rollout.obs[0, 0])
    update = jax.jit(agent.update)
    actual, expected = (update(state, x, jax.random.key(1)) for x in (in_parts, summed))
    chex.assert_trees_all_equal(actual, expected)
    before, after = (
        jax.tree.leaves(agent.explain(x, agent.memory(), rollout.obs[0, 0]))
        for x in (state, actual[0])
    )
    assert any(bool(jnp.any(x != y)) for x, y in zip(before, after, strict=True))
