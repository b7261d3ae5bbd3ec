"""What a policy or an encoder is given, as NumPy arrays of the shapes and dtypes it expects."""

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.types import PyTree

KINDS = {"f": jnp.floating, "i": jnp.integer, "u": jnp.integer, "b": jnp.bool_}
"""The dtypes that are taken for one of each kind."""
MISSING = (KeyError, IndexError, AttributeError, TypeError)
"""What a value raises that lacks a part."""


class InputSpec(NamedTuple):
    """A kind of input, such as an observation, of one environment or a batch of them."""

    name: str
    template: PyTree  # shapes and dtypes of one
    is_finite: bool = True  # whether infinite numbers are refused, as NaN is

    def arrays(self, value: Any) -> tuple[PyTree, int | None]:
        """`value` as NumPy arrays, and the size of the batch that it is; None: it is one.

        Parts may be in dicts, tuples or objects with fields, as the environment shows them or
        Gymnasium's spaces have them. Raises ValueError, in one line, for anything else.
        """
        paths, structure = jax.tree_util.tree_flatten_with_path(self.template)
        if not paths and jax.tree.leaves(value):
            raise ValueError(f"{self.name} is {type(value).__name__}; expected {self.template!r}")
        _refuse_surplus(self.name, value, [path for path, _ in paths])
        leaves = [self._array(value, path, template) for path, template in paths]
        counts = {
            x.shape[0] if x.ndim > template.ndim else None
            for x, (_, template) in zip(leaves, paths, strict=True)
        }
        if len(counts) > 1:
            shapes = ", ".join(str(x.shape) for x in leaves)
            raise ValueError(f"parts of the {self.name} have the shapes {shapes}, of several sizes")
        return structure.unflatten(leaves), next(iter(counts), None)

    def _array(self, value: Any, path: tuple, template: Any) -> Any:
        """The leaf of `value` at a path."""
        name = f"{self.name}{jax.tree_util.keystr(path)}"
        for key in path:
            try:
                value = part_of(value, key_of(key))
            except MISSING:
                kind = type(value).__name__
                raise ValueError(
                    f"{name} is missing, in a {kind}; expected {_text(template)}"
                ) from None
        if jnp.issubdtype(template.dtype, jax.dtypes.extended):  # keys: NumPy has none
            return value
        array = self._number_array(name, value, template)
        if (
            array.shape[-template.ndim or array.ndim :] != template.shape
            or array.ndim > template.ndim + 1
        ):
            raise ValueError(
                f"{name} has shape {array.shape}; expected {template.shape}, or "
                f"{_batch(template)} for a batch"
            )
        self._refuse_unusable(name, array)
        return array

    def _number_array(self, name: str, value: Any, template: Any) -> np.ndarray:
        """An array of the dtype of `template`. Raises ValueError for another kind of numbers."""
        try:
            array = np.asarray(value)
        except (ValueError, TypeError):
            array = np.asarray(None)
        if not jnp.issubdtype(array.dtype, KINDS[np.dtype(template.dtype).kind]):
            kind = type(value).__name__ if array.dtype == object else array.dtype
            raise ValueError(f"{name} is {kind}; expected {_text(template)}")
        with np.errstate(over="ignore"):
            converted = array.astype(template.dtype)
        if (
            array.dtype != template.dtype
            and array.dtype.kind in "iu"
            and (converted != array).any()
        ):
            raise ValueError(
                f"{name} has numbers that {template.dtype} has not; expected {_text(template)}"
            )
        return converted

    def _refuse_unusable(self, name: str, array: np.ndarray) -> None:
        """Raises ValueError for NaN and, as the case may be, for infinite numbers."""
        if array.dtype.kind != "f":
            return
        is_fine = np.isfinite(array) if self.is_finite else ~np.isnan(array)
        if not is_fine.all():
            place = tuple(int(i) for i in np.argwhere(~is_fine)[0])
            at = f" at {list(place)}" if place else ""
            raise ValueError(f"{name} is {array[place]}{at}; expected finite numbers")


def _refuse_surplus(name: str, value: Any, paths: list[tuple]) -> None:
    """Raises ValueError for parts, at any depth, that nothing looks at.

    `paths` lead from `value`, which is called `name`, to what is looked at.
    """
    steps = {key_of(path[0]): path[:1] for path in paths if path}
    part_names = value.keys() if isinstance(value, Mapping) else set()
    if isinstance(value, tuple | list) and all(isinstance(x, int) for x in steps):
        part_names = set(range(len(value)))
    if steps and (surplus := {x for x in part_names - steps.keys() if jax.tree.leaves(value[x])}):
        raise ValueError(
            f"{name} has a part {min(map(str, surplus))!r}; expected "
            f"{', '.join(sorted(map(str, steps)))}"
        )
    for key, step in steps.items():
        inner_paths = [path[1:] for path in paths if path and key_of(path[0]) == key]
        with contextlib.suppress(*MISSING):  # which `_array` tells
            part = part_of(value, key)
            _refuse_surplus(f"{name}{jax.tree_util.keystr(step)}", part, inner_paths)


def key_of(step: Any) -> Any:
    """A step of a path: of a dict, a field or a place."""
    return next(getattr(step, x) for x in ("key", "name", "idx") if hasattr(step, x))


def part_of(value: Any, key: Any) -> Any:
    """A part of a dict, of a tuple, or a field; a field is also looked up in a dict."""
    by_index = isinstance(value, Mapping) or isinstance(key, int)
    return value[key] if by_index else getattr(value, str(key))


def _text(template: Any) -> str:
    return f"{np.dtype(template.dtype).name} of shape {template.shape}"


def _batch(template: Any) -> str:
    return str(("B", *template.shape)).replace("'", "")
