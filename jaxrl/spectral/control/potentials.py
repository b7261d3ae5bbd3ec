"""Potentials for reward shaping: distances to a goal from eigenvectors of a graph Laplacian.

Eigenvectors φ with E[φ²] = 1 and eigenvalues λ = 1 - μ of the walk itself (μ of P, not of a mean
of its powers) embed states so that squared distances, with each coordinate divided by √λ, are
commute times. Axes: S states, d features. Pure functions, for one goal.
"""

import jax
import jax.numpy as jnp
import numpy as np


def commute_time(features: jax.Array, eigenvalues: jax.Array, goal: jax.Array | int) -> jax.Array:
    """Expected steps of the random walk from each state to the goal and back, `[S]`.

    Σᵢ (φᵢ(s) - φᵢ(g))² / λᵢ over all but the constant eigenvector (Fouss et al. 2007). Exact for a
    symmetric walk with all S eigenvectors; with the first few it keeps the coarse shape.

    Eigenvalues are raised to sin²(π / 2S), the smallest nonzero one that a connected maze of S
    cells with four moves can have: that of a path (Fiedler 1973). So a feature whose learned λ is
    still negative or tiny gets a large weight, but a finite one.

    Args:
      features: `[S, d]`; column 0 is the constant eigenvector, which is left out.
      eigenvalues: `[d]`, 1 - μ; the first is left out.
      goal: index of a state, not checked.

    Raises:
      ValueError: the shapes do not fit together.
    """
    _check(features)
    if eigenvalues.shape != features.shape[1:]:
        raise ValueError(
            f"eigenvalues have shape {eigenvalues.shape}, expected {features.shape[1:]}: one per "
            "feature, the constant one included"
        )
    weight = commute_weights(eigenvalues, len(features))[1:]
    return jnp.sum(_squares(features, goal) * weight[None, :], axis=1)


def commute_weights(eigenvalues: jax.Array, num_states: int) -> jax.Array:
    """1 / λ of each squared difference in the sum of `commute_time`, `[d]`; 0 for the constant."""
    least = np.sin(np.pi / (2 * num_states)) ** 2
    return (1 / jnp.maximum(eigenvalues, least)).at[0].set(0.0)


def commute_distance(
    features: jax.Array, eigenvalues: jax.Array, goal: jax.Array | int
) -> jax.Array:
    """√ of `commute_time`, `[S]`: a metric, the Euclidean distance in the embedding φᵢ / √λᵢ."""
    return jnp.sqrt(commute_time(features, eigenvalues, goal))


def from_distance(distance: jax.Array) -> jax.Array:
    """Φ = -distance / its maximum, `[S]`: 0 at the goal, -1 farthest away.

    0 everywhere if the distance is 0 everywhere, as for collapsed features. A negative potential
    slows a learner with initial values of 0; see `q_learning.shaping`.
    """
    farthest = jnp.max(distance)
    return -distance / jnp.where(farthest > 0, farthest, 1.0)


def _squares(features: jax.Array, goal: jax.Array | int) -> jax.Array:
    """(φᵢ(s) - φᵢ(g))² without the constant eigenvector, `[S, d - 1]`."""
    nonconstant = features[:, 1:]
    return jnp.square(nonconstant - nonconstant[goal][None, :])


def _check(features: jax.Array) -> None:
    if features.ndim != 2 or features.shape[1] < 2:
        raise ValueError(
            f"features have shape {features.shape}, expected [S, d] with d >= 2: column 0, the "
            "constant one, gives no distance"
        )
