"""Dear work that is done now and then, also under `vmap`.

Under `vmap`, `lax.cond` becomes a choice between two results that are both computed, every time.
Here the work of a whole batch is skipped unless it is due for one of its members, so that members
in step with each other (seeds of one experiment, say) pay only when all of them do.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxrl.types import PyTree, where_tree


def when(
    due: jax.Array, work: Callable[[PyTree], PyTree], operands: PyTree, otherwise: PyTree
) -> PyTree:
    """`work(operands)` if `due`, a bool scalar, else `otherwise`, a tree of the same kind.

    `work` must take all that is traced from its operands, none from an enclosing scope. Not for
    differentiation.
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
