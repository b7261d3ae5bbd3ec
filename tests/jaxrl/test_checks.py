"""Numbers that are refused, and those that cannot be looked at."""

import enum
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, CountOrZero, Positive, Range, Seed, Share, Span


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (float("nan"), {}, "rate is nan, expected a number that is finite"),
        (float("inf"), {"least": 0.0}, "rate is inf, expected a number at least 0.0"),
        (0, {"above": 0.0}, "rate is 0, expected a number above 0.0"),
        (1.0, {"least": 0.0, "below": 1.0}, "a number at least 0.0 and below 1.0"),
        (-1, {"least": 0}, "rate is -1, expected a number at least 0"),
        (
            1.5,
            {"above": 0.0, "most": 1.0},
            "rate is 1.5, expected a number above 0.0 and at most 1",
        ),
    ],
)
def test_a_number_out_of_bounds_is_refused_in_one_line(value, bounds, message):
    with pytest.raises(ValueError, match=message) as error:
        checks.number("rate", value, **bounds)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
def test_numbers_of_numpy_are_refused_as_those_of_python(kind):
    with pytest.raises(ValueError, match=f"rate is {kind(-1)}, expected a number above 0"):
        checks.number("rate", kind(-1), above=0)
    checks.number("rate", kind(1), above=0)
    positive = [checks.may_be_positive(kind(x)) for x in (-1, 0, 1)]
    assert positive == [False, False, True]
    assert not checks.may_be_finite(np.float32(np.inf))
    assert checks.may_be_finite(kind(1))


def test_a_number_within_bounds_or_unknown_yet_passes():
    checks.number("rate", 0.0, least=0.0, below=1.0)
    checks.number("rate", 1.0, most=1.0)
    jax.jit(lambda x: checks.number("rate", x, above=0.0))(jnp.float32(-1.0))


class Colour(enum.Enum):
    RED = 1


class ForeignRange(NamedTuple):
    """A range of a package that imports nothing of this one."""

    least: float


class Size(NamedTuple):
    rows: Count = 3
    cols: int = 4


@struct.dataclass
class Inner:
    rate: Positive = 0.1
    hidden: tuple[Count, ...] = struct.field(pytree_node=False, default=(8, 8))


@struct.dataclass
class EveryKind:
    """A field of each kind."""

    number: float = 0.0
    whole: int = 0
    share: Share = 0.5
    span: Span = float("inf")
    below: Annotated[float, Range(least=0.0, below=1.0)] | None = None
    count: Annotated[Count | None, "of something else"] = None
    rest: CountOrZero = 0
    seed: Seed = 0
    foreign: Annotated[float, ForeignRange(2.0)] = 2.0
    interval: tuple[float, float] = (0.0, 1.0)
    widths: Annotated[tuple[int, ...], Range(least=2)] = ()
    on: bool = False
    name: str = ""
    kind: Literal["one", "two"] = "one"
    path: Path | None = None
    colour: Colour = Colour.RED
    anything: Any = None
    inner: Inner = field(default_factory=Inner)
    size: Size = Size()


