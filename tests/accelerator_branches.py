"""What accelerators compute, on a CPU."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import jax


def compile_as_on_accelerators(function: Callable[..., Any], *operands: Any) -> Callable[..., Any]:
    """`function` for operands of these shapes, with every branch that is not a CPU's.

    Only those of `jax.lax.platform_dependent` when it is called by that name.
    """
    return trace_as_on_accelerators(function, *operands).lower().compile()


def trace_as_on_accelerators(function: Callable[..., Any], *operands: Any) -> Any:
    """`function`, traced as `compile_as_on_accelerators` says."""
    take_default = lambda *inputs, default, **_: default(*inputs)
    with (
        mock.patch.object(jax.lax, "platform_dependent", take_default),
        jax.debug_key_reuse(False),  # JAX keeps apart what it traces under other settings
    ):
        return jax.jit(lambda *inputs: function(*inputs)).trace(*operands)
