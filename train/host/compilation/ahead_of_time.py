"""Programs compiled ahead of time, in which large arrays are arguments rather than constants.

What a function closes over, such as recorded data, would be part of its program: XLA computes with
it while it compiles, for seconds and with alarms, and each program holds a copy of its own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.extend
import jax.numpy as jnp
from jax.sharding import Sharding

LARGE = 2**16
"""Bytes of an array from which it is an argument; smaller ones are folded at once."""


class CompiledFunction(NamedTuple):
    """A compiled program, called with its arguments alone."""

    program: jax.stages.Compiled
    arrays: list[jax.Array]  # behind the arguments

    def __call__(self, *arguments: Any) -> Any:
        return self.program(*arguments, self.arrays)

    @property
    def output_shardings(self) -> Any:
        return self.program.output_shardings

    def memory_analysis(self) -> Any:
        return self.program.memory_analysis()


class TracedFunction(NamedTuple):
    """A program before it is compiled."""

    program: jax.stages.Traced
    arrays: list[jax.Array]

    @property
    def jaxpr(self) -> Any:
        return self.program.jaxpr

    @property
    def out_info(self) -> Any:
        return self.program.out_info

    def compile(self, options: dict[str, str | bool] | None = None) -> CompiledFunction:
        return CompiledFunction(self.program.lower().compile(options), self.arrays)


def trace(
    function: Callable[..., Any], *arguments: Any, place: Sharding | None = None, **options: Any
) -> TracedFunction:
    """Traces a function, once, for arguments of these shapes.

    `place` is where the arrays go that it closes over, None: where one device has them. `options`
    are those of `jax.jit`.
    """
    traced = jax.jit(lambda *x: function(*x[:-1]), **options).trace(*arguments, [])
    constants = traced.jaxpr.consts
    arrays = [jax.device_put(x, place) for x in constants if is_large(x)]
    if not arrays:
        return TracedFunction(traced, arrays)
    program, structure = traced.jaxpr.jaxpr, jax.tree.structure(traced.out_info)

    def call_with_arrays(*arguments_and_arrays: Any) -> Any:
        large = iter(arguments_and_arrays[-1])
        values = [next(large) if is_large(x) else x for x in constants]
        call = jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(program, values))
        return jax.tree.unflatten(structure, call(*jax.tree.leaves(arguments_and_arrays[:-1])))

    return TracedFunction(jax.jit(call_with_arrays, **options).trace(*arguments, arrays), arrays)


def is_large(constant: Any) -> bool:
    """Whether what a program closes over is to be an argument; keys of random numbers never are."""
    dtype = getattr(constant, "dtype", None)
    is_key = dtype is None or jnp.issubdtype(dtype, jax.dtypes.prng_key)
    return not is_key and constant.nbytes >= LARGE
