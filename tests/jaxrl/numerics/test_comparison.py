"""Comparisons against their formulas written out as loops, SciPy, and figures of rliable."""

import itertools

import numpy as np
import pytest
from scipy import stats

from jaxrl.numerics import comparison
from tests.jaxrl.numerics.test_statistics import FIRST, SECOND


def improvement_by_pairs(x: list[list[float]], y: list[list[float]]) -> float:
    """P(X > Y) + ½ P(X = Y) a task, over all pairs of runs, then the mean over tasks."""
    task_scores = []
    for k in range(len(x[0])):
        won = 0.0
        for a in x:
            for b in y:
                won += 1.0 if a[k] > b[k] else 0.5 if a[k] == b[k] else 0.0
        task_scores.append(won / (len(x) * len(y)))
    return sum(task_scores) / len(task_scores)


def test_an_improvement_small_enough_for_pencil_and_paper():
    """There are six pairs: 3 beats 1, 2 and 2 beats 1; 2 ties with 2: 3½ of six."""
    assert comparison.probability_of_improvement([[2], [3], [1]], [[1], [2]]) == 4 / 6
    assert comparison.probability_of_improvement([[2], [3], [0]], [[1], [2]]) == 3.5 / 6


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 2), (3, 7, 5)])
def test_improvement_is_the_share_of_pairs(shape):
    runs, others, tasks = shape
    rng = np.random.default_rng(sum(shape))
    x, y = rng.integers(0, 5, (runs, tasks)), rng.integers(0, 5, (others, tasks))  # with ties
    probability = comparison.probability_of_improvement(x, y)
    assert probability == pytest.approx(improvement_by_pairs(x.tolist(), y.tolist()))
    u = [stats.mannwhitneyu(a, b).statistic for a, b in zip(x.T, y.T, strict=True)]
    assert probability == pytest.approx(np.mean(u) / (runs * others))


def test_improvement_of_published_examples():
    x, y = [[1, 2], [2, 2], [1, 1], [2, 1]], [[1, 1], [2, 2], [3, 3]]
    assert comparison.probability_of_improvement(x, y) == pytest.approx(1 / 3)
    assert comparison.probability_of_improvement(FIRST, SECOND) == pytest.approx(0.7)
    interval = comparison.improvement_interval(FIRST, SECOND, resamples=10_000)
    np.testing.assert_allclose(interval, (0.49166667, 0.88333333), atol=0.02)


def test_the_interval_is_that_of_all_equally_likely_resamples():
    """Two runs of each: all 16 can be written down, and the ends are their extremes."""
    x, y = [[1.0], [4.0]], [[2.0], [3.0]]
    outcomes = [
        improvement_by_pairs([x[i], x[j]], [y[k], y[m]])
        for i, j, k, m in itertools.product((0, 1), repeat=4)
    ]
    low, high = comparison.improvement_interval(np.array(x), np.array(y))
    assert (low, high) == (min(outcomes), max(outcomes)) == (0, 1)


def test_a_failed_run_loses_to_every_other():
    x, y = [[-np.inf], [5.0]], [[1.0], [-np.inf]]
    assert comparison.probability_of_improvement(x, y) == (0 + 0.5 + 1 + 1) / 4
    low, high = comparison.improvement_interval(x, y)
    assert 0 <= low <= high <= 1


def test_swapping_both_gives_the_other_side():
    forward = comparison.probability_of_improvement(FIRST, SECOND)
    backward = comparison.probability_of_improvement(SECOND, FIRST)
    assert forward + backward == pytest.approx(1)


THRESHOLDS = np.array([0, 0.1, 0.21, 0.5, 1, 1.42, 2])


def test_profiles_of_an_example_are_those_of_rliable():
    """A score that equals the threshold, as 0.21 and 1.42 do, is not above it."""
    profile = comparison.performance_profile(FIRST, THRESHOLDS)
    expected = np.array([15, 13, 10, 7, 4, 1, 0]) / 15
    np.testing.assert_allclose(profile, expected)
    low, high = comparison.profile_band(FIRST, THRESHOLDS)
    third = [11 / 15, 10 / 15, 5 / 15, 2 / 15, 0, 0], [1, 10 / 15, 9 / 15, 5 / 15, 3 / 15, 0]
    np.testing.assert_allclose(low, [1, *third[0]], atol=1e-9)
    np.testing.assert_allclose(high, [1, *third[1]], atol=1e-9)


def test_profiles_of_averages_are_those_of_rliable():
    profile = comparison.performance_profile(FIRST, THRESHOLDS, averaged=True)
    np.testing.assert_allclose(profile, np.array([3, 3, 2, 1, 1, 0, 0]) / 3)
    low, high = comparison.profile_band(FIRST, THRESHOLDS, averaged=True)
    np.testing.assert_allclose(low, np.array([3, 2, 2, 1, 1, 0, 0]) / 3)
    np.testing.assert_allclose(high, np.array([3, 3, 2, 2, 1, 1, 0]) / 3)


def test_a_profile_is_a_count():
    scores, thresholds = np.array([[1.0, -np.inf], [3.0, 2.0]]), [-9.0, 0.0, 1.0, 2.5, 3.0]
    expected = [sum(x > t for row in scores for x in row) / 4 for t in thresholds]
    np.testing.assert_array_equal(comparison.performance_profile(scores, thresholds), expected)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((2, 3)), np.zeros((2, 4)), "x has 3 tasks and y 4"),
        (np.zeros(3), np.zeros((2, 3)), r"x has shape \[3\]; give \[runs, tasks\]"),
        (np.zeros((2, 3)), np.zeros((0, 3)), r"y has shape \[0, 3\]"),
        (np.array([[np.nan]]), np.zeros((2, 1)), "x has NaN"),
    ],
)
def test_what_cannot_be_compared_is_refused(x, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        comparison.probability_of_improvement(x, y)
    assert "\n" not in str(caught.value)


def test_one_run_has_no_interval_of_comparison():
    for x, y in ((np.zeros((1, 3)), np.zeros((2, 3))), (np.zeros((2, 3)), np.zeros((1, 3)))):
        with pytest.raises(ValueError, match="have no interval; give"):
            comparison.improvement_interval(x, y)
    with pytest.raises(ValueError, match="have no interval; give"):
        comparison.profile_band(np.zeros((1, 3)), THRESHOLDS)
