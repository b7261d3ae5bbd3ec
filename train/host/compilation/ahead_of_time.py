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

from train.host.compilation import exported

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
    jaxpr: Any  # all of it, or only its call if it was traced by an earlier command
    compiler_options: dict[str, str | bool]

    @property
    def out_info(self) -> Any:
        return self.program.out_info

    def compile(self) -> CompiledFunction:
        program = self.program.lower().compile(self.compiler_options)
        return CompiledFunction(program, self.arrays)


def trace(
    function: Callable[..., Any],
    *arguments: Any,
    name: str = "",
    place: Sharding | None = None,
    layout: Callable[[Any], Any] | None = None,
    compiler_options: Callable[[Any], dict[str, str | bool]] = lambda jaxpr: {},
    **options: Any,
) -> TracedFunction:
    """Traces a function, once, for arguments of these shapes.

    Under a `name` it is kept (`exported.keep_programs_of`), unless it closes over large arrays: the
    configuration and the arguments then determine the function. `place` is where the arrays go
    that it closes over, None: where one device has them. `layout` gives the places of the results
    from their shapes, `compiler_options` those of XLA from a jaxpr; `options` are of `jax.jit`.
    """
    key = exported.key_of(name, arguments)
    earlier = exported.read(key)
    # traced once, also where it is asked for its shapes
    body = earlier or (function if layout is None else jax.jit(function))
    if layout is not None:
        options["out_shardings"] = layout(jax.eval_shape(body, *arguments))
    trace_call = lambda f: jax.jit(lambda *x: f(*x[:-1]), **options).trace(*arguments, [])
    traced = trace_call(body)
    if earlier is not None:
        return TracedFunction(traced, [], traced.jaxpr, earlier.compiler_options)
    chosen = compiler_options(traced.jaxpr.jaxpr)
    if any(map(is_large, traced.jaxpr.consts)):
        return pass_arrays(traced, arguments, place, chosen, options)
    program = exported.write(key, traced, arguments, chosen)
    if program is None:
        return TracedFunction(traced, [], traced.jaxpr, chosen)
    # compiled as its call, as by later commands: so they find it compiled
    return TracedFunction(trace_call(program), [], traced.jaxpr, chosen)


def pass_arrays(
    traced: jax.stages.Traced,
    arguments: Any,
    place: Sharding | None,
    compiler_options: dict[str, str | bool],
    options: dict[str, Any],
) -> TracedFunction:
    """What was traced, with the large arrays that it closes over as arguments."""
    constants = traced.jaxpr.consts
    arrays = [jax.device_put(x, place) for x in constants if is_large(x)]
    program, structure = traced.jaxpr.jaxpr, jax.tree.structure(traced.out_info)

    def call_with_arrays(*arguments_and_arrays: Any) -> Any:
        large = iter(arguments_and_arrays[-1])
        values = [next(large) if is_large(x) else x for x in constants]
        call = jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(program, values))
        return jax.tree.unflatten(structure, call(*jax.tree.leaves(arguments_and_arrays[:-1])))

    with_arrays = jax.jit(call_with_arrays, **options).trace(*arguments, arrays)
    return TracedFunction(with_arrays, arrays, with_arrays.jaxpr, compiler_options)


def is_large(constant: Any) -> bool:
    """Whether what a program closes over is to be an argument; keys of random numbers never are."""
    dtype = getattr(constant, "dtype", None)
    is_key = dtype is None or jnp.issubdtype(dtype, jax.dtypes.prng_key)
    return not is_key and constant.nbytes >= LARGE
