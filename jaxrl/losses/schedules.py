"""Hyperparameters that change linearly during training, such as ε and the learning rate."""

import jax
import jax.numpy as jnp


def linear(
    start: float | jax.Array,
    end: float | jax.Array,
    done: jax.Array,
    total: float | jax.Array,
) -> jax.Array:
    """From `start` to `end` in a straight line while `done` goes from 0 to `total`, then `end`.

    A `total` of 0 is `end` at once.
    """
    progress = jnp.minimum(done / jnp.maximum(total, 1), 1.0)
    progress = jnp.where(jnp.asarray(total) > 0, progress, 1.0)
    return start + progress * (end - start)


def decay(done: jax.Array, total: float | jax.Array) -> jax.Array:
    """A factor that falls linearly from 1 to 0 while `done` goes from 0 to `total`, then 0.

    Always 1 for an infinite `total`.
    """
    return jnp.clip(1.0 - done / total, 0.0, 1.0)
