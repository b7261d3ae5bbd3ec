"""`lax.cond` and `lax.switch` that still compute one branch under `vmap`.

Under `vmap`, both become `select`, which computes all branches every time. With `cond_any`, the
work is done for the whole batch if it is due for any of its members, and skipped otherwise. So a
batch whose members are due at the same steps (seeds of one experiment, say) pays at those only.
With `switch_max`, the branch of the largest index is computed for the whole batch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from jaxrl.types import PyTree, where_tree


def cond_any(
    due: jax.Array, work: Callable[[PyTree], PyTree], operands: PyTree, otherwise: PyTree
) -> PyTree:
    """`work(operands)` if `due`, a bool scalar, else `otherwise`, a tree of the same structure.

    `work` must take every traced value from its operands and close over none. Not differentiable.
    """

    work = jax.jit(work)  # traced once for all levels of `vmap`

    @jax.custom_batching.custom_vmap
    def choose(due: jax.Array, operands: PyTree, otherwise: PyTree) -> PyTree:
        return jax.lax.cond(due, work, lambda _: otherwise, operands)

    @choose.def_vmap
    def choose_for_all(size: int, batched, due: jax.Array, operands: PyTree, otherwise: PyTree):
        in_axes = _in_axes(batched[1])
        due, otherwise = _repeat_shared(size, (batched[0], batched[2]), (due, otherwise))

        # Members are told apart inside of the branch: where none is due, nothing is copied.
        def work_for_due(inputs: PyTree) -> PyTree:
            due, operands, otherwise = inputs
            fresh = jax.vmap(work, (in_axes,), axis_size=size)(operands)
            return where_tree(due, fresh, otherwise)

        result = cond_any(jnp.any(due), work_for_due, (due, operands, otherwise), otherwise)
        return result, jax.tree.map(lambda _: True, result)

    return choose(due, *jax.tree.map(jnp.asarray, (operands, otherwise)))


def switch_max(
    index: jax.Array, branches: Sequence[Callable[[PyTree], PyTree]], operands: PyTree
) -> PyTree:
    """`branches[i](operands)`, where i is `index`, an int32 scalar; of a batch, its largest.

    For branches in ascending order of what they can do and cost, all of which give the same result
    where a smaller index would do, as with work on the first few of many slots. They may close
    over traced values. Not differentiable.
    """
    operands = jax.tree.map(jnp.asarray, operands)
    bare, closed_over = zip(*(_hoist_closure(branch, operands) for branch in branches), strict=True)
    calls = [
        lambda inputs, i=i, branch=branch: branch(inputs[0][i], inputs[1])
        for i, branch in enumerate(bare)
    ]
    return _switch_max(jnp.asarray(index), calls, (closed_over, operands))


def _switch_max(index: jax.Array, branches: Sequence[Callable], inputs: PyTree) -> PyTree:
    """`switch_max` of branches that close over nothing."""

    @jax.custom_batching.custom_vmap
    def choose(index: jax.Array, inputs: PyTree) -> PyTree:
        return jax.lax.switch(index, branches, inputs)

    @choose.def_vmap
    def choose_for_all(size: int, batched, index: jax.Array, inputs: PyTree):
        del size
        is_batch = any(jax.tree.leaves(batched[1]))
        in_axes = _in_axes(batched[1])
        batched_branches = [
            jax.vmap(branch, (in_axes,)) if is_batch else branch for branch in branches
        ]
        result = _switch_max(jnp.max(index), batched_branches, inputs)
        return result, jax.tree.map(lambda _: is_batch, result)

    return choose(index, inputs)


def _in_axes(batched: PyTree) -> PyTree:
    """`in_axes` of `vmap` for what a rule of `custom_vmap` says is batched."""
    return jax.tree.map(lambda is_batched: 0 if is_batched else None, batched)


def _repeat_shared(size: int, batched: PyTree, tree: PyTree) -> PyTree:
    """The tree with a batch of `size` also where it is not `batched` yet."""
    repeat = lambda x, is_batched: x if is_batched else jnp.broadcast_to(x, (size, *jnp.shape(x)))
    return jax.tree.map(repeat, tree, batched)


def _hoist_closure(function: Callable[[PyTree], PyTree], operands: PyTree) -> tuple[Callable, list]:
    """`(bare, closed_over)`: the function as `bare(closed_over, operands)`, closing over nothing.

    `vmap` sees what a function is given, but not what it closes over.
    """
    traced, shape = jax.make_jaxpr(function, return_shape=True)(operands)
    structure = jax.tree.structure(shape)

    @jax.jit  # traced once for all levels of `vmap`
    def bare(closed_over: list, operands: PyTree) -> Any:
        compute = jaxpr_as_fun(ClosedJaxpr(traced.jaxpr, closed_over))
        return jax.tree.unflatten(structure, compute(*jax.tree.leaves(operands)))

    return bare, traced.consts
