"""Functions through which Python goes once, however often a program calls them."""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun


def trace_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, traced once for arguments of the same shapes and dtypes, wherever it is called.

    `jax.jit` alone traces again inside a `shard_map`, where the same arguments have other types.
    Arguments are trees of arrays.
    """
    traces: dict[Any, tuple[Any, Any]] = {}

    @jax.jit
    def call(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        shapes = tuple(
            jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in leaves
        )
        if (structure, shapes) not in traces:
            trace = jax.make_jaxpr(function, return_shape=True)
            program, result = trace(*jax.tree.unflatten(structure, shapes))
            traces[structure, shapes] = program, jax.tree.structure(result)
        program, result_structure = traces[structure, shapes]
        return jax.tree.unflatten(result_structure, jaxpr_as_fun(program)(*leaves))

    return call
