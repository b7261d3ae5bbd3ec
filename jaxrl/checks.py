"""Checks of configurations before anything is compiled: kinds and ranges, declared beside a field.

    @struct.dataclass
    class Config:
        learning_rate: Positive = 1e-3
        clip: Annotated[float, Range(above=0.0, below=1.0)] = 0.2

A field without a range has that of its kind: floats are finite, integers fit into 32 bits. A pair
of floats is an interval, its lower end first.
"""

import dataclasses
import math
import types
import typing
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

INT32 = 2**31 - 1
LARGEST, SMALLEST = (float(getattr(np.finfo(np.float32), name)) for name in ("max", "tiny"))


class Range(NamedTuple):
    """The numbers that a field may hold; the integers among them for a field of integers."""

    least: float = -math.inf
    above: float = -math.inf
    below: float = math.inf
    most: float = math.inf
    finite: bool = True  # False: infinity, too, where the bounds allow it

    def holds(self, value: float) -> bool:
        if value != value or (self.finite and abs(value) == math.inf):
            return False
        inside = self.above == -math.inf or value > self.above
        inside &= self.below == math.inf or value < self.below
        return inside and self.least <= value <= self.most

    def holds_in_float32(self, value: float) -> bool:
        """Whether rounding keeps a number finite and within its open bounds."""
        rounded = math.inf if value > 0 else -math.inf
        if abs(value) <= LARGEST:
            rounded = float(np.float32(value)) if abs(value) >= SMALLEST else 0.0
        return self._replace(least=-math.inf, most=math.inf).holds(rounded)

    def __str__(self) -> str:
        bounds = zip(("at least", "above", "below", "at most"), self[:4], strict=True)
        conditions = [f"{name} {x}" for name, x in bounds if math.isfinite(x)]
        return f"a number {' and '.join(conditions) or 'that is finite'}"


Positive = Annotated[float, Range(above=0.0)]
NonNegative = Annotated[float, Range(least=0.0)]
Share = Annotated[float, Range(least=0.0, most=1.0)]
"""From 0 to 1, both included."""
Span = Annotated[float, Range(above=0.0, finite=False)]
"""A length of time above 0, or `inf`."""
Count = Annotated[int, Range(least=1, most=INT32)]
CountOrZero = Annotated[int, Range(least=0, most=INT32)]
TwoOrMore = Annotated[int, Range(least=2, most=INT32)]
Seed = Annotated[int, Range(least=0, most=2**32 - 1)]
"""Of a key: JAX drops all bits but 32."""


class OutOfRange(ValueError):
    """A field of a configuration holds what it may not."""

    def __init__(self, name: str, problem: str):
        super().__init__(f"{name} {problem}")
        self.name, self.problem = name, problem


def config(value: Any, path: str = "") -> None:
    """Raises OutOfRange unless every field, nested ones included, is as declared.

    `value` is a dataclass or a named tuple. Kinds are checked as well as ranges. A traced value, as
    under `vmap` over configurations, cannot be checked and passes. `path` begins the names in
    messages, such as "agent.".
    """
    field_types = typing.get_type_hints(type(value), include_extras=True)
    for name in getattr(value, "_fields", None) or [x.name for x in dataclasses.fields(value)]:
        _check(f"{path}{name}", field_types[name], getattr(value, name), None)


def config_of(kind: type, value: Any) -> None:
    """`config`, and raises ValueError for a configuration of another class than `kind`.

    Of another one the fields of the same name would be taken, and the others ignored.
    """
    if not isinstance(value, kind):
        is_class = isinstance(value, type)
        actual = f"the class {_full_name(value)}" if is_class else f"a {_full_name(type(value))}"
        raise ValueError(
            f"config is {actual}, expected the settings of {kind.__module__}: give a "
            f"{_full_name(kind)}()"
        )
    config(value)


