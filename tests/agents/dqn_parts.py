"""Networks, random experience and what it is worth: what the tests of DQN share."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.agents import dqn
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP
from jaxrl.types import Transition

N, D, A = 4, 3, 2


class Table(nn.Module):
    """One weight per observation and action, where observations are one-hot."""

    num_actions: int = A

    @nn.compact
    def __call__(self, obs):
        return nn.Dense(self.num_actions, use_bias=False)(obs)


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


def random_batches(seed: int, updates: int, batch: int = 5) -> dqn.Batch:
    """Minibatches `[M, B]` with random everything."""
    steps = random_rollout(seed, updates, batch)
    discount = jnp.where(steps.terminated, 0.0, 0.9)
    return dqn.Batch(steps.obs, steps.action, steps.reward, discount, steps.next_obs)


def init_state(agent, seed: int = 0) -> dqn.State:
    return jax.jit(agent.init)(jax.random.key(seed), jnp.zeros(D))


def arrays(tree) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def assert_equal(one, other) -> None:
    for a, b in zip(arrays(one), arrays(other), strict=True):
        np.testing.assert_array_equal(a, b)


def noisy(**arguments) -> QNetwork:
    return QNetwork(MLP((8,), noisy=True), A, noisy=True, **arguments)


def n_step_by_hand(rows: list[Transition], start: int, env: int, n: int, discount: float):
    """`(return, factor, next_obs)` as the definition says, one step at a time."""
    total = 0.0
    for k in range(n):
        row = rows[start + k]
        total += discount**k * float(row.reward[env])
        if row.terminated[env]:
            return total, 0.0, row.next_obs[env]
        if row.truncated[env]:
            break
    return total, discount ** (k + 1), row.next_obs[env]
