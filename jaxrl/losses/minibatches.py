"""Passes over a batch in shuffled minibatches, as policy gradients and PQN learn from a rollout."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxrl import blocks as in_blocks
from jaxrl.blocks import BlockBatch
from jaxrl.types import PyTree


def epochs(
    step: Callable[[Any, BlockBatch], tuple[Any, PyTree]],
    start: Any,
    batch: BlockBatch,
    key: jax.Array,
    num_epochs: int,
    num_minibatches: int,
    group: int = 1,
) -> tuple[Any, PyTree]:
    """Carries `start` through `step(carry, minibatch) -> (carry, metrics)`.

    Each epoch shuffles a batch of B and splits it into M minibatches of B / M. Each block is
    shuffled by itself and is an equal part of every minibatch, which is by block, too. Returns the
    last carry and the metrics of every step, `[E, M, ...]`.

    With `group` above 1, so many neighbouring rows stay together: of a flattened rollout, one step
    of neighbouring environments, which are independent of each other. Minibatches are as varied as
    before, but the permutation, which sorts, is so many times shorter, and rows are copied in runs.

    Raises ValueError, when traced, if M does not divide B, or `group` a minibatch; of blocks, B / K
    and a minibatch's part of a block.
    """
    check(batch, num_minibatches, group)
    groups = jax.tree.map(lambda x: x.reshape(-1, group, *x.shape[1:]), batch)
    unravel: Callable[[jax.Array], PyTree] = lambda vector: vector

    def epoch(carry, _):
        learning, key = carry
        key, shuffle_key = jax.random.split(key)
        minibatch_indices = in_blocks.permutations(shuffle_key, groups, num_minibatches)
        learning, metrics = jax.lax.scan(minibatch, learning, minibatch_indices)
        return (learning, key), metrics

    def minibatch(learning, indices):
        take = lambda x: in_blocks.take(x, (indices,), 0, batch.blocks).reshape(-1, *x.shape[2:])
        learning, metrics = step(learning, jax.tree.map(take, groups))
        # Metrics are collected as one vector: a GPU would launch a kernel for each of them.
        nonlocal unravel
        vector, unravel = ravel_pytree(metrics)
        return learning, vector

    (end, _), vectors = jax.lax.scan(epoch, (start, key), length=num_epochs)
    return end, jax.vmap(jax.vmap(unravel))(vectors)


def mean_of_parts(function: Callable[[PyTree], PyTree], batch: BlockBatch, size: int) -> PyTree:
    """The mean of `function`, a tree of means over rows, over parts of a minibatch of B.

    A part `[size, ...]` is of one block: what is computed of it stays in a core's cache. Each block
    adds up its parts by itself, so blocks on several devices exchange one sum. Raises ValueError,
    when traced, unless `size` divides B / K.
    """
    rows, blocks = batch.size, batch.blocks
    if rows % (blocks * size):
        raise ValueError(
            f"a minibatch of {rows} transitions in {blocks} blocks cannot be split into parts of "
            f"{size}: change microbatch_size, minibatches, num_envs or num_steps"
        )
    num_parts = rows // blocks // size

    def block_sum(parts: PyTree) -> PyTree:
        add = lambda total, part: (jax.tree.map(jnp.add, total, function(part)), None)
        first = jax.eval_shape(function, jax.tree.map(lambda x: x[0], parts))
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), first)
        return jax.lax.scan(add, zeros, parts)[0]

    split = lambda *axes: lambda x: x.reshape(*axes, num_parts, size, *x.shape[1:])
    if blocks == 1:
        return jax.tree.map(lambda x: x / num_parts, block_sum(jax.tree.map(split(), batch.data)))
    totals = jax.vmap(block_sum)(jax.tree.map(split(blocks), batch.data))
    return jax.tree.map(lambda x: jnp.sum(x, axis=0) / (blocks * num_parts), totals)


def group_size(config: Any, batch: BlockBatch, num_envs: int) -> int:
    """The largest group up to `shuffle_group` for a flattened rollout of N = `num_envs`.

    It divides the environments of a block, so that a group never holds two steps of one of them,
    which are correlated, and their part of a minibatch. Also reads `minibatches` of the agent's
    `config`.
    """
    divisor = math.gcd(num_envs // batch.blocks, batch.size // batch.blocks // config.minibatches)
    return next(x for x in range(min(config.shuffle_group, divisor), 0, -1) if divisor % x == 0)


def check(batch: BlockBatch, num_minibatches: int, group: int) -> None:
    """Raises ValueError unless a batch can be split as `epochs` says."""
    size, blocks = batch.size, batch.blocks
    within = f" of each of {blocks} blocks" if blocks > 1 else ""
    knobs = "num_envs, num_steps or blocks" if blocks > 1 else "num_envs or num_steps"
    if size % (blocks * num_minibatches):
        raise ValueError(
            f"a rollout of {size // blocks} transitions{within} cannot be split into "
            f"{num_minibatches} equal minibatches; change minibatches, {knobs}"
        )
    minibatch_size = size // blocks // num_minibatches
    if minibatch_size % group:
        raise ValueError(
            f"a minibatch of {minibatch_size} transitions{within} cannot be made of groups of "
            f"{group}; change shuffle_group, minibatches, {knobs}"
        )
