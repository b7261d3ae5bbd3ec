"""Returns and advantages: GAE, n-step and λ-returns, and the values of true successors.

Recursions on arrays `[T, ...]`, time first, with any further axes. The two endings of an episode
are treated differently: after `terminated` the future is worth 0, after `truncated` V(next_obs),
and no trace crosses either. A step that is both is terminated. Values after the end of an episode
are masked with `where`, not multiplied by zero, so that unused ones may be nan.
"""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from jaxrl.numerics.recurrence import linear_recurrence
from jaxrl.types import Observation, PyTree, Transition

AT_ONCE = 131_072
"""Successors that accelerators evaluate in one go, or those of one step, if these are more."""


def gae(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    discount: float | jax.Array,
    lambda_: float | jax.Array,
) -> jax.Array:
    """Generalised advantage estimates, Aₜ = δₜ + γλ Aₜ₊₁ with δₜ = rₜ + γ V(sₜ₊₁) - V(sₜ).

    λ = 0 leaves the TD error, λ = 1 the Monte-Carlo return minus V (Schulman et al. 2016, eq. 16).

    Args:
      reward: `[T, ...]` rₜ.
      value: `[T, ...]` V(obs).
      next_value: `[T, ...]` V(next_obs), of the true successor; ignored where terminated.
      terminated: `[T, ...]` bool.
      truncated: `[T, ...]` bool.
      discount: γ.
      lambda_: λ.

    Returns:
      The advantages `[T, ...]`; adding `value` gives the targets of the critic.
    """
    chex.assert_equal_shape([reward, value, next_value, terminated, truncated])
    chex.assert_type([terminated, truncated], bool)
    delta = reward + discount * jnp.where(terminated, 0.0, next_value) - value
    decay = jnp.where(terminated | truncated, 0.0, discount * lambda_).astype(delta.dtype)
    after_last = jnp.zeros(delta.shape[1:], delta.dtype)
    return linear_recurrence(decay, delta, after_last, reverse=True)


def lambda_returns(
    reward: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    discount: float | jax.Array,
    lambda_: float | jax.Array,
) -> jax.Array:
    """λ-returns, Gₜ = rₜ + γ [(1 - λ) V(sₜ₊₁) + λ Gₜ₊₁] (Sutton & Barto 2018, eq. 12.20).

    Where truncated, and on the last row, V(sₜ₊₁) replaces Gₜ₊₁. With V(s) = maxₐ Q(s, a) this is
    Peng's Q(λ) (Peng & Williams 1996). Arguments as for `gae`; returns `[T, ...]`.
    """
    chex.assert_equal_shape([reward, next_value, terminated, truncated])
    chex.assert_type([terminated, truncated], bool)

    bootstrap_share = jnp.where(truncated, 1.0, 1.0 - lambda_)
    bootstrap = jnp.where(terminated, 0.0, discount * bootstrap_share * next_value)
    gain = reward + bootstrap
    decay = jnp.where(terminated | truncated, 0.0, discount * lambda_).astype(gain.dtype)
    last_value = jnp.sum(next_value[-1:], axis=0).astype(gain.dtype)  # or 0 where T = 0
    return linear_recurrence(decay, gain, last_value, reverse=True)


class NStep(NamedTuple):
    """The n-step return of the first step of each window, and where its bootstrap comes from.

    The target is `return_ + discount * V(next_obs[last])`.
    """

    return_: jax.Array  # [...] Σ γᵏ rₖ, up to and including the first ending
    discount: jax.Array  # [...] γ^(last + 1); 0 where the episode terminated
    last: jax.Array  # [...] int32; the last step of the window that belongs to the episode


def n_step(
    reward: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    discount: float | jax.Array,
) -> NStep:
    """The n-step return of the first step of each window `[L, ...]`; n = L unless it ends before.

    Sutton & Barto (2018), eq. 7.1. Raises ValueError where L = 0.
    """
    if not len(reward):
        raise ValueError("a window of 0 steps has no first one: n must be at least 1")
    chex.assert_equal_shape([reward, terminated, truncated])
    chex.assert_type([terminated, truncated], bool)
    ended = (terminated | truncated).astype(jnp.int32)
    included = jnp.cumsum(ended, axis=0) - ended == 0  # [L, ...] no ending before this step
    last = jnp.sum(included, axis=0, dtype=jnp.int32) - 1
    steps = jnp.arange(reward.shape[0]).reshape(-1, *[1] * (reward.ndim - 1))
    return NStep(
        return_=jnp.sum(jnp.where(included, discount**steps * reward, 0.0), axis=0),
        discount=jnp.where(jnp.any(included & terminated, axis=0), 0.0, discount ** (last + 1)),
        last=last,
    )


def successor_values(
    value_of: Callable[[Observation], jax.Array], rollout: Transition, value: jax.Array
) -> jax.Array:
    """V(next_obs) of a rollout, on a CPU with as few evaluations of the critic as possible.

    The successor of step t is the observation of step t + 1, whose value is known, except on the
    last row and where an episode was truncated. Only for those is `value_of` called, in passes of
    one row per environment: one pass for the last row, another only if some environment was
    truncated earlier, and so on; none if nothing is missing. Not differentiable in reverse.

    Accelerators would wait for the answer whether anything is missing: they evaluate every
    successor, many at once.

    Args:
      value_of: `next_obs [N, ...] -> [N, ...]`, the critic.
      rollout: `[T, N]`, consecutive in time.
      value: `[T, N, ...]`, `value_of(rollout.obs)`.

    Returns:
      `[T, N, ...]`. Undefined where terminated.
    """
    chex.assert_equal_shape([rollout.terminated, rollout.truncated])
    chex.assert_equal_shape_prefix([rollout.terminated, value], 2)
    if not len(value):
        return value
    value_of = jax.jit(value_of, inline=True)  # traced once for both ways
    steps = jnp.arange(value.shape[0])[:, None]  # [T, 1]
    is_last = steps == value.shape[0] - 1
    missing = (rollout.truncated | is_last) & ~rollout.terminated  # [T, N]

    def fill_one_each(carry):
        missing, successor = carry
        first = jnp.argmax(missing, axis=0)  # [N]
        rows = jax.vmap(row, in_axes=(1, 0))(rollout.next_obs, first)  # [N, ...]
        chosen = missing & (steps == first[None])  # [T, N]
        mask = chosen.reshape(*chosen.shape, *[1] * (value.ndim - 2))
        return missing & ~chosen, jnp.where(mask, value_of(rows)[None], successor)

    shifted = jnp.concatenate([value[1:], jnp.zeros_like(value[:1])])

    def fill_while_missing() -> jax.Array:
        any_missing = lambda carry: jnp.any(carry[0])
        return jax.lax.while_loop(any_missing, fill_one_each, (missing, shifted))[1]

    def fill_at_once() -> jax.Array:
        mask = missing.reshape(*missing.shape, *[1] * (value.ndim - 2))
        rows_at_once = max(1, AT_ONCE // max(1, value.shape[1]))
        values = jax.lax.map(value_of, rollout.next_obs, batch_size=rows_at_once)
        return jnp.where(mask, values, shifted)

    return jax.lax.platform_dependent(cpu=fill_while_missing, default=fill_at_once)


def row(tree: PyTree, t: jax.Array) -> PyTree:
    """Row `t` of every array of a tree, without its time axis."""
    return jax.tree.map(lambda x: x[t], tree)
