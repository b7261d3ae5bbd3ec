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


def refuse_narrow(output: PyTree, obs: PyTree, network: str = "network") -> None:
    """Raises ValueError for real numbers of less than 32 bits in what a network returns for `obs`.

    `output` is that, or its shapes. Layers below may have fewer bits.
    """
    for x in jax.tree.leaves(output):
        dtype = jnp.result_type(x)
        if jnp.issubdtype(dtype, jnp.inexact) and dtype.itemsize < 4:
            obs_shape = jax.tree.map(lambda x: list(jnp.shape(x)), obs)
            raise ValueError(
                f"the {network} returns {dtype} for one observation of shape {obs_shape}, expected "
                "float32: give its last layers that dtype, those below may keep theirs"
            )
