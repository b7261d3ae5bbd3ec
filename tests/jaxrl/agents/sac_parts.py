"""Two small networks, random experience and plain NumPy: what the tests of SAC share."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxrl.agents import sac
from jaxrl.losses.distributions.continuous import Normal, SquashedNormal
from jaxrl.losses.n_step import Batch
from jaxrl.types import Transition

B, N, D, A, K = 6, 4, 3, 2, 2
LOW, HIGH = np.array([-1.0, 0.0], np.float32), np.array([3.0, 0.5], np.float32)


class LinearActor:
    """Mean and log scale are linear in the observation."""

    def init(self, key: jax.Array, obs: jax.Array) -> dict[str, jax.Array]:
        return {"w": 0.5 * jax.random.normal(key, (2, D, A))}

    def apply(self, params, obs: jax.Array) -> SquashedNormal:
        mean, log_scale = obs @ params["w"][0], obs @ params["w"][1]
        low, high = (jnp.broadcast_to(end, mean.shape) for end in (LOW, HIGH))
        return SquashedNormal(Normal(mean, jnp.exp(log_scale)), low, high)


class QuadraticCritic:
    """Q(s, a) = s · v + (a · u)² for each of two: the gradient in the action depends on it."""

    def init(self, key: jax.Array, obs: jax.Array, action: jax.Array) -> dict[str, jax.Array]:
        v, u = jax.random.split(key)
        return {"v": jax.random.normal(v, (D, K)), "u": jax.random.normal(u, (A, K))}

    def apply(self, params, obs: jax.Array, action: jax.Array) -> jax.Array:
        return obs @ params["v"] + jnp.square(action @ params["u"])


NETWORKS = sac.Networks(LinearActor(), QuadraticCritic())


def agent(config: sac.Config, **options: Any):
    return sac.make(*NETWORKS, config, **options)


def init_learner(config: sac.Config, seed: int = 0) -> sac.Learner:
    """A learner whose target critics differ from its critics."""
    init = jax.jit(agent(config).init)
    one, other = (init(jax.random.key(x), jnp.zeros(D)).learner for x in (seed, seed + 1))
    return one._replace(target_params=other.target_params)


def random_rollout(seed: int, length: int = 2, num_envs: int = N) -> Transition:
    """Steps `[T, N]` with random everything."""
    random = np.random.default_rng(seed)
    shape = (length, num_envs)
    terminated = random.random(shape) < 0.3
    scaled = random.uniform(-1, 1, (*shape, A))
    return Transition(
        obs=jnp.asarray(random.normal(size=(*shape, D)), jnp.float32),
        action=jnp.asarray(LOW + (HIGH - LOW) * (1 + scaled) / 2, jnp.float32),
        reward=jnp.asarray(random.normal(size=shape), jnp.float32),
        next_obs=jnp.asarray(random.normal(size=(*shape, D)), jnp.float32),
        terminated=jnp.asarray(terminated),
        truncated=jnp.asarray(~terminated & (random.random(shape) < 0.3)),
        extras=jnp.asarray(scaled, jnp.float32),
    )


def random_batch(seed: int, discount: float = 0.9) -> Batch:
    """A minibatch `[B, ...]`, some of whose episodes have terminated."""
    steps = jax.tree.map(lambda x: x[0], random_rollout(seed, 1, B))
    ahead = jnp.where(steps.terminated, 0.0, discount)
    return Batch(steps.obs, steps.extras, steps.reward, ahead, steps.next_obs)


class Numpy(NamedTuple):
    """The networks in float64, for parameters of one learner."""

    w: np.ndarray
    v: np.ndarray
    u: np.ndarray

    def q(self, obs: np.ndarray, action: np.ndarray) -> np.ndarray:
        """`[K]` of one observation and one scaled action."""
        return np.array([obs @ self.v[:, k] + (action @ self.u[:, k]) ** 2 for k in range(K)])

    def draw(self, obs: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, float]:
        """The scaled action of one observation, and the logarithm of its density."""
        mean, scale = obs @ self.w[0], np.exp(obs @ self.w[1])
        raw = mean + scale * noise
        log_prob = stats.norm.logpdf(raw, mean, scale) - np.log(1 - np.tanh(raw) ** 2)
        return np.tanh(raw), float(np.sum(log_prob))

    def actor_loss(self, obs: np.ndarray, noise: np.ndarray, temperature: float) -> float:
        """Mean of α log π - min Q over `obs [B, D]`."""
        total = 0.0
        for one, eps in zip(obs, noise, strict=True):
            action, log_prob = self.draw(one, eps)
            total += temperature * log_prob - self.q(one, action).min()
        return total / len(obs)

    def critic_loss(self, batch: Batch, target: np.ndarray) -> float:
        """Half the squared errors of both critics, averaged over the minibatch."""
        total = 0.0
        for obs, action, goal in zip(*map(as64, (batch.obs, batch.action, target)), strict=True):
            total += 0.5 * np.sum((self.q(obs, action) - goal) ** 2)
        return total / len(target)


def to_numpy(actor, critic) -> Numpy:
    """From the parameters of an actor and of critics."""
    return Numpy(as64(actor["w"]), as64(critic["v"]), as64(critic["u"]))


def as64(x: Any) -> np.ndarray:
    return np.asarray(x, np.float64)


def slopes(function: Any, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The gradient at `x` by central differences."""
    gradient = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        move = np.zeros_like(x)
        move[i] = step
        gradient[i] = (function(x + move) - function(x - move)) / (2 * step)
    return gradient
