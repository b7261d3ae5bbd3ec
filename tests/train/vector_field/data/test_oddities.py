"""What is unusual about recorded data is named."""

import numpy as np

from tests.train.vector_field.data.recording_files import U, Y
from train.vector_field.data.oddities import oddities, unusual_scales
from train.vector_field.data.recordings import join_episodes


def test_what_is_unusual_is_named():
    y, u = Y.astype(np.float32), U.astype(np.float32)
    data = lambda y, u: join_episodes(list(zip(y, u, strict=True)))
    assert oddities(data(y, u)) == []
    assert oddities(data(y, 0 * u)) == []  # nothing was put in
    still = y.copy()
    still[..., [1, 3]] = 7.0
    still[0, 5, 1] = np.nan
    (line,) = oddities(data(still, u))
    assert "y is constant in 2 of 4 channels (1, 3, counted from 0)" in line
    silent = y.copy()
    silent[..., 2] = np.nan
    (line,) = oddities(data(silent, u))
    assert "y has no values, all are NaN, in 1 of 4 channels (2, counted from 0)" in line
    (line,) = oddities(data(y[:1, :6].repeat(30, -1), u[:1, :6]))
    assert line.startswith("y has 120 channels and only 6 steps: give [E, T] of one channel")
    assert unusual_scales(data(y, u)) == oddities(data(1e6 * y, u)) == []
    (line,) = unusual_scales(data(1e6 * y, u))
    assert line.startswith("y has a standard deviation of")
    assert "rescale" in line
    (line,) = unusual_scales(data(y, 1e-6 * u))
    assert line.startswith("u has a standard deviation of")
    assert "rescale" in line
    (line,) = unusual_scales(data(y, u + 295))
    assert line.startswith("u has a mean of 295 beside a standard deviation of")
    assert "subtract" in line
    assert unusual_scales(data(y, 0 * u + 295)) == []  # a constant is one
    counts = data(np.round(abs(y)), u)
    (line,) = oddities(counts)
    assert "y holds counts" in line
    assert oddities(counts, "poisson") == []
    (line,) = oddities(data(20 * np.round(abs(y)), u), "poisson")
    assert line.startswith("all numbers of y are multiples of 20: if they are rates, divide")
