"""Times of rows on an even grid."""

import numpy as np
import pytest

from train.vector_field.data.files.content import rows_on_grid


@pytest.mark.parametrize("start", [0.0, 3600.0, 1.7e9])
def test_rounded_times_are_on_the_grid_that_was_rounded(start):
    """Times of 30 Hz, to 0.01 s, go on by 0.03, 0.04 and, where rows are missing, more."""
    for lost in ([], range(100, 111), [2], range(3, 290)):
        places = np.delete(np.arange(600), lost)
        grid, step = rows_on_grid("t", start + np.round(places / 30, 2))
        np.testing.assert_array_equal(grid, places)
        assert step == pytest.approx(1 / 30, rel=2e-3)


def test_the_last_digit_of_times_may_be_a_large_part_of_a_step():
    """Times of 60 Hz, to 0.01 s: 0, 0.02, 0.03, 0.05 are up to 0.3 steps beside the grid."""
    grid, step = rows_on_grid("t", np.round(7 + np.arange(600) / 60, 2))
    np.testing.assert_array_equal(grid, np.arange(600))
    assert step == pytest.approx(1 / 60, rel=2e-3)


@pytest.mark.parametrize(
    "times",
    [
        np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, 200)),
        np.r_[0:20, 20.5:40.5],
        np.sort(np.random.default_rng(0).uniform(0, 50, 300)),
        np.arange(300) / 60 + np.random.default_rng(0).uniform(-0.005, 0.005, 300),
        np.arange(100) ** 1.1,
        np.round(np.r_[0:3, 590:600] / 30, 2),  # whose gap is of no sure length
    ],
)
def test_uneven_times_are_refused(times):
    with pytest.raises(ValueError, match=r"t has uneven steps, .*: interpolate to even ones"):
        rows_on_grid("t", times)
