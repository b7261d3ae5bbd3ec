"""What environments ask of their arguments: names, ranges, keys, parameters and actions."""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from jax.core import Tracer


class Range(NamedTuple):
    """The numbers that a field may hold, declared as `Annotated[float, Range(above=0.0)]`."""

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf

    def __str__(self) -> str:
        limits = zip(("at least", "above", "at most"), self, strict=True)
        return f"a number {' and '.join(f'{name} {x}' for name, x in limits if math.isfinite(x))}"


def check_name(what: str, name: str, names: Collection[str]) -> None:
    """Raises ValueError unless `name` is one of `names`; `what` is what it names."""
    if name not in names:
        raise ValueError(f"{what} {name!r} is unknown; expected one of {', '.join(names)}")


def check_count(name: str, count: Any) -> None:
    """Raises ValueError unless a count is an integer of at least 1; `name` is what it is called."""
    if isinstance(count, bool) or not (isinstance(count, int | np.integer) and count >= 1):
        raise ValueError(f"{name} is {count!r}; expected an integer of at least 1")


def python_integer(number: Any) -> Any:
    """An integer of NumPy as one of Python, whose bits are as many as it needs; others stay."""
    return number.item() if isinstance(number, np.integer) else number


def is_traced(tree: Any) -> bool:
    """Whether any number of a pytree is unknown until a compiled program runs."""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


def is_key(x: Any) -> bool:
    """Whether an array holds random keys of `jax.random.key`."""
    return jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key)


def check_key(key: Any) -> None:
    """Raises TypeError unless `key` is one random key, of `jax.random.key` or `PRNGKey`."""
    if not isinstance(key, jax.Array | np.ndarray):
        what = f"of type {type(key).__name__}"
    elif not (is_key(key) or key.dtype == np.uint32):
        what = f"an array of {key.dtype}"
    elif key.ndim > (0 if is_key(key) else 1):  # one of PRNGKey is a row of numbers
        what = f"an array of keys, of shape {key.shape}; jax.vmap takes several"
    else:
        return
    raise TypeError(f"key is {what}: expected one key, such as jax.random.key(0)")


def check_params(params: Any) -> None:
    """Raises TypeError for a class of parameters in the place of the parameters."""
    if isinstance(params, type):
        name = params.__name__
        raise TypeError(f"params are the class {name}, expected its numbers: give {name}()")


def check_action(space: Any, action: Any) -> None:
    """Raises TypeError unless an action has the shape and the kind of number of its space.

    That is asked of a Discrete and of a Box. Which number it is, compiled code does not know.
    """
    if not isinstance(space, spaces.Discrete | spaces.Box):
        return
    kinds = _kinds_of_numbers(space)
    arrays = jax.tree.leaves(action)
    if len(arrays) != 1:
        what = f"of type {type(action).__name__}"
    elif not any(jnp.issubdtype(jnp.result_type(arrays[0]), kind) for kind in kinds):
        what = f"{jnp.result_type(arrays[0])} of shape {jnp.shape(arrays[0])}"
    elif jnp.shape(arrays[0]) != tuple(space.shape):
        what = f"of shape {jnp.shape(arrays[0])}"
    else:
        return
    is_choice = isinstance(space, spaces.Discrete)
    choices = f", from 0 to {space.n - 1}" if is_choice else ""
    expected = f"{jnp.dtype(space.dtype)} of shape {tuple(space.shape)}{choices}"
    raise TypeError(f"action is {what}: expected {expected}; jax.vmap takes several")


def _kinds_of_numbers(space: spaces.Discrete | spaces.Box) -> tuple[Any, ...]:
    """What an action may be: of a Discrete integers, of a Box of them or of bool, bool as well."""
    if isinstance(space, spaces.Discrete):
        return (jnp.integer,)
    is_real = jnp.issubdtype(space.dtype, jnp.inexact)
    return (jnp.number,) if is_real else (jnp.integer, jnp.bool_)
