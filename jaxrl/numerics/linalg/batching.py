"""How functions of one matrix are mapped over many: one at a time, or all at once.

jaxlib's batched LAPACK calls wait for XLA's thread pool on a thread of that same pool: with two
cores, two such calls at once deadlock (seen with jaxlib 0.10.2). A single matrix is factorised on
the calling thread, so `vmap` of LAPACK is a loop here. Functions of positive definite matrices do
not use LAPACK and handle a whole batch at once.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxrl.types import PyTree


def one_at_a_time(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Makes `vmap` of `function` a loop; on Explicit axes, over the examples of each device."""

    @jax.custom_batching.custom_vmap
    def apply(*args: PyTree) -> PyTree:
        return function(*args)

    @apply.def_vmap
    def loop_over_examples(
        size: int, is_batched: list[PyTree], *args: PyTree
    ) -> tuple[PyTree, PyTree]:
        leaves, structure = jax.tree.flatten(args)
        mapped = jax.tree.leaves(is_batched)
        examples = [x for x, own in zip(leaves, mapped, strict=True) if own]
        shared = [x for x, own in zip(leaves, mapped, strict=True) if not own]

        def loop(examples: list[jax.Array], shared: list[jax.Array]) -> PyTree:
            def apply_to_example(example: list[jax.Array]) -> PyTree:
                own, same = iter(example), iter(shared)
                mixed = [next(own if is_own else same) for is_own in mapped]
                return apply(*jax.tree.unflatten(structure, mixed))

            return jax.lax.map(apply_to_example, examples)

        out = _shard_by_examples(loop, examples)(examples, shared)
        return out, jax.tree.map(lambda _: True, out)

    return apply


def _shard_by_examples(loop: Callable, examples: list[jax.Array]) -> Callable:
    """`loop` on each device's share of `examples`, if their first axis lies on Explicit ones."""
    shardings = [jax.typeof(x).sharding for x in examples]
    axes = next((s.spec[0] for s in shardings if len(s.spec) and s.spec[0] is not None), None)
    if axes is None:
        return loop
    spec = jax.P(axes)
    return jax.shard_map(
        loop, mesh=shardings[0].mesh, in_specs=(spec, jax.P()), out_specs=spec, check_vma=False
    )


def all_at_once(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Makes `function` of arrays `[a, b, B]` one of `[..., a, b]`, however they are batched.

    The batch lies last, where processors work on neighbours together; `vmap` would put it first.
    """
    function = jax.jit(function)

    @jax.custom_batching.custom_vmap
    def apply(*matrices: jax.Array) -> jax.Array:
        batch = jnp.broadcast_shapes(*(x.shape[:-2] for x in matrices))
        broadcast = (jnp.broadcast_to(x, batch + x.shape[-2:]) for x in matrices)
        flat = (x.reshape(math.prod(batch), *x.shape[-2:]) for x in broadcast)
        out = function(*(jnp.moveaxis(x, 0, -1) for x in flat))
        return jnp.moveaxis(out, -1, 0).reshape(batch + out.shape[:-1])

    @apply.def_vmap
    def apply_to_batch(size, is_batched, *matrices):
        ndim = max(x.ndim - is_mapped for x, is_mapped in zip(matrices, is_batched, strict=True))
        # Axes of 1 behind the new one, where another matrix has more axes of its own.
        add_axes = lambda x: x.reshape(size, *(ndim + 1 - x.ndim) * (1,), *x.shape[1:])
        pairs = zip(matrices, is_batched, strict=True)
        return apply(*(add_axes(x) if is_mapped else x for x, is_mapped in pairs)), True

    return apply
