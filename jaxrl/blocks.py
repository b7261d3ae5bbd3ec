"""Blocks: N environments as K equal groups of neighbours, each drawn from by itself.

An axis of N environments stays one axis; environments 0 .. N/K - 1 are the first block. What is
drawn lies side by side on one axis of B = K b entries *by block*: the first b belong to the first
block. Of 4 environments in 2 blocks, the draw [1, 0, 3, 3] is by block, and [1, 3, 0, 3] is not:
its first two entries are of both blocks. Indices are those of the whole axis, so what is drawn from
K blocks can be looked up as if there were one. Given K, the functions here look up each block's
entries within it. So blocks that lie on different devices exchange nothing.

K is part of an experiment, as a seed is: on any number of devices, blocks draw the same numbers.
It is a setting of the loop (`loop.Config.blocks`), given to the agent that draws (`make`) and from
there on a static field of what holds blocks: a replay, its priorities, a `BlockBatch`.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

PyTree = Any
T = TypeVar("T")


@struct.dataclass
class BlockBatch(Generic[T]):
    """A batch by block: the first `B / blocks` entries of each leaf are those of the first one."""

    data: T  # [B, ...]
    blocks: int = struct.field(pytree_node=False, default=1)

    @property
    def size(self) -> int:
        """B."""
        return jax.tree.leaves(self.data)[0].shape[0]


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


def check_held(state: PyTree, blocks: int) -> None:
    """Raises ValueError unless whatever holds blocks in the state of an agent holds so many."""
    holds_blocks = lambda x: isinstance(getattr(x, "blocks", None), int)
    for x in filter(holds_blocks, jax.tree.leaves(state, is_leaf=holds_blocks)):
        check_agent(x.blocks, blocks)


def check_agent(agent_blocks: int | None, blocks: int) -> None:
    """Raises ValueError unless an agent that draws does so in as many blocks as the loop has."""
    if agent_blocks not in (None, blocks):
        raise ValueError(
            f"the agent is made for {agent_blocks} blocks, the loop has {blocks}, expected the "
            f"same: make the agent with blocks={blocks}"
        )


def flatten(rollout: T, blocks: int) -> BlockBatch[T]:
    """A rollout `[T, N, ...]` as one batch by block, `[T * N, ...]`; within a block time is first.

    Raises ValueError, when traced, unless K divides N.
    """
    if blocks == 1:
        return BlockBatch(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout))

    def flatten_leaf(x: jax.Array) -> jax.Array:
        check(x.shape[1], blocks)
        return split(x, 1, blocks).swapaxes(0, 1).reshape(-1, *x.shape[2:])

    return BlockBatch(jax.tree.map(flatten_leaf, rollout), blocks)


def permutations(key: jax.Array, batch: BlockBatch, parts: int) -> jax.Array:
    """Indices of a batch, each block's shuffled by itself: `[M, B / M]`, each row by block.

    Every row has as many of each block; M = `parts`. Consumes `key`.
    """
    if batch.blocks == 1:
        return jax.random.permutation(key, batch.size).reshape(parts, -1)
    block_indices = jnp.arange(batch.size).reshape(batch.blocks, -1)
    shuffled = jax.random.permutation(key, block_indices, axis=1, independent=True)
    return deal(BlockBatch(shuffled.reshape(-1), batch.blocks), parts)


def deal(batch: BlockBatch[T], parts: int) -> T:
    """A batch of M * B in M equal parts by block, `[M, B, ...]`; M = `parts`."""
    if batch.blocks == 1:
        return jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), batch.data)
    return jax.tree.map(
        lambda x: (
            x.reshape(batch.blocks, parts, -1, *x.shape[1:])
            .swapaxes(0, 1)
            .reshape(parts, -1, *x.shape[1:])
        ),
        batch.data,
    )


def join(trees: Sequence[PyTree], blocks: int) -> BlockBatch:
    """Trees of leaves `[Bᵢ, ...]` by block as one batch, of `Σ Bᵢ`, in order in each block."""
    if blocks == 1:
        return BlockBatch(jax.tree.map(lambda *x: jnp.concatenate(x), *trees))

    def join_leaf(*x: jax.Array) -> jax.Array:
        joined = jnp.concatenate([split(y, 0, blocks) for y in x], axis=1)  # [K, Σ bᵢ, ...]
        return joined.reshape(-1, *joined.shape[2:])

    return BlockBatch(jax.tree.map(join_leaf, *trees), blocks)


def block_starts(batch: int, size: int, blocks: int) -> jax.Array:
    """`[B]` the first index, of `size`, in the block of each of B entries by block; int32."""
    return jnp.arange(batch) // (batch // blocks) * (size // blocks)


def split(x: jax.Array, axis: int, blocks: int) -> jax.Array:
    """`x [..., N, ...]` as `[..., K, N / K, ...]`."""
    return x.reshape(*x.shape[:axis], blocks, -1, *x.shape[axis + 1 :])


def take(x: jax.Array, index: tuple[jax.Array | None, ...], axis: int, blocks: int) -> jax.Array:
    """`x[index]`, where `axis` of `x` holds the blocks and the last axis of indices is by block.

    An index of None keeps an axis whole, or, if it is `axis`, each entry's own block of it. All
    others are int32 of one shape `[..., B]`, in bounds, and of neighbouring axes. What is kept
    stays in front where it precedes all indices, else behind.
    """
    if blocks == 1:
        full_index = tuple(slice(None) if i is None else i for i in index)
        return x.at[full_index].get(mode="promise_in_bounds", wrap_negative_indices=False)
    starts, axes = _starts(index, axis, (blocks, x.shape[axis] // blocks))
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
    starts, axes = _starts(index, axis, (blocks, x.shape[axis] // blocks))
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
    index: tuple[jax.Array | None, ...], axis: int, split_shape: tuple[int, int]
) -> tuple[jax.Array, tuple[int, ...]]:
    """Indices within blocks `[..., K, b, number of them]`, and their axes once `axis` is split.

    `split_shape` is `(K, N / K)`.
    """
    starts, axes = [], []
    blocks, width = split_shape
    for i, x in enumerate(index):
        if x is not None:
            within_block = x - block_starts(x.shape[-1], blocks * width, blocks).reshape(
                (1,) * (x.ndim - 1) + (-1,)
            )
            starts.append(split(within_block if i == axis else x, x.ndim - 1, blocks))
            axes.append(i + (i >= axis))
    return jnp.stack(starts, axis=-1), tuple(axes)