NAN, INF = float("nan"), float("inf")
PASS = [
    {"number": 3},
    {"number": -3e38, "whole": -(2**31)},
    {"number": np.float32(0.5), "whole": np.int64(7), "share": np.float64(1.0), "on": np.bool_(1)},
    {"share": 0, "span": 1e300, "below": 0.0, "count": 2**31 - 1, "seed": 2**32 - 1},
    {"interval": (1.0, 1.0), "widths": (2, 3), "path": Path("x"), "kind": "two", "anything": NAN},
    {"inner": Inner(jnp.float32(NAN)), "number": jnp.zeros(3), "on": jnp.array(True)},
    {"interval": (jnp.float32(2.0), jnp.float32(1.0))},
]
REFUSED = [
    ({"number": NAN}, "number is nan, expected a number that is finite"),
    ({"number": np.float32(NAN)}, "number is nan, expected a number that is finite"),
    ({"number": -INF}, "number is -inf, expected a number that is finite"),
    ({"number": 1e39}, r"number is 1e\+39, expected a number that is finite in float32"),
    ({"number": 10**400}, "number is 10+, expected a number that is finite in float32"),
    ({"number": "1"}, "number is '1', expected a number"),
    ({"number": True}, "number is True, expected a number"),
    ({"number": None}, "number is None, expected a number"),
    (
        {"whole": 10**30},
        "whole is 10+, expected a number at least -2147483648 and",
    ),
    ({"whole": 10**400}, "whole is 10+, expected a number at least"),
    ({"whole": 0.5}, "whole is 0.5, expected an integer"),
    ({"whole": np.float32(1.0)}, "whole is 1.0, expected an integer"),
    ({"share": 1.0001}, "share is 1.0001, expected a number at least 0.0 and at most 1.0"),
    ({"span": 0.0}, "span is 0.0, expected a number above 0.0"),
    ({"span": 1e-50}, "span is 1e-50, expected a number above 0.0 in float32"),
    ({"span": NAN}, "span is nan, expected a number above 0.0"),
    ({"below": 1.0}, "below is 1.0, expected a number at least 0.0 and below 1.0"),
    ({"below": 1 - 1e-9}, "below is 0.999999999, expected a number .* below 1.0 in float32"),
    ({"count": 0}, "count is 0, expected a number at least 1 and at most 2147483647"),
    ({"count": 10**30}, "count is 10+, expected a number at least 1"),
    ({"rest": -1}, "rest is -1, expected a number at least 0"),
    ({"seed": 2**32}, "seed is 4294967296, expected .* at most 4294967295"),
    ({"foreign": 1.0}, "foreign is 1.0, expected a number at least 2.0"),
    ({"interval": (2.0, 1.0)}, "interval is 2.0 to 1.0, expected the lower number first"),
    ({"interval": (0.0, NAN)}, r"interval\[1\] is nan, expected a number that is finite"),
    ({"interval": (0.0,)}, "interval has 1 values, expected 2"),
    ({"interval": 3.0}, "interval is 3.0, expected several values"),
    ({"widths": (2, 1)}, r"widths\[1\] is 1, expected a number at least 2"),
    ({"on": 1}, "on is 1, expected the type bool"),
    ({"name": 3}, "name is 3, expected the type str"),
    ({"kind": "three"}, "kind is three, expected one or two"),
    ({"path": "x"}, "path is 'x', expected the type Path"),
    ({"colour": "RED"}, "colour is 'RED', expected the type Colour"),
    ({"inner": 3}, "inner is 3, expected the type Inner"),
    ({"inner": Inner(rate=0.0)}, r"inner\.rate is 0.0, expected a number above 0.0"),
    ({"inner": Inner(hidden=(8, -1))}, r"inner\.hidden\[1\] is -1, expected a number at least 1"),
    ({"size": Size(rows=0)}, r"size\.rows is 0, expected a number at least 1"),
]


@pytest.mark.parametrize("changes", PASS)
def test_a_configuration_as_declared_passes(changes: dict):
    checks.config(replace(EveryKind(), **changes))


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_a_field_that_is_not_as_declared_is_refused_by_name(changes: dict, message: str):
    with pytest.raises(checks.OutOfRange, match=f"^run\\.{message}") as error:
        checks.config(replace(EveryKind(), **changes), "run.")
    assert "\n" not in str(error.value)
    assert str(error.value) == f"{error.value.name} {error.value.problem}"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Inner(), f"a {__name__}.Inner"),
        (EveryKind, f"the class {__name__}.EveryKind"),
        ((8, 8), "a tuple"),
    ],
)
def test_a_configuration_of_another_class_is_refused(value, kind):
    checks.config_of(EveryKind, EveryKind())
    with pytest.raises(ValueError, match=r"^config is ") as error:
        checks.config_of(EveryKind, value)
    advice = f"expected the settings of {__name__}: give a {__name__}.EveryKind()"
    assert str(error.value) == f"config is {kind}, {advice}"


def test_traced_numbers_pass():
    def checked_sum(config: EveryKind) -> Any:
        checks.config(config)
        return config.number + config.inner.rate

    check_each = jax.vmap(
        lambda number, inner: checked_sum(replace(EveryKind(), number=number, inner=inner))
    )
    rates: Any = jnp.full(3, -1.0)
    sums = check_each(jnp.arange(3.0), Inner(rates))
    np.testing.assert_array_equal(sums, [-1.0, 0.0, 1.0])
