"""Spaces of gymnax as those of Gymnasium, and what lies in them as NumPy arrays."""

from collections.abc import Mapping
from typing import Any

import gymnasium.spaces as theirs
import numpy as np
from gymnax.environments import spaces as ours

KINDS = {"i": "iu", "u": "iu", "f": "iuf", "b": "b"}
"""The kinds of NumPy dtypes that are taken for actions of a kind."""
ROUNDING = 1e-5
"""Share of the larger bound of a box by which scaled and shifted actions may exceed it."""


def gymnasium_space(space: ours.Space) -> theirs.Space:
    """The same set of values. What is unbounded stays so: Gymnasium knows infinite bounds.

    Raises ValueError for a space other than Discrete, Box, Dict and Tuple.
    """
    if isinstance(space, ours.Discrete):
        if space.shape == ():
            return theirs.Discrete(space.n)
        return theirs.MultiDiscrete(np.full(space.shape, space.n))
    if isinstance(space, ours.Box):
        low, high = (_end(end, space) for end in (space.low, space.high))
        return theirs.Box(low, high, dtype=np.dtype(space.dtype).type)
    if isinstance(space, ours.Dict):
        return theirs.Dict({name: gymnasium_space(part) for name, part in space.spaces.items()})
    if isinstance(space, ours.Tuple):
        return theirs.Tuple(gymnasium_space(part) for part in space.spaces)
    raise ValueError(
        f"the space is a {type(space).__name__}; expected Discrete, Box, Dict or Tuple of gymnax"
    )


def _end(end: Any, box: ours.Box) -> np.ndarray:
    """One end of a box as an array of its shape; integers are cast by Gymnasium."""
    dtype = np.dtype(box.dtype)
    end = np.asarray(end, dtype if dtype.kind == "f" else None)
    return np.broadcast_to(end, box.shape).copy()


def to_numpy(space: theirs.Space, value: Any) -> Any:
    """A value that lies in `space`, or a batch in a batched one, as Gymnasium wants it.

    Copies, as arrays of JAX cannot be written to.
    """
    if isinstance(space, theirs.Dict):
        part = lambda name: value[name] if isinstance(value, Mapping) else getattr(value, name)
        return {name: to_numpy(subspace, part(name)) for name, subspace in space.spaces.items()}
    if isinstance(space, theirs.Tuple):
        pairs = zip(space.spaces, value, strict=True)
        return tuple(to_numpy(subspace, part) for subspace, part in pairs)
    if isinstance(space, theirs.Discrete):
        return np.int64(value)
    return np.array(value, space.dtype)


def checked_action(
    space: theirs.Space, action: Any, count: int | None = None, ignored: np.ndarray | None = None
) -> Any:
    """An action in `space` as the environments take it; with `count`, one for each of so many.

    Those of the environments that are `ignored`, bool `[count]`, may be any numbers. What lies
    outside of a box by no more than `ROUNDING` is clipped.

    Raises ValueError for another structure, shape or kind of numbers, and outside of `space`.
    """
    if isinstance(space, theirs.Dict):
        if not isinstance(action, Mapping) or set(action) != set(space.spaces):
            raise ValueError(
                f"action is {_describe(action)}; expected a dict of {list(space.spaces)}"
            )
        subspaces = space.spaces.items()
        return {
            name: checked_action(part, action[name], count, ignored) for name, part in subspaces
        }
    if isinstance(space, theirs.Tuple):
        if not isinstance(action, tuple | list) or len(action) != len(space.spaces):
            raise ValueError(
                f"action is {_describe(action)}; expected a tuple of {len(space.spaces)}"
            )
        pairs = zip(space.spaces, action, strict=True)
        return tuple(
            checked_action(part, part_action, count, ignored) for part, part_action in pairs
        )
    return _checked_array(space, action, count, ignored)


def _checked_array(
    space: Any, action: Any, count: int | None, ignored: np.ndarray | None
) -> np.ndarray:
    low, high, dtype = _range(space)
    shape = space.shape if count is None else (count, *space.shape)
    array = np.asarray(action)
    if array.dtype.kind not in KINDS[dtype.kind]:
        raise ValueError(f"action is {_describe(action)}; expected {dtype.name} of shape {shape}")
    if array.shape != shape:
        raise ValueError(f"action has shape {array.shape}; expected {shape}")
    if ignored is not None:
        rows = ignored.reshape(-1, *[1] * len(space.shape))
        array = np.where(rows, np.clip(0, low, high), array)
    # floats are rounded first, as a bound may be; integers must not wrap around
    array = array.astype(dtype) if dtype.kind == "f" else array
    slack = _slack(low, high) if dtype.kind == "f" else 0
    is_inside = (low - slack <= array) & (array <= high + slack)
    if not is_inside.all():
        index = tuple(int(i) for i in np.argwhere(~is_inside)[0])
        place = f" at {list(index)}" if index else ""
        least, most = (np.broadcast_to(end, shape)[index] for end in (low, high))
        raise ValueError(f"action is {array[index]}{place}; expected {least} to {most}")
    return np.clip(array, low, high).astype(dtype)


def _slack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """By how much rounding may exceed a box; in float64, as float32 has no room above its end."""
    sizes = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high)]
    return ROUNDING * np.maximum(*sizes).astype(np.float64)


def _range(space: Any) -> tuple[Any, Any, np.dtype]:
    """Smallest and largest values, and the dtype that environments of ours take."""
    if isinstance(space, theirs.Discrete):
        return 0, int(space.n) - 1, np.dtype(np.int32)
    if isinstance(space, theirs.MultiDiscrete):
        return 0, space.nvec - 1, np.dtype(np.int32)
    return space.low, space.high, space.dtype


def _describe(action: Any) -> str:
    return " ".join(repr(action).split())[:80]
