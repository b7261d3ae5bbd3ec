"""What the tests of extreme numbers share: scales, their decorator, and how errors are judged.

A scale is drawn log-uniformly from 1e-12 to 1e12. Errors are bounded in roundings of float32,
`EPS` each, of the magnitudes that were added: first-order analysis, one EPS for each operation, a
few for each elementary function. Below `TINY` numbers are flushed to zero.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

EPS = 2.0**-24  # half the distance from 1 to the next float32: the error of one operation
TINY = float(np.finfo(np.float32).tiny)
MAX = float(np.finfo(np.float32).max)
FUNCTION = 16  # roundings allowed to one exp, log or power
EXAMPLES = 40

scales = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)
seeds = st.integers(0, 2**32 - 1)
shares = st.one_of(st.sampled_from([0.0, 1.0, 1 - 2**-24, 1 - 1e-6, 1e-12]), st.floats(0, 1))
"""Discounts, λ and the like: 0, 1, close to both, and between."""


def extreme(**strategies: st.SearchStrategy) -> Callable[[Callable], Callable]:
    """A test of a property at `EXAMPLES` examples, and a slow one at ten times as many."""
    many = [EXAMPLES, pytest.param(10 * EXAMPLES, marks=pytest.mark.slow)]

    def decorate(check: Callable) -> Callable:
        @pytest.mark.parametrize("examples", many)
        def test(examples: int):
            phases = set(Phase) - {Phase.explain}
            run_with = settings(
                max_examples=examples, deadline=None, derandomize=True, phases=phases
            )
            run_with(given(**strategies)(check))()

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def single(x) -> Any:
    """In float32, those that it would flush to zero as 0."""
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < TINY, np.float32(0), x)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Any:
    """Normal numbers times `scale`, now and then each times a power of ten of its own.

    Their sizes stay within 1e-13 and 1e13.
    """
    x = rng.normal(size=shape) * scale
    if rng.random() < 0.3:
        x = x * 10.0 ** rng.uniform(-12, 12, size=shape)
    return single(np.sign(x) * np.clip(np.abs(x), 1e-13, 1e13))


def double(x) -> np.ndarray:
    return np.asarray(x, np.float64)


def assert_within(actual, exact, bound):
    """|actual - exact| <= bound; infinite only where a quarter of float32 is below `exact`.

    A quarter, since terms are squared before they are halved, and added before others are
    subtracted.
    """
    actual, exact, bound = np.broadcast_arrays(double(actual), double(exact), double(bound))
    assert not np.isnan(actual).any(), (actual, exact)
    assert not np.isnan(exact).any()
    assert not np.isnan(bound).any()
    infinite = np.isinf(actual)
    with np.errstate(invalid="ignore", over="ignore"):
        right = np.abs(actual - exact) <= bound * (1 + 1e-3) + TINY
        too_large = (np.sign(actual) == np.sign(exact)) & (np.abs(exact) + bound >= MAX / 4)
    good = np.where(infinite, too_large, right)
    assert good.all(), (actual[~good], exact[~good], bound[~good])
