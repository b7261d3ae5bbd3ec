"""Scores of a learned latent model: forecasts of observations, and the field itself.

Letters: N forecasts, K steps ahead, n channels, d latent dimensions.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

RIDGE = 1e-6


def k_step_r2(
    prediction: jax.Array, truth: jax.Array, counted: jax.Array | None = None
) -> jax.Array:
    """R² of forecasts for each number of steps ahead, `[K]`, a mean over channels.

    1 - Σ (y - ŷ)² / Σ (y - ȳ)² for each channel, sums over the N forecasts, ȳ the mean of the N
    truths: 1 is perfect, 0 as good as their mean, in whatever unit. Both are `[N, K, n]`. With
    `counted`, bool of that shape, sums and means are of the truths that count. A channel whose
    truths do not differ has no R², and the mean is that of the others.

    NaN of a step at which no channel has one. Raises ValueError unless all have one shape
    `[N, K, n]`.
    """
    shapes = {x.shape for x in (prediction, truth, counted) if x is not None}
    if len(shapes) > 1 or prediction.ndim != 3:
        raise ValueError(
            f"prediction and truth have shapes {prediction.shape} and {truth.shape}, expected one "
            "shape [N, K, n]: give N forecasts of K steps"
        )
    counted = jnp.ones(truth.shape, bool) if counted is None else counted
    add = lambda x: jnp.sum(jnp.where(counted, x, 0.0), axis=0)
    mean = add(truth) / jnp.maximum(jnp.sum(counted, axis=0), 1)
    highest = jnp.max(jnp.where(counted, truth, -jnp.inf), axis=0)
    lowest = jnp.min(jnp.where(counted, truth, jnp.inf), axis=0)
    has_r2 = highest > lowest
    unit = jnp.where(has_r2, highest / 2 - lowest / 2, 1.0)[None]  # or squares could overflow
    total = jnp.where(has_r2, add(((truth - mean[None]) / unit) ** 2), 1.0)
    channel_r2 = jnp.where(has_r2, 1 - add(((truth - prediction) / unit) ** 2) / total, 0.0)
    return jnp.sum(channel_r2, axis=-1) / jnp.sum(has_r2, axis=-1)


def forecasts(
    step: Callable[[jax.Array, jax.Array], jax.Array],
    emission_mean: Callable[[jax.Array], jax.Array],
    states: jax.Array,
    actions: jax.Array,
    steps: int,
) -> jax.Array:
    """Expected observations now and up to K = `steps` steps later: `[T, K + 1, n]`.

    Args:
      step: `(z [d], u [m]) -> z [d]`, the expected next state.
      emission_mean: `z [K + 1, d] -> [K + 1, n]`, the expected observation.
      states: `[T, d]`, estimated from the observations until then.
      actions: `[T, m]`, taken in these states; after the last, zeros.
      steps: K.
    """
    padded = jnp.concatenate([actions, jnp.zeros((steps, actions.shape[1]))])
    index = jnp.arange(len(states))[:, None] + jnp.arange(steps)[None]

    def rollout(z: jax.Array, actions: jax.Array) -> jax.Array:
        def move(z: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
            after = step(z, u)
            return after, after

        return emission_mean(jnp.concatenate([z[None], jax.lax.scan(move, z, actions)[1]]))

    return jax.vmap(rollout)(states, padded[index])


def affine_alignment(
    matrix: jax.Array, offset: jax.Array, true_matrix: jax.Array, true_offset: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """R `[d, d]` and t `[d]`: the learned latent state R z + t is observed as the true state z.

    A latent space is identifiable up to such a map at best. With C, b learned and C', b' true, each
    `[n, d]` and `[n]`, least squares give R = (CᵀC + 1e-6 I)⁻¹ Cᵀ C' and t = (…)⁻¹ Cᵀ (b' - b).
    """
    gram = matmul(matrix.T, matrix) + RIDGE * jnp.eye(matrix.shape[1])
    pseudo_inverse = matmul(linalg.inverse(gram), matrix.T)  # [d, n]
    return matmul(pseudo_inverse, true_matrix), matmul(pseudo_inverse, true_offset - offset)


def aligned_velocity(
    velocity: Callable[[jax.Array], jax.Array], linear: jax.Array, shift: jax.Array
) -> Callable[[jax.Array], jax.Array]:
    """The learned field in the true coordinates: z -> R⁻¹ f(R z + t), `[..., d] -> [..., d]`.

    `linear` and `shift` are R and t of `affine_alignment`.
    """
    inverse = linalg.inverse(linear)

    def aligned_field(z: jax.Array) -> jax.Array:
        mapped = matmul(z, linear.T) + shift.reshape((1,) * (z.ndim - 1) + (-1,))
        return matmul(velocity(mapped), inverse.T)

    return aligned_field
