"""Parameters of distributions, and what is drawn from them and integrated over."""

import jax
import jax.numpy as jnp
import numpy as np

INF = np.inf


# The bounds of a chi-square or Kolmogorov-Smirnov test on a fixed key: it fails or it does not.
UNLIKELY = 1e-3


def integral(density, grid: np.ndarray) -> float:
    """Trapezoid rule in float64."""
    return float(np.trapezoid(np.asarray(density, np.float64), grid))


draw = jax.jit(jax.vmap(lambda distribution, key: distribution.sample(key), in_axes=(None, 0)))
log_probs = jax.jit(jax.vmap(lambda distribution, a: distribution.log_prob(a), in_axes=(None, 0)))
squash = jax.jit(jax.vmap(lambda distribution, raw: distribution.squash(raw), in_axes=(None, 0)))
log_jacobian = jax.jit(jax.vmap(lambda d, raw: d.log_jacobian(raw), in_axes=(None, 0)))


def samples(distribution, key: jax.Array, count: int):
    """`[count, ...]`, the way the loop draws them: a key each."""
    return draw(distribution, jax.random.split(key, count))


def as_actions(grid: np.ndarray) -> jax.Array:
    """Points `[M]` as actions `[M, 1]`."""
    return jnp.asarray(grid, jnp.float32)[:, None]


LOGITS = jnp.array([[0.5, -1.0, 2.0, 0.0], [3.0, 3.0, -3.0, 1.0], [-50.0, 60.0, 0.0, 1.0]])
OTHER = jnp.array([[0.0, 1.0, -2.0, 0.5], [0.0, 3.0, 3.0, -1.0], [1.0, 2.0, 3.0, 4.0]])


def probabilities(logits) -> np.ndarray:
    weights = np.exp(np.asarray(logits, np.float64))
    return weights / weights.sum(-1, keepdims=True)


LIVE = jnp.array([[True, True, True], [True, False, True], [False, False, False]])
NODES = jnp.stack([LOGITS[:, :3], OTHER[:, :3], LOGITS[:, 1:]])  # [3 graphs, 3 nodes, 3 actions]
NODES_2 = jnp.stack([OTHER[:, 1:], LOGITS[:, :3], OTHER[:, :3]])
MEAN, SCALE = jnp.array([0.3, -2.0, 5.0]), jnp.array([1.0, 0.1, 3.0])
MEAN_2, SCALE_2 = jnp.array([-0.2, -2.1, 4.0]), jnp.array([0.7, 0.2, 5.0])
