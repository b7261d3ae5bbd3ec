"""Numbers of 32 bits, also where JAX has been told to use 64, as by `JAX_ENABLE_X64=1`."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp

from jaxrl.types import PyTree

P = ParamSpec("P")
R = TypeVar("R")


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """Computes `function`, bit for bit, as where 64 bits are switched off.

    They may be on for other work in the same process. What `function` makes, draws and compiles has
    32 bits, if arrays that it is given do; see `narrow`.
    """

    @wraps(function)
    def compute(*arguments: P.args, **named: P.kwargs) -> R:
        if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
            return function(*arguments, **named)  # another context would be traced anew
        with jax.enable_x64(False):
            return function(*arguments, **named)

    return compute


def narrow(tree: PyTree) -> PyTree:
    """The tree with its arrays of 64 bits rounded to 32."""

    def narrow_leaf(x: Any) -> Any:
        if not isinstance(x, jax.Array) or jnp.issubdtype(x.dtype, jax.dtypes.extended):
            return x
        with jax.enable_x64(False):
            return x.astype(jax.dtypes.canonicalize_dtype(x.dtype))

    return jax.tree.map(narrow_leaf, tree)
