"""Inputs at the steps at which they act."""

import numpy as np
import pytest

from train.vector_field.data import recordings
from train.vector_field.data.input_delays import delay_inputs, delay_rows, delays_of

RNG = np.random.default_rng(0)


def test_each_input_comes_later_within_its_episode():
    lengths, delays = (9, 4, 2), (3, 0)
    episodes = [(RNG.normal(size=(n, 1)), RNG.normal(size=(n, 2))) for n in lengths]
    data = recordings.join_episodes(episodes)
    delayed = delay_inputs(data, delays)
    for e, length in enumerate(lengths):
        for t in range(9):
            for k, delay in enumerate(delays):
                expected = data.u[e, max(t - delay, 0), k] if t < length else 0
                assert delayed.u[e, t, k] == expected
    np.testing.assert_array_equal(delayed.y, data.y)
    assert delay_inputs(data, ()) is data
    assert delay_inputs(data, (0,)) is data
    assert delay_inputs(data, (8, 0)) is not data
    with pytest.raises(ValueError, match="delay is 9, expected less than 9, the steps of the long"):
        delay_inputs(data, (0, 9))
    np.testing.assert_array_equal(delay_rows(data.u, (1, 1))[:, 1:], data.u[:, :-1])


def test_one_number_is_for_all_inputs():
    assert delays_of((), 3) == (0, 0, 0)
    assert delays_of((2,), 3) == (2, 2, 2)
    assert delays_of((2, 0, 1), 3) == (2, 0, 1)
    with pytest.raises(ValueError, match="delay has 2 numbers, expected 1 or 3"):
        delays_of((1, 2), 3)
    with pytest.raises(ValueError, match=r"delay has 2 numbers, expected 1$"):
        delays_of((1, 2), 1)
