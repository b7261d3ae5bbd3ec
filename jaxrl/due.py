"""`lax.cond` that still skips its expensive branch under `vmap`.

Under `vmap`, `lax.cond` becomes `select`, which computes both branches every time. Here the work is
done for the whole batch if it is due for any of its members, and skipped otherwise. So a batch
whose members are due at the same steps (seeds of one experiment, say) pays at those steps only.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxrl.types import PyTree, where_tree


def when(
    due: jax.Array, work: Callable[[PyTree], PyTree], operands: PyTree, otherwise: PyTree
) -> PyTree:
    """`work(operands)` if `due`, a bool scalar, else `otherwise`, a tree of the same structure.

    `work` must take every traced value from its operands and close over none. Not differentiable.
    """

    @jax.custom_batching.custom_vmap
    def choose(due: jax.Array, operands: PyTree, otherwise: PyTree) -> PyTree:
        return jax.lax.cond(due, work, lambda _: otherwise, operands)

    @choose.def_vmap
    def choose_for_all(size: int, batched, due: jax.Array, operands: PyTree, otherwise: PyTree):
        repeated = lambda tree, flags: jax.tree.map(
            lambda x, has_axis: x if has_axis else jnp.broadcast_to(x, (size, *jnp.shape(x))),
            tree,
            flags,
        )
        due, operands, otherwise = map(repeated, (due, operands, otherwise), batched)
        fresh = when(jnp.any(due), jax.vmap(work), operands, otherwise)
        result = where_tree(due, fresh, otherwise)
        return result, jax.tree.map(lambda _: True, result)

    return choose(due, *jax.tree.map(jnp.asarray, (operands, otherwise)))
