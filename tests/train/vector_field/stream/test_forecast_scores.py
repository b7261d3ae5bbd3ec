"""R² of the next observation while samples come, against sums of Python's own floats."""

import numpy as np
import pytest

from train.vector_field.stream.forecast_scores import MEMORY, ForecastScores


@pytest.mark.parametrize("offset", [0.0, 2e4])
def test_r2_is_that_of_weighted_sums_whatever_the_offset(offset):
    rng = np.random.default_rng(0)
    y = (offset + rng.normal(size=(300, 2))).astype(np.float32)
    y[::7, 1] = np.nan
    expected = (np.nan_to_num(y, nan=offset) + 0.5 * rng.normal(size=y.shape)).astype(np.float32)
    scores = ForecastScores(2)
    for now, guess in zip(y, expected, strict=True):
        scores.add(now, guess)
    by_channel = []
    for values, guesses in zip(y.T.astype(float), expected.T.astype(float), strict=True):
        is_observed = ~np.isnan(values)
        values, guesses = values[is_observed], guesses[is_observed]
        weights = (1 - 1 / MEMORY) ** np.arange(len(values))[::-1]
        mean = np.average(values, weights=weights)
        spread = np.sum(weights * (values - mean) ** 2)
        by_channel.append(1 - np.sum(weights * (values - guesses) ** 2) / spread)
    assert scores.r2 == pytest.approx(np.mean(by_channel), abs=1e-4)
