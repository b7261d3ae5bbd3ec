"""Numbers that are refused, and those that cannot be looked at."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from jaxrl import checks


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


def test_a_number_within_bounds_or_unknown_yet_passes():
    checks.number("rate", 0.0, least=0.0, below=1.0)
    checks.number("rate", 1.0, most=1.0)
    jax.jit(lambda x: checks.number("rate", x, above=0.0))(jnp.float32(-1.0))


def test_the_first_field_out_of_bounds_is_named():
    sizes = SimpleNamespace(rows=3, cols=0, colour="green")
    checks.fields("game.", sizes, "rows", "colour", least=1)
    with pytest.raises(ValueError, match=r"game\.cols is 0, expected a number at least 1"):
        checks.fields("game.", sizes, "rows", "cols", least=1)
