"""The kernels that XLA compiles a program to on a CPU: its options that suit the work."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.extend

Options = dict[str, str | bool]


class Work(NamedTuple):
    """What takes most of the time of a program, where the default kernels are slow at it."""

    small_products: bool = False  # matrix products of a few rows
    shared_words: bool = False  # many results, computed from a few words of bits that they share


ANY_WORK = Work()


def compiler_options(program: Any, work: Work = ANY_WORK) -> Options:
    """The XLA options that a program (a jaxpr) needs, or that suit its work.

    Sums over products with many axes, as in experiments of several policies and seeds, crash the
    default CPU kernels of jaxlib 0.10.2 and 0.11.0 (https://github.com/jax-ml/jax/issues/39257);
    the option selects other kernels. No crash is known of products with five axes or fewer.
    """
    options: Options = {}
    if work.small_products or max(map(summed_axes, equations(program)), default=0) > 5:
        options |= small_products()
    if work.shared_words:
        options |= shared_words()
    return options


def small_products() -> Options:
    """The XLA options for matrix products of a few rows, for which those kernels take longer.

    With 64 x 20 by 20 x 4 in a loop it is 2 to 3 times as long.
    """
    return {"xla_cpu_experimental_ynn_fusion_type": ""} if jax.default_backend() == "cpu" else {}


def shared_words() -> Options:
    """The XLA options for many results of the same few words, as what a snake sees around it.

    They are the older of two kinds of kernels that jaxlib 0.10 has; later versions have one. With
    them a snake that sees what is around it learns up to 1.15 times as fast, and its training is
    compiled in three quarters of the time; others take up to 1.8 times as long (docs/speed.md).
    """
    has_both = version("jaxlib").startswith("0.10.")
    is_cpu = jax.default_backend() == "cpu"
    return {"xla_cpu_use_fusion_emitters": False} if has_both and is_cpu else {}


def summed_axes(equation: Any) -> int:
    """The number of axes of the products that one equation of a jaxpr sums; 0 where it does not."""
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        return equation.outvars[0].aval.ndim + len(contracted)
    if equation.primitive.name == "reduce_sum":
        return equation.invars[0].aval.ndim
    return 0


def equations(program: Any) -> Iterator[Any]:
    """The equations of a jaxpr, at any depth."""
    for equation in program.eqns:
        yield equation
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from equations(inner)
