"""Numbers as people write them, on a command line and in a file."""

import re
import types
import typing
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

MOST_DIGITS = 300
"""Digits of a whole number with an exponent, at most: 1e999999999 fits into no memory."""
WITH_EXPONENT = 1e9
"""The least number that is written with an exponent, as 1.235e+09."""
MOST_LISTED = 12
"""Names that a message has, at most."""
FLAGS = ConstructorRegistry()
"""How the flags of a command are read: whole numbers by `parse_integer`, others as tyro does."""


def parse_integer(text: str) -> int:
    """The number that `text` says: 1000, 1_000, 1e3 or 1000.0. Raises ValueError for others."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        float(text)  # refuses underscores out of place, which Decimal drops
        number = Decimal(text)
        if number.adjusted() < MOST_DIGITS and number == number.to_integral_value():
            return int(number)
    except (InvalidOperation, ValueError, OverflowError):  # no number; NaN; infinity
        pass
    raise ValueError(f"{text[:40]!r} is no whole number; expected one such as 1_000_000 or 1e6")


def parse_cell(text: str) -> float:
    """The number in a cell of a table. Raises ValueError for others, 1_5 among them.

    Python's `float` takes underscores, which tables have in names and where a point was meant.
    """
    if "_" in text:
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)


def quantity(count: int, things: str) -> str:
    """`1 batch`, `2,000 batches`: so many things, which are named in the plural."""
    if count != 1:
        return f"{count:,} {things}"
    one = re.sub(r"ies$", "y", things)
    return f"1 {re.sub('(?<=ch|sh|ss)es$|(?<=x)es$|s$', '', one)}"


def digits_text(value: float, digits: int = 4) -> str:
    """A number of so many digits, or of all those before the point: 12346, not 1.235e+04.

    From 10⁹ on, and below 10⁻⁴, it has an exponent.
    """
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < WITH_EXPONENT else text


def listing(names: Sequence[str], most: int = MOST_LISTED) -> str:
    """The first of some names, for messages."""
    return ", ".join(names[:most]) + ", …" * (len(names) > most)


def one_or_each(count: int) -> str:
    """`1`, or `1 or 3`: how many numbers fit `count` things, of which one may stand for all."""
    return "1" if count == 1 else f"1 or {count}"


@FLAGS.primitive_rule
def _integer_flag(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: parse_integer(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    )


def convert_value(kind: Any, value: Any) -> Any:
    """A value of a file as a field of this kind holds it, if it is a number or several.

    YAML takes 1e-4 and 1e6 for text, and 1 for an integer where a float or a name is expected. What
    is of another kind stays as it is, for `jaxrl.checks` to refuse; lists become tuples.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return convert_value(arguments[0], value)
    if origin in (typing.Union, types.UnionType):
        return convert_value(next(x for x in arguments if x is not types.NoneType), value)
    if isinstance(value, list):
        kinds = arguments if origin is tuple else (Any,)
        if len(kinds) != len(value) or kinds[-1] is ...:
            kinds = kinds[:1] * len(value)
        return tuple(convert_value(item_kind, x) for item_kind, x in zip(kinds, value, strict=True))
    if kind not in (int, float, str) or isinstance(value, bool):
        return value
    if not isinstance(value, int | float | str):
        return value
    try:
        return parse_integer(str(value)) if kind is int else kind(value)
    except (ValueError, OverflowError):
        return value
