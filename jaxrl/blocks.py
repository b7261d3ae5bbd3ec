"""Blocks: N environments as K equal groups of neighbours, each drawn from by itself.

An axis of N environments stays one axis; environments 0 .. N/K - 1 are the first block. What is
drawn lies side by side on one axis of B = K b entries *by block*: the first b belong to the first
block. Indices are those of the whole axis, so what is drawn from K blocks can be looked up as if
there were one. Told of the blocks, the functions here look up each block's entries within it. So
blocks that lie on different devices exchange nothing.

K is part of an experiment, as a seed is: on any number of devices, blocks draw the same numbers.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

PyTree = Any


def check(num_envs: int, blocks: int) -> None:
    """Raises ValueError unless N environments are so many equal blocks."""
    if blocks < 1 or num_envs % blocks:
        raise ValueError(
            f"num_envs is {num_envs}, blocks is {blocks}, expected blocks to divide num_envs: "
            "change one of them"
        )


def check_draws(num_envs: int, batch: int, blocks: int) -> None:
    """Raises ValueError unless blocks are equal and each is an equal part of a minibatch."""
    check(num_envs, blocks)
    if batch % blocks:
        raise ValueError(
            f"batch_size is {batch}, blocks is {blocks}, expected blocks to divide batch_size: "
            "change one of them"
        )


def flatten(rollout: PyTree, blocks: int) -> PyTree:
    """A rollout `[T, N, ...]` as one batch by block, `[T * N, ...]`; within a block time is first.

    Raises ValueError, when traced, unless K divides N.
    """
    if blocks == 1:
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)

    def flatten_leaf(x: jax.Array) -> jax.Array:
        check(x.shape[1], blocks)
        return split(x, 1, blocks).swapaxes(0, 1).reshape(-1, *x.shape[2:])

    return jax.tree.map(flatten_leaf, rollout)


def permutations(key: jax.Array, size: int, parts: int, blocks: int) -> jax.Array:
    """Indices below `size`, each block's shuffled by itself: `[M, size / M]`, each row by block.

    Every row has as many of each block; M = `parts`. Consumes `key`.
    """
    if blocks == 1:
        return jax.random.permutation(key, size).reshape(parts, -1)
    block_indices = jnp.arange(size).reshape(blocks, -1)
    shuffled = jax.random.permutation(key, block_indices, axis=1, independent=True)
    return deal(shuffled.reshape(-1), parts, blocks)


def deal(draws: PyTree, parts: int, blocks: int) -> PyTree:
    """What was drawn by block, `[M * B, ...]`, in M equal parts by block, `[M, B, ...]`."""
    if blocks == 1:
        return jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), draws)
    return jax.tree.map(
        lambda x: (
            x.reshape(blocks, parts, -1, *x.shape[1:])
            .swapaxes(0, 1)
            .reshape(parts, -1, *x.shape[1:])
        ),
        draws,
    )


def join(trees: Sequence[PyTree], blocks: int) -> PyTree:
    """Trees of leaves `[Bᵢ, ...]` by block as one, `[Σ Bᵢ, ...]` by block, in order in each."""
    if blocks == 1:
        return jax.tree.map(lambda *x: jnp.concatenate(x), *trees)

    def join_leaf(*x: jax.Array) -> jax.Array:
        joined = jnp.concatenate([split(y, 0, blocks) for y in x], axis=1)  # [K, Σ bᵢ, ...]
        return joined.reshape(-1, *joined.shape[2:])

    return jax.tree.map(join_leaf, *trees)


def uniform(key: jax.Array, batch: int, times: jax.Array, num_envs: int, blocks: int):
    """`(time [B], env [B])` by block, int32: uniform below `times`, and in each block's columns.

    Consumes `key`.
    """
    width = num_envs // blocks
    time, env = jnp.divmod(jax.random.randint(key, (batch,), 0, times * width), width)
    return time, env if blocks == 1 else env + block_starts(batch, num_envs, blocks)


def block_starts(batch: int, size: int, blocks: int) -> jax.Array:
    """`[B]` the first index, of `size`, in the block of each of B entries by block; int32."""
    return jnp.arange(batch) // (batch // blocks) * (size // blocks)


def split(x: jax.Array, axis: int, blocks: int) -> jax.Array:
    """`x [..., N, ...]` as `[..., K, N / K, ...]`."""
    return x.reshape(*x.shape[:axis], blocks, -1, *x.shape[axis + 1 :])


def take(x: jax.Array, index: tuple[jax.Array | None, ...], axis: int, blocks: int) -> jax.Array:
    """`x[index]`, where `axis` of `x` holds the blocks and the last axis of indices is by block.

    An index of None keeps an axis whole, or, if it is `axis`, each entry's own block of it. All
    others are int32 of one shape `[..., B]` and in bounds. What is kept stays in front where it
    precedes all indices, else behind.
    """
    if blocks == 1:
        full_index = tuple(slice(None) if i is None else i for i in index)
        return x.at[full_index].get(mode="promise_in_bounds", wrap_negative_indices=False)
    starts, axes = _starts(index, axis, x.shape[axis], blocks)
    x = split(x, axis, blocks)
    starts_block_axis = starts.ndim - 3  # of `starts [..., K, b, len(axes)]`
    slice_axes = [i for i in range(x.ndim) if i not in axes and i != axis]
    num_front = sum(i < min(axes) for i in slice_axes)
    offset_dims = [i if i < num_front else i + starts.ndim - 1 for i in range(len(slice_axes))]
    entries = lax.gather(
        x,
        starts,
        lax.GatherDimensionNumbers(
            offset_dims=tuple(offset_dims),
            collapsed_slice_dims=axes,
            start_index_map=axes,
            operand_batching_dims=(axis,),
            start_indices_batching_dims=(starts_block_axis,),
        ),
        slice_sizes=tuple(x.shape[i] if i in slice_axes else 1 for i in range(x.ndim)),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    block_axis = num_front + starts_block_axis  # of K in the entries
    return entries.reshape(*entries.shape[:block_axis], -1, *entries.shape[block_axis + 2 :])


def put(
    x: jax.Array, index: tuple[jax.Array, ...], new: jax.Array, axis: int, blocks: int
) -> jax.Array:
    """`x [...]` with `new [B]` at `index`, an int32 `[B]` for each axis, as for `take`."""
    if blocks == 1:
        return x.at[index].set(new, mode="promise_in_bounds")
    starts, axes = _starts(index, axis, x.shape[axis], blocks)
    updated = lax.scatter(
        split(x, axis, blocks),
        starts,
        new.reshape(blocks, -1),
        lax.ScatterDimensionNumbers(
            update_window_dims=(),
            inserted_window_dims=axes,
            scatter_dims_to_operand_dims=axes,
            operand_batching_dims=(axis,),
            scatter_indices_batching_dims=(0,),
        ),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    return updated.reshape(x.shape)


def _starts(
    index: tuple[jax.Array | None, ...], axis: int, size: int, blocks: int
) -> tuple[jax.Array, tuple[int, ...]]:
    """Indices within blocks `[..., K, b, number of them]`, and their axes once `axis` is split."""
    starts, axes = [], []
    for i, x in enumerate(index):
        if x is not None:
            within_block = x - block_starts(x.shape[-1], size, blocks).reshape(
                (1,) * (x.ndim - 1) + (-1,)
            )
            starts.append(split(within_block if i == axis else x, x.ndim - 1, blocks))
            axes.append(i + (i >= axis))
    return jnp.stack(starts, axis=-1), tuple(axes)
