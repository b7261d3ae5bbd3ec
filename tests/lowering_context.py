"""One context for all programs that tests lower: JAX makes one for each, which takes 4 ms."""

import functools

from jax._src.interpreters import mlir
from jaxlib.mlir import ir

make_context = mlir.make_ir_context
shared_context = functools.cache(make_context)


def lowering_context() -> ir.Context:
    """The shared one, but for what is lowered in the middle of another program."""
    return make_context() if ir.Context.current else shared_context()


def share() -> None:
    """Has JAX lower in the shared context."""
    mlir.make_ir_context = lowering_context
