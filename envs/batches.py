"""Work that knows its whole batch, although it is written into a function of one instance.

`vmap` hides the batch: a `lax.switch` computes every branch, and every step of a loop streams the
arrays of all instances through memory. `with_batch_axes` gives a function the batch as it is, under
any number of `vmap`s, and `map_in_tiles` goes through it in parts that stay in a core's cache.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

CACHED = 4096
"""Numbers in an array of a tile: few enough that XLA does not share a step of a loop among threads
either, which takes longer than the step."""


def with_batch_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` for use under `vmap`, where it is called once with the axes of all batches.

    It takes and returns pytrees of arrays `[*batch, ...]`, where `batch` is `()` without `vmap`;
    the axis of the outermost `vmap` is the first. Not for reverse differentiation of its loops.
    """
    function = jax.jit(function)  # traced once for each shape

    @jax.custom_batching.custom_vmap
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    @call.def_vmap
    def call_on_all(size: int, batched: Any, *arguments: Any) -> tuple[Any, Any]:
        broadcast = jax.tree.map(
            lambda x, has_axis: x if has_axis else jnp.broadcast_to(x, (size, *jnp.shape(x))),
            arguments,
            tuple(batched),
        )
        outputs = call(*broadcast)
        return outputs, jax.tree.map(lambda _: True, outputs)

    return call


def map_in_tiles(function: Callable[..., Any], *arrays: jax.Array) -> Any:
    """`function` of each row of arrays `[*batch, P]`; on a CPU, some instances at a time.

    Accelerators, which have enough cores for all of them, take the whole batch at once.
    """
    map_all = partial(map_rows, function)
    if arrays[0].ndim < 2:
        return map_all(*arrays)
    return jax.lax.platform_dependent(*arrays, cpu=partial(_map_tiles, function), default=map_all)


def _map_tiles(function: Callable[..., Any], *arrays: jax.Array) -> Any:
    """A tile takes every `count`-th instance, so that an axis split over devices stays so."""
    axis = arrays[0].ndim - 2
    batch, size = arrays[0].shape[axis], arrays[0].size // arrays[0].shape[axis]
    count = -(-batch // max(1, CACHED // max(size, 1)))
    width = -(-batch // count)

    def split(x: jax.Array) -> jax.Array:
        pad = [(0, width * count - batch if i == axis else 0) for i in range(x.ndim)]
        parts = jnp.pad(x, pad).reshape(*x.shape[:axis], width, count, *x.shape[axis + 1 :])
        return jnp.moveaxis(parts, axis + 1, 0)

    def join_tiles(x: jax.Array) -> jax.Array:
        parts = jnp.moveaxis(x, 0, axis + 1)
        padded = parts.reshape(*parts.shape[:axis], width * count, *parts.shape[axis + 2 :])
        return jax.lax.slice_in_dim(padded, 0, batch, axis=axis)

    tiles = tuple(split(x) for x in arrays)
    return jax.tree.map(join_tiles, jax.lax.map(lambda tile: map_rows(function, *tile), tiles))


def map_rows(function: Callable[..., Any], *arrays: jax.Array) -> Any:
    """`vmap` over all axes but the last."""
    for _ in range(arrays[0].ndim - 1):
        function = jax.vmap(function)
    return function(*arrays)
