"""How many times fewer samples policies need, on records that are known."""

from dataclasses import replace

import numpy as np
import pytest

from train.vector_field.config import Config
from train.vector_field.experiment.comparisons import comparisons, median_interval, samples_ratio


def test_experiments_are_compared_up_to_their_end():
    """Which may come before the budget is used up, and for one policy sooner than for another."""
    config = Config(policies=("myopic", "off"))
    config = replace(config, run=replace(config.run, num_seeds=1, total_steps=2_000))
    errors, stops = [(0.9, 0.8), (0.5, 0.5), (0.3, 0.5), (0.2, 0.5)], [0, 100, 100, 100]
    rows = [
        {
            "seed": 0,
            "steps": 50 * (i + 1),
            "agent": {"error": [errors[i]], "stopped_at": [[200 * (i == 3), stops[i]]]},
        }
        for i in range(4)
    ]
    ratios = lambda config, at=2_000: [x["ratio"] for x in comparisons(rows, config, at)]
    assert ratios(config) == [2, 0]  # 200 samples of `off` by 100
    assert ratios(replace(config, stop_gain=0.1)) == [1, 0]  # 100 by 100
    assert ratios(config, at=100) == [1, 1]
    # a row of a second seed that is lost is no row of the first one either
    config = replace(config, run=replace(config.run, num_seeds=2))
    lost = [*rows, *(row | {"seed": 1} for row in rows if row["steps"] != 100)]
    whole = [row for row in lost if row["steps"] != 100]
    assert comparisons(lost, config, 2_000) == comparisons(whole, config, 2_000)


def test_samples_ratio_is_of_the_first_sample_as_good_as_the_baseline():
    steps = np.array([50, 100, 150, 200])
    baseline = np.array([[1.0, 0.8, 0.6, 0.5], [1.0, 0.9, 0.9, 0.7], [1.0, 0.5, 0.4, 0.3]])
    errors = np.array([[0.7, 0.5, 0.4, 0.3], [1.0, 0.9, 0.8, 0.7], [0.9, 0.8, 0.7, 0.6]])
    ratios = samples_ratio(steps, errors, baseline, at=200)
    np.testing.assert_allclose(ratios, [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(samples_ratio(steps, errors, baseline, at=210), ratios)
    ratios = samples_ratio(steps, errors, baseline, at=150)
    np.testing.assert_allclose(ratios, [1.5, 1.5, 0.0])


@pytest.mark.parametrize(("number", "low", "high"), [(4, 1, 4), (6, 1, 6), (9, 2, 8), (10, 2, 9)])
def test_intervals_of_medians_are_those_of_the_tables(number, low, high):
    """Which order statistics bound a median with 95 % confidence; (20: the 6th and the 15th)."""
    values = np.random.default_rng(0).permutation(np.arange(1.0, number + 1))
    interval = median_interval(values)
    assert interval == ((number + 1) / 2, low, high)
    assert median_interval(np.arange(1.0, 21.0))[1:] == (6, 15)
