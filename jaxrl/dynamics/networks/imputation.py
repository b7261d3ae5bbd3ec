"""Filtering observations of which some are missing.

A channel that was not observed enters the recognition network as the mean that the model expects
there, one step after the state before. Where no channel was observed the belief is that prediction:
its mean follows the dynamics and its variance grows by that of the process noise, as if the field
neither spread nor squeezed states. So a gap of any length is passed, by every recognition network.

Axes: T times, d latent dimensions, n channels, m inputs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.sequence_elbo import DiagonalBelief


class Model(NamedTuple):
    """A recognition network and what is expected next; functions of one time."""

    step: Callable[[Any, jax.Array, jax.Array], tuple[Any, jax.Array, jax.Array]]
    """`(carry, y [n], before [m]) -> (carry, mean [d], variance [d])`."""
    move: Callable[[jax.Array, jax.Array], jax.Array]
    """`(z [d], u [m]) -> z [d]`: the expected next state."""
    expected: Callable[[jax.Array], jax.Array]
    """`z [d] -> [n]`: the mean observation."""
    growth: jax.Array
    """`[d]`: variance of the process noise of a step."""


def encode(
    model: Model,
    carry: Any,
    y: jax.Array,
    before: jax.Array,
    valid: jax.Array,
    observed: jax.Array,
) -> tuple[Any, DiagonalBelief]:
    """The carry after T times in a row, and q `[T, d]`.

    Before anything was observed q is a standard normal, and its mean is not moved. Gradients do not
    flow through what is imputed.

    Args:
      carry: before the first of them.
      y: `[T, n]`, any finite numbers where missing.
      before: `[T, m]`, the input before each.
      valid: bool `[T]`, false in padding, which changes nothing.
      observed: bool `[T, n]`, false where missing.
    """
    dims = model.growth.shape
    start = DiagonalBelief(jnp.zeros(dims), jnp.ones(dims))

    def step(memory: tuple, now: tuple) -> tuple[tuple, DiagonalBelief]:
        carry, belief, has_begun = memory
        y, before, valid, observed = now
        predicted_mean = jnp.where(has_begun, model.move(belief.mean, before), belief.mean)
        predicted_variance = jnp.where(has_begun, belief.variance + model.growth, belief.variance)
        imputed_y = jnp.where(observed, y, jax.lax.stop_gradient(model.expected(predicted_mean)))
        new_carry, mean, variance = model.step(carry, imputed_y, before)
        any_observed = jnp.any(observed)
        new_belief = DiagonalBelief(
            jnp.where(any_observed, mean, predicted_mean),
            jnp.where(any_observed, variance, predicted_variance),
        )
        memory = jax.tree.map(
            lambda new, old: jnp.where(valid, new, old),
            (new_carry, new_belief, has_begun | any_observed),
            memory,
        )
        return memory, memory[1]

    (carry, *_), beliefs = jax.lax.scan(
        step, (carry, start, jnp.asarray(False)), (y, before, valid, observed)
    )
    return carry, beliefs
