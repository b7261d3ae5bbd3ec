"""A network, random experience and comparisons: what the tests of DQN share."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.agents import dqn
from jaxrl.types import Transition

N, D, A = 4, 3, 2


class Mlp(nn.Module):
    """Small, but not linear."""

    @nn.compact
    def __call__(self, obs):
        return nn.Dense(A)(nn.relu(nn.Dense(8)(obs)))


def random_rollout(seed: int, length: int = 2, num_envs: int = N) -> Transition:
    """Steps `[T, N]` with random everything."""
    random = np.random.default_rng(seed)
    shape = (length, num_envs)
    terminated = random.random(shape) < 0.2
    return Transition(
        obs=jnp.asarray(random.normal(size=(*shape, D)), jnp.float32),
        action=jnp.asarray(random.integers(0, A, shape), jnp.int32),
        reward=jnp.asarray(random.normal(size=shape), jnp.float32),
        next_obs=jnp.asarray(random.normal(size=(*shape, D)), jnp.float32),
        terminated=jnp.asarray(terminated),
        truncated=jnp.asarray(~terminated & (random.random(shape) < 0.2)),
        extras=(),
    )


def init_state(agent, seed: int = 0) -> dqn.State:
    return jax.jit(agent.init)(jax.random.key(seed), jnp.zeros(D))


def arrays(tree) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def assert_equal(one, other) -> None:
    for a, b in zip(arrays(one), arrays(other), strict=True):
        np.testing.assert_array_equal(a, b)
