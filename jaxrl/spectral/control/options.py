"""Eigenoptions: options that climb Laplacian eigenvectors, solved exactly on transition tables.

An option is a policy with a termination condition (Sutton, Precup & Singh 1999). An eigenoption
goes where an eigenvector is large, and so crosses the state space on the scale of that eigenvector
(Machado, Bellemare & Bowling 2017). Axes: O options, S states, A actions, K outcomes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

NEGLIGIBLE = 1e-6  # a gain, as a share of the feature's range, that is rounding error


class Options(NamedTuple):
    """O policies over S states, and where each of them ends."""

    policy: jax.Array  # int32 [O, S], an action
    terminates: jax.Array  # bool [O, S]; an option starts only where it does not end at once


def no_options(num_states: int) -> Options:
    """No option at all: O = 0."""
    empty = jnp.zeros((0, num_states), jnp.int32)
    return Options(empty, empty.astype(bool))


def eigenoptions(
    features: jax.Array, successor: jax.Array, probability: jax.Array, discount: float = 0.9
) -> Options:
    """Two options for every feature but the first, one that climbs it and one that descends.

    An option earns φ(s') - φ(s) with every step and may stop at any time. Its policy is optimal,
    and it ends where no action gains anything, which happens with probability 1. The closer the
    discount to 1, the deeper the valleys that it crosses to reach a higher maximum. Of equally
    good actions, the first is taken.

    Args:
      features: `[S, d]`; column 0 is the constant eigenvector, which is left out.
      successor: int `[S, A, K]`, the states that an action can lead to.
      probability: `[S, A, K]`, how likely each is; sums to 1 over K.
      discount: γ of the intrinsic reward, 0 <= γ < 1, a Python number.

    Returns:
      O = 2 (d - 1) options, in the order 2nd feature up, 2nd down, 3rd up, ….

    Raises:
      ValueError: a shape or the discount is wrong.
    """
    if not 0 <= discount < 1:
        raise ValueError(
            f"discount is {discount}, expected 0 <= discount < 1: at 1 every action that may "
            "still lead to the maximum is equally good"
        )
    if features.ndim != 2 or features.shape[1] < 2:
        raise ValueError(
            f"features have shape {features.shape}, expected [S, d] with d >= 2: column 0, the "
            "constant one, gives no option"
        )
    if successor.shape != probability.shape or successor.shape[:1] != features.shape[:1]:
        raise ValueError(
            f"successor and probability have shapes {successor.shape} and {probability.shape}, "
            f"expected [S, A, K] with S = {len(features)}, as many as the features have rows"
        )
    return _solve(features, successor, probability, discount)


@jax.jit
def _solve(features: jax.Array, successor, probability, discount) -> Options:
    nonconstant = features[:, 1:].T  # [d - 1, S]
    both_signs = jnp.stack([nonconstant, -nonconstant], axis=1).reshape(-1, len(features))  # [O, S]
    return jax.vmap(climb, in_axes=(0, None, None, None))(
        both_signs, successor, probability, discount
    )


def climb(
    feature: jax.Array, successor: jax.Array, probability: jax.Array, discount: float | jax.Array
) -> Options:
    """The option that climbs one feature `[S]`, by value iteration: `Options` without the axis O.

    V(s) = max(0, maxₐ Q(s, a)) and Q(s, a) = E[φ(s') - φ(s) + γ V(s')], where 0 is to stop.
    """
    negligible = NEGLIGIBLE * (jnp.max(feature) - jnp.min(feature))
    gain = feature[successor] - feature[:, None, None]  # [S, A, K]

    def action_values(value: jax.Array) -> jax.Array:
        return jnp.sum(probability * (gain + discount * value[successor]), axis=-1)

    def sweep(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        value, _ = carry
        better = jnp.maximum(jnp.max(action_values(value), axis=-1), 0.0)
        return better, jnp.max(jnp.abs(better - value))

    is_changing = lambda carry: carry[1] > negligible
    start = (jnp.zeros_like(feature), negligible + 1)
    q = action_values(jax.lax.while_loop(is_changing, sweep, start)[0])  # [S, A]
    return Options(jnp.argmax(q, axis=-1).astype(jnp.int32), jnp.max(q, axis=-1) <= negligible)
