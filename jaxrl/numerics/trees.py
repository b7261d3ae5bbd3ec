"""Trees of arrays."""

import jax

from jaxrl.types import PyTree


@jax.jit
def take(tree: PyTree, index: int | jax.Array | tuple[int | jax.Array, ...]) -> PyTree:
    """`x[index]` of every leaf `x`, by one program for all leaves and every index of a kind.

    Outside of `jit`, `x[index]` is a program for each shape of a leaf: of ten seeds of a run that
    is longer to compile than their evaluation takes.
    """
    return jax.tree.map(lambda x: x[index], tree)
