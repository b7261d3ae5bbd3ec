"""Errors of learned vector fields."""

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from jaxrl.types import PyTree
from train.vector_field.learners.learner import Learner


def fields_at(
    env: VectorField, learner: Learner, agent: PyTree, points: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The learned and the true field at `points` `[..., d]`, in the components that are scored."""
    true = env.velocity(points, learner.world(agent))
    return env.scored_components(learner.velocity(agent, points)), env.scored_components(true)


def relative_error(learned: jax.Array, true: jax.Array, where: jax.Array) -> jax.Array:
    """√(Σ|learned - true|² / Σ|true|²) over the points `where`; a field of 0 has 1."""
    squared_error = jnp.sum(jnp.sum((learned - true) ** 2, axis=-1) * where)
    return jnp.sqrt(squared_error / jnp.sum(jnp.sum(true**2, axis=-1) * where))
