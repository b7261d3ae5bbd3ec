"""First-order linear recurrences over time: step by step on CPUs, in parallel on accelerators."""

from functools import partial

import jax
import jax.numpy as jnp


def linear_recurrence(
    decay: jax.Array, addition: jax.Array, start: jax.Array, reverse: bool = False
) -> jax.Array:
    """yₜ = addition_t + decay_t yₜ₋₁ with y₋₁ = `start`; with `reverse` from the last row back.

    A decay of exactly 0 drops what was before, even infinity and nan. GPUs and TPUs, where a step
    costs as much as its kernels, take log T rounds of a parallel prefix sum (Blelloch 1990, §1.4)
    in place of T; the results differ by rounding.

    Args:
      decay: `[T, ...]`.
      addition: `[T, ...]`.
      start: `[...]`.

    Returns:
      y, `[T, ...]`.
    """
    if not len(addition):
        return addition
    return jax.lax.platform_dependent(
        decay,
        addition,
        start,
        cpu=partial(_step_by_step, reverse=reverse),
        default=partial(_in_parallel, reverse=reverse),
    )


def _step_by_step(
    decay: jax.Array, addition: jax.Array, start: jax.Array, reverse: bool
) -> jax.Array:
    def step(before: jax.Array, inputs: tuple) -> tuple[jax.Array, jax.Array]:
        decay, addition = inputs
        after = addition + _product(decay, before)
        return after, after

    return jax.lax.scan(step, start, (decay, addition), reverse=reverse)[1]


def _in_parallel(
    decay: jax.Array, addition: jax.Array, start: jax.Array, reverse: bool
) -> jax.Array:
    def join(early: tuple, late: tuple) -> tuple[jax.Array, jax.Array]:
        """The map y -> addition + decay y of some steps and then of others."""
        return early[0] * late[0], late[1] + _product(late[0], early[1])

    first = -1 if reverse else 0
    addition = addition.at[first].add(_product(decay[first], start))
    return jax.lax.associative_scan(join, (decay, addition), reverse=reverse)[1]


def _product(decay: jax.Array, value: jax.Array) -> jax.Array:
    """`decay * value`, and 0 where the decay is 0, whatever the value is."""
    return jnp.where(decay == 0, 0.0, decay * value)
