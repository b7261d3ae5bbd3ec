"""Spaces of gymnax: their parts, whether they can be meant, what lies in them and samples."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces

from envs.contract import ContractError, description, require
from envs.gymnax_corrections import space_of

Composite = spaces.Dict | spaces.Tuple
"""Spaces with parts."""


def children(space: Composite) -> dict[Any, Any]:
    """The parts of a Dict by name, sorted as in JAX and Gymnasium, or of a Tuple by number."""
    subspaces: Any = space.spaces
    return dict(
        sorted(subspaces.items()) if isinstance(space, spaces.Dict) else enumerate(subspaces)
    )


def child(value: Any, name: Any) -> Any:
    """A part of a value: of a dict, of a tuple, or a field of anything else."""
    by_index = isinstance(value, Mapping) or isinstance(name, int)
    return value[name] if by_index else getattr(value, str(name))


def flatten(space: Any, value: Any = None) -> list[tuple[Any, Any]]:
    """Each space without parts, and what of `value` belongs to it; without a value None."""
    if not isinstance(space, Composite):
        return [(space, value)]
    subspaces = children(space).items()
    part_of = lambda name: None if value is None else child(value, name)
    return [pair for name, part in subspaces for pair in flatten(part, part_of(name))]


def map_parts(function: Callable[[Any, Any], Any], space: Any, value: Any) -> Any:
    """`function(space, value)` of each part, in dicts and tuples as the space has them."""
    if not isinstance(space, Composite):
        return function(space, value)
    results = {x: map_parts(function, y, child(value, x)) for x, y in children(space).items()}
    return results if isinstance(space, spaces.Dict) else tuple(results.values())


def plain_value(space: Any, value: Any) -> Any:
    """`value` in dicts and tuples, whatever holds its parts: an OrderedDict, a list, a field."""
    return map_parts(lambda part, x: x, space, value)


def parts(space: Any) -> Iterator[Any]:
    """All spaces within a space, itself included."""
    yield space
    if isinstance(space, Composite):
        for part in children(space).values():
            yield from parts(part)


def sample(space: Any, key: jax.Array) -> Any:
    """A random value of a space, in all parts of it. Consumes `key`.

    Gymnax's own is NaN where a Box has no end, see `sample_box`.
    """
    if isinstance(space, spaces.Box):
        return sample_box(space, key)
    if not isinstance(space, Composite):
        return space.sample(key)
    subspaces = children(space)
    keys = jax.random.split(key, len(subspaces))
    values = {x: sample(y, k) for (x, y), k in zip(subspaces.items(), keys, strict=True)}
    return values if isinstance(space, spaces.Dict) else tuple(values.values())


def sample_box(box: spaces.Box, key: jax.Array) -> jax.Array:
    """Uniform between two ends; normal without any, and half of that from a single one.

    Ends so far away that float32 cannot hold their difference are none.
    """
    ends = (jnp.asarray(end, jnp.float32) for end in (box.low, box.high))
    low, high = (jnp.broadcast_to(end, box.shape) for end in ends)
    farthest = jnp.finfo(jnp.float32).max / 2
    has_low, has_high = low >= -farthest, high <= farthest
    uniform = box.sample(key)
    normal = jax.random.normal(jax.random.fold_in(key, 1), box.shape, jnp.float32)
    distance = jnp.abs(normal)
    without_low = jnp.where(has_high, high - distance, normal)
    open_sample = jnp.where(has_low, low + distance, without_low).astype(box.dtype)
    return jnp.where(has_low & has_high, uniform, open_sample)


def contains(space: Any, value: Any) -> jax.Array:
    """Whether a value lies in a space, in all parts of it: bool."""
    are_inside = [jnp.asarray(part.contains(x), bool) for part, x in flatten(space, value)]
    return jnp.all(jnp.stack(are_inside))


def check_space(env: Any, name: str, params: Any) -> Any:
    """The space that the method `name` of an environment gives.

    Raises ContractError unless it is a space of gymnax that is not empty.
    """
    try:
        space = space_of(env, name, params)
    except NotImplementedError as error:
        raise ContractError(f"the environment has no {name}") from error
    for part in parts(space):
        check_part(name, part)
    return space


def check_part(name: str, space: Any) -> None:
    """One space, whatever is within it apart."""
    kind = type(space).__name__
    require(
        isinstance(space, spaces.Space),
        f"{name} gives a {kind} of {type(space).__module__}; expected a space of "
        "gymnax.environments.spaces",
    )
    if isinstance(space, Composite):
        require(len(children(space)) > 0, f"{name} has a {kind} without parts")
    elif isinstance(space, spaces.Discrete):
        require(space.n >= 1, f"{name} has a Discrete of {space.n}; expected 1 at least")
    elif isinstance(space, spaces.Box):
        check_box(name, space)
    elif (choices := getattr(space, "nvec", None)) is not None:
        require(bool(np.all(np.asarray(choices) >= 1)), f"{name} has nvec {choices}; expected 1 on")


def check_box(name: str, box: spaces.Box) -> None:
    """Raises ContractError unless bounds broadcast to the shape, and are in order."""
    is_shape = isinstance(box.shape, tuple) and all(
        isinstance(n, int | np.integer) for n in box.shape
    )
    require(is_shape, f"{name} has a Box with shape {box.shape}; expected a tuple of integers")
    require(math.prod(box.shape) > 0, f"{name} has a Box with shape {box.shape}, which is empty")
    try:
        low, high = (np.broadcast_to(np.asarray(end), box.shape) for end in (box.low, box.high))
    except ValueError as error:
        raise ContractError(
            f"{name} has a Box whose bounds do not fit its shape {box.shape}"
        ) from error
    in_order = low < high if name == "action_space" else low <= high
    require(
        bool(np.all(in_order)),
        f"{name} has a Box from {box.low} to {box.high}; expected low below high",
    )


def check_num_actions(env: Any, space: Any) -> None:
    """An environment that has `num_actions` has as many as its space, where that is a Discrete."""
    if not isinstance(space, spaces.Discrete):
        return
    try:
        count = env.num_actions
    except (NotImplementedError, AttributeError):
        return
    require(
        count == space.n,
        f"num_actions is {count}, but action_space has {space.n} actions: make them agree",
    )


def check_inside(value: Any, space: Any, place: str = "") -> None:
    """An observation, or its shapes, has the structure and the shapes of its space.

    Real numbers have its dtype, too, and a Discrete holds integers. Raises ContractError, which
    names the part at `place`.
    """
    if not isinstance(space, Composite):
        check_array(value, space, f"observation{place}")
        return
    for name, part in children(space).items():
        try:
            inner = child(value, name)
        except (KeyError, IndexError, AttributeError, TypeError) as error:
            raise ContractError(
                f"observation{place} is {description(value)}, without the part {name!r} of "
                "observation_space"
            ) from error
        check_inside(inner, part, f"{place}[{name!r}]")


def check_array(x: Any, space: Any, what: str) -> None:
    """One array, or its shape."""
    kind = type(space).__name__
    is_array = hasattr(x, "shape") and hasattr(x, "dtype")
    require(is_array, f"{what} is {description(x)}; expected an array, as its space is a {kind}")
    expected = tuple(getattr(space, "shape", x.shape))
    require(
        tuple(x.shape) == expected,
        f"{what} has shape {tuple(x.shape)}, but observation_space says {expected}",
    )
    if isinstance(space, spaces.Discrete):
        is_integer = jnp.issubdtype(x.dtype, jnp.integer)
        require(is_integer, f"{what} is {x.dtype}; expected integers, as its space is a {kind}")
    is_real = jnp.issubdtype(x.dtype, jnp.floating)
    is_number = is_real or x.dtype == bool or jnp.issubdtype(x.dtype, jnp.integer)
    require(is_number, f"{what} is {x.dtype}; expected numbers")
    # a network scales by the space: an image from 0 to 1 would be divided by 255 again
    dtype = jnp.dtype(getattr(space, "dtype", x.dtype))
    require(
        not is_real or in_32_bits(x.dtype) == in_32_bits(dtype),
        f"{what} is {x.dtype}, but observation_space says {dtype}: convert it, or declare a space "
        f"of {x.dtype} with its bounds",
    )


def in_32_bits(dtype: Any) -> np.dtype:
    """A dtype as where JAX has 32 bits: whether it has 64 changes float64 in arrays alone."""
    return np.dtype(np.float32) if dtype == np.float64 else jnp.dtype(dtype)
