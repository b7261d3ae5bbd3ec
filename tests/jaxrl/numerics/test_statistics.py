"""Intervals against equations, the central limit theorem, and samples of known distributions."""

import numpy as np
import pytest
from scipy import stats

from jaxrl.numerics import statistics


def test_ends_of_wilson_intervals_solve_the_score_equation():
    """(p̂ - p)² = z² p (1 - p) / n, a quadratic equation in p."""
    for successes, count in [(0, 10), (8, 10), (10, 10), (936, 1000), (1, 3)]:
        rate, weight = successes / count, 1.959964**2 / count
        ends = np.sort(np.roots([1 + weight, -2 * rate - weight, rate**2]))
        np.testing.assert_allclose(statistics.wilson(successes, count), ends, atol=1e-6)


def test_wilson_interval_holds_the_rate_it_is_about():
    """At 0 and 1 too, where rounding would put an end of it beyond."""
    for count in range(1, 60):
        for successes in (0, count // 2, count):
            low, high = statistics.wilson(successes, count)
            assert 0 <= low <= successes / count <= high <= 1


def test_summary_of_a_known_sample():
    values = np.random.default_rng(0).normal(5.0, 2.0, size=400)
    s = statistics.summary(values)
    np.testing.assert_allclose(
        (s.mean, s.median, s.max), (values.mean(), np.median(values), values.max())
    )
    half_width = 1.96 * values.std() / 20  # the central limit theorem's
    np.testing.assert_allclose((s.mean - s.low, s.high - s.mean), half_width, rtol=0.15)


def test_intervals_of_means_are_those_of_resamples_drawn_one_by_one():
    """More values than are drawn at once, too."""
    for count in (2, 30, statistics.AT_ONCE // 1_500):
        values = np.random.default_rng(count).normal(size=count)
        rng = np.random.default_rng(0)
        means = [rng.choice(values, count).mean() for _ in range(2_000)]
        low, high = np.percentile(means, [2.5, 97.5])
        s = statistics.summary(values)
        np.testing.assert_allclose((s.low, s.high), (low, high), rtol=0, atol=1e-12)


def test_no_interval_is_known_where_a_value_is_not():
    np.testing.assert_equal(statistics.summary(np.array([1.0, np.nan, 2.0])), (*[np.nan] * 5, 3))


@pytest.mark.parametrize("bad", [(-1, 5), (6, 5), (0, 0)])
def test_impossible_rates_are_refused(bad):
    with pytest.raises(ValueError, match="is not a rate"):
        statistics.wilson(*bad)


def test_one_value_has_no_interval():
    with pytest.raises(ValueError, match="at least two"):
        statistics.summary(np.array([1.0]))


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (4, 1), (10, 1), (5, 26)])
def test_the_interquartile_mean_is_the_trimmed_mean_of_scipy(shape):
    scores = np.random.default_rng(1).normal(size=shape)
    expected = stats.trim_mean(scores.ravel(), 0.25)
    np.testing.assert_allclose(statistics.interquartile_mean(scores), expected)


def test_one_failed_seed_of_ten_does_not_move_it():
    scores = np.array([500.0] * 9 + [10.0])
    assert statistics.interquartile_mean(scores) == 500.0


def test_intervals_of_seeds_hold_the_truth_as_often_as_they_say():
    """Ten seeds of a task: 95 % wanted; the percentile bootstrap of ten is known to fall short."""
    rng = np.random.default_rng(2)
    samples = rng.normal(3.0, 1.0, (400, 10, 1))
    ends = [statistics.stratified_interval(x, resamples=300) for x in samples]
    assert 0.84 < np.mean([low <= 3.0 <= high for low, high in ends]) < 0.97


def test_tasks_are_drawn_apart_from_each_other():
    """Tasks of very different scale: mixing them would widen the interval a hundredfold."""
    scores = np.random.default_rng(3).normal(size=(10, 2)) * 0.1 + [0.0, 100.0]
    low, high = statistics.stratified_interval(scores)
    assert high - low < 1.0


STATISTICS = (
    statistics.interquartile_mean,
    statistics.median_of_tasks,
    statistics.optimality_gap,
)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_score_that_is_not_known_is_not_the_best(statistic):
    scores = np.array([[1.0], [np.nan], [3.0], [4.0]])
    assert np.isnan(statistic(scores))
    seed = 3  # whose one sample leaves the unknown one out
    sample = statistics.bootstrap_samples(scores, 1, np.random.default_rng(seed))
    assert not np.isnan(sample).any()
    assert np.isnan(statistics.stratified_interval(scores, 1, seed, statistic)).all()


def test_a_run_that_failed_takes_the_interval_to_minus_infinity():
    """One sample of 27 is of the best run alone, more than the 2.5 % above the interval."""
    scores = np.array([[-np.inf], [2.0], [3.0]])
    assert statistics.stratified_interval(scores, statistic=np.mean) == (-np.inf, 3.0)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_no_scores_are_refused(statistic):
    with pytest.raises(ValueError, match="are none; give one at least"):
        statistic(np.zeros((0, 1)))


def test_one_seed_has_no_interval():
    for scores in (np.zeros((1, 5)), np.zeros(9), np.zeros((3, 0))):
        with pytest.raises(ValueError, match="have no interval; give"):
            statistics.stratified_interval(scores)


# A fixed example, and what rliable 1.2.0 says of it (intervals with 50,000 resamples).
FIRST = np.array(  # [5 runs, 3 tasks]
    [
        [0.31, 1.42, 0.08],
        [0.55, 1.10, 0.21],
        [0.47, 0.95, 0.21],
        [0.29, 1.61, 0.02],
        [0.71, 1.42, 0.15],
    ]
)
SECOND = np.array(  # [4 runs, 3 tasks]
    [
        [0.33, 0.95, 0.11],
        [0.12, 1.10, 0.09],
        [0.47, 0.70, 0.30],
        [0.25, 1.20, 0.02],
    ]
)


@pytest.mark.parametrize(
    ("scores", "mean", "median", "gap"),
    [(FIRST, 8 / 15, 0.466, 0.47), (SECOND, 0.36166666666666664, 0.2925, 0.555)],
)
def test_aggregates_of_an_example_are_those_of_rliable(scores, mean, median, gap):
    assert statistics.interquartile_mean(scores) == pytest.approx(mean)
    assert statistics.median_of_tasks(scores) == pytest.approx(median)
    assert statistics.optimality_gap(scores) == pytest.approx(gap)


def test_the_target_of_the_optimality_gap():
    assert statistics.optimality_gap(FIRST, target=0.5) == pytest.approx(0.15066666666666667)


@pytest.mark.parametrize(
    ("statistic", "low", "high"),
    [
        (statistics.interquartile_mean, 0.45555556, 0.65),
        (statistics.median_of_tasks, 0.334, 0.598),
        (statistics.optimality_gap, 0.418, 0.51933333),
    ],
)
def test_intervals_of_an_example_are_those_of_rliable(statistic, low, high):
    interval = statistics.stratified_interval(FIRST, resamples=10_000, statistic=statistic)
    np.testing.assert_allclose(interval, (low, high), atol=0.02)
