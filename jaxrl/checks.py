"""Checks of configurations before anything is compiled: kinds and ranges, declared beside a field.

    @struct.dataclass
    class Config:
        learning_rate: Positive = 1e-3
        clip: Annotated[float, Range(above=0.0, below=1.0)] = 0.2

A field without a range has the one of its kind: floats are finite and integers fit into 32 bits.
"""

import dataclasses
import math
import types
import typing
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

INT32 = 2**31 - 1


class Range(NamedTuple):
    """The numbers that a field may hold; the integers among them for a field of integers."""

    least: float = -math.inf
    above: float = -math.inf
    below: float = math.inf
    most: float = math.inf
    finite: bool = True  # False: infinity, too, where the bounds allow it

    def holds(self, value: float) -> bool:
        if math.isnan(value) or (self.finite and math.isinf(value)):
            return False
        low = value > self.above or math.isinf(self.above)
        high = value < self.below or math.isinf(self.below)
        return low and high and self.least <= value <= self.most

    def __str__(self) -> str:
        bounds = {"at least": self.least, "above": self.above}
        bounds |= {"below": self.below, "at most": self.most}
        told = [f"{name} {x}" for name, x in bounds.items() if math.isfinite(x)]
        return f"a number {' and '.join(told) or 'that is finite'}"


Positive = Annotated[float, Range(above=0.0)]
NonNegative = Annotated[float, Range(least=0.0)]
Share = Annotated[float, Range(least=0.0, most=1.0)]
"""From 0 to 1, both included."""
Span = Annotated[float, Range(least=0.0, finite=False)]
"""A length of time, or `inf`."""
Count = Annotated[int, Range(least=1, most=INT32)]
CountOrZero = Annotated[int, Range(least=0, most=INT32)]


class OutOfRange(ValueError):
    """A field of a configuration holds what it may not."""

    def __init__(self, name: str, problem: str):
        super().__init__(f"{name} {problem}")
        self.name, self.problem = name, problem


def config(value: Any, path: str = "") -> None:
    """Raises OutOfRange unless every field of a dataclass, nested ones included, is as declared.

    Kinds are checked as well as ranges. A traced value, as under `vmap` over configurations, cannot
    be checked and passes. `path` begins the names in messages, such as "agent.".
    """
    declared = typing.get_type_hints(type(value), include_extras=True)
    for field in dataclasses.fields(value):
        _check(f"{path}{field.name}", declared[field.name], getattr(value, field.name), None)


def number(name: str, value: Any, **bounds: float) -> None:
    """Raises OutOfRange unless a number is in `Range(**bounds)`; a traced one passes."""
    allowed = Range(**bounds)
    if isinstance(value, int | float) and not allowed.holds(value):
        raise OutOfRange(name, f"is {value}, expected {allowed}")


def may_be_positive(value: Any) -> bool:
    """Whether a number is above 0, or traced and so unknown.

    Decides what a program must allocate; a traced number may turn out to be 0.
    """
    return not isinstance(value, int | float) or value > 0


def _check(name: str, kind: Any, value: Any, allowed: Range | None) -> None:
    """One field: unwraps the annotation until a plain kind is left."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        ranges = [x for x in kind.__metadata__ if isinstance(x, Range)]
        _check(name, arguments[0], value, ranges[0] if ranges else allowed)
    elif origin in (typing.Union, types.UnionType):
        _check_union(name, arguments, value, allowed)
    elif origin is Literal:
        if value not in arguments:
            expected = " or ".join(map(str, arguments))
            raise OutOfRange(name, f"is {value}, expected {expected}")
    elif origin is tuple:
        _check_tuple(name, arguments, value, allowed)
    elif dataclasses.is_dataclass(value):
        config(value, f"{name}.")
    elif kind in (int, float):
        _check_number(name, kind, value, allowed)
    elif kind in (bool, str) and not (isinstance(value, kind) or hasattr(value, "dtype")):
        raise OutOfRange(name, f"is {value!r}, expected a {kind.__name__}")


def _check_union(name: str, kinds: tuple, value: Any, allowed: Range | None) -> None:
    if value is None and type(None) in kinds:
        return
    (kind, *_) = (x for x in kinds if x is not type(None))
    _check(name, kind, value, allowed)


def _check_tuple(name: str, kinds: tuple, value: Any, allowed: Range | None) -> None:
    if not isinstance(value, tuple):
        if hasattr(value, "dtype"):  # traced as a whole
            return
        raise OutOfRange(name, f"is {value!r}, expected several values")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise OutOfRange(name, f"has {len(value)} values, expected {len(kinds)}")
    for i, (kind, item) in enumerate(zip(kinds, value, strict=True)):
        _check(f"{name}[{i}]", kind, item, allowed)


def _check_number(name: str, kind: type, value: Any, allowed: Range | None) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "dtype"):  # traced, or an array of members
        return
    kinds = (int,) if kind is int else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool):
        expected = "an integer" if kind is int else "a number"
        raise OutOfRange(name, f"is {value!r}, expected {expected}")
    if allowed is None:
        allowed = Range(-INT32 - 1, most=INT32) if kind is int else Range()
    number(name, value, **allowed._asdict())


def fields(where: str, config: Any, *names: str, **bounds: float) -> None:
    """Raises OutOfRange unless these fields of a configuration are within the same bounds."""
    for name in names:
        number(f"{where}{name}", getattr(config, name), **bounds)
