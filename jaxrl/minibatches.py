"""Passes over a batch in shuffled minibatches, as policy gradients and PQN learn from a rollout."""

from collections.abc import Callable
from typing import Any

import jax

from jaxrl.types import PyTree


def epochs(
    step: Callable[[Any, PyTree], tuple[Any, PyTree]],
    start: Any,
    batch: PyTree,
    key: jax.Array,
    num_epochs: int,
    num_minibatches: int,
    group: int = 1,
) -> tuple[Any, PyTree]:
    """Carries `start` through `step(carry, minibatch) -> (carry, metrics)`.

    Each epoch shuffles `batch [B, ...]` and splits it into M minibatches of `[B / M, ...]`.
    Returns the last carry and the metrics of every step, `[E, M, ...]`.

    With `group` above 1, so many neighbouring rows stay together: of a flattened rollout, one step
    of neighbouring environments, which are independent of each other. Minibatches are as varied as
    before, but the permutation, which sorts, is so many times shorter, and rows are copied in runs.

    Raises ValueError, when traced, if M does not divide B, or `group` a minibatch.
    """
    size = jax.tree.leaves(batch)[0].shape[0]
    if size % num_minibatches:
        raise ValueError(
            f"a rollout of {size} transitions cannot be split into {num_minibatches} equal "
            "minibatches; change minibatches, num_envs or num_steps"
        )

    if size // num_minibatches % group:
        raise ValueError(
            f"a minibatch of {size // num_minibatches} transitions cannot be made of groups of "
            f"{group}; change shuffle_group, minibatches, num_envs or num_steps"
        )
    groups = jax.tree.map(lambda x: x.reshape(-1, group, *x.shape[1:]), batch)

    def epoch(carry, _):
        learning, key = carry
        key, shuffle_key = jax.random.split(key)
        shuffled = jax.random.permutation(shuffle_key, size // group).reshape(num_minibatches, -1)
        learning, metrics = jax.lax.scan(minibatch, learning, shuffled)
        return (learning, key), metrics

    def minibatch(learning, indices):
        picked = jax.tree.map(lambda x: x[indices].reshape(-1, *x.shape[2:]), groups)
        return step(learning, picked)

    (end, _), metrics = jax.lax.scan(epoch, (start, key), length=num_epochs)
    return end, metrics