def value(name: str, kind: Any, number: Any) -> None:
    """Raises OutOfRange unless a number is what a field of that kind may hold, as in `config`."""
    is_array = isinstance(number, np.ndarray) and number.shape == ()
    _check(name, kind, number[()] if is_array else number, None)


def number(name: str, value: Any, **bounds: Any) -> None:
    """Raises OutOfRange unless a number is in `Range(**bounds)`; an array of JAX passes."""
    allowed = Range(**bounds)
    value = _plain(value)
    if isinstance(value, int | float) and not allowed.holds(value):
        raise OutOfRange(name, f"is {value}, expected {allowed}")


def may_be_positive(value: Any) -> bool:
    """Whether a number is above 0, or an array: what a program must allocate depends on it."""
    value = _plain(value)
    return not isinstance(value, int | float) or value > 0


def may_be_finite(value: Any) -> bool:
    """Whether a number is not infinite, or an array: whether something may ever reach it."""
    value = _plain(value)
    return not isinstance(value, int | float) or math.isfinite(value)


def declared_range(metadata: tuple) -> Range | None:
    """The first named tuple whose fields are some of those of `Range`: `envs` has its own."""
    bounds = (x._asdict() for x in metadata if {*getattr(x, "_fields", "?")} <= {*Range._fields})
    return next((Range(**x) for x in bounds), None)


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _full_name(kind: type) -> str:
    """The name of a class, and where it is from."""
    is_builtin = kind.__module__ == "builtins"
    return kind.__name__ if is_builtin else f"{kind.__module__}.{kind.__name__}"


def _check(name: str, kind: Any, value: Any, allowed: Range | None) -> None:
    """One field: unwraps the annotation until a plain kind is left."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        _check(name, arguments[0], value, declared_range(kind.__metadata__) or allowed)
    elif origin in (typing.Union, types.UnionType):
        if value is not None or type(None) not in arguments:
            _check(name, next(x for x in arguments if x is not type(None)), value, allowed)
    elif hasattr(value, "dtype") and not isinstance(value, np.generic):
        return  # traced, or an array of members
    elif origin is Literal:
        if value not in arguments:
            raise OutOfRange(name, f"is {value}, expected {' or '.join(map(str, arguments))}")
    elif origin is tuple:
        _check_tuple(name, arguments, value, allowed)
    elif kind in (int, float):
        _check_number(name, kind, value, allowed)
    elif isinstance(kind, type) and kind is not Any:
        if not isinstance(value, (kind, np.bool_) if kind is bool else kind):
            raise OutOfRange(name, f"is {value!r}, expected the type {kind.__name__}")
        if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
            config(value, f"{name}.")


def _check_tuple(name: str, kinds: tuple, value: Any, allowed: Range | None) -> None:
    if not isinstance(value, tuple):
        raise OutOfRange(name, f"is {value!r}, expected several values")
    is_interval = [typing.get_args(x)[:1] or (x,) for x in kinds] == [(float,)] * 2
    if kinds[-1:] == (...,):
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise OutOfRange(name, f"has {len(value)} values, expected {len(kinds)}")
    for i, (kind, item) in enumerate(zip(kinds, value, strict=True)):
        _check(f"{name}[{i}]", kind, item, allowed)
    if is_interval and all(isinstance(x, int | float) for x in value) and value[0] > value[1]:
        raise OutOfRange(name, f"is {value[0]} to {value[1]}, expected the lower number first")


def _check_number(name: str, kind: type, value: Any, allowed: Range | None) -> None:
    value = _plain(value)
    if not isinstance(value, int if kind is int else int | float) or isinstance(value, bool):
        expected = "an integer" if kind is int else "a number"
        raise OutOfRange(name, f"is {value!r}, expected {expected}")
    allowed = allowed or (Range(-INT32 - 1, most=INT32) if kind is int else Range())
    number(name, value, **allowed._asdict())
    if kind is float and not allowed.holds_in_float32(value):
        raise OutOfRange(name, f"is {value}, expected {allowed} in float32")
