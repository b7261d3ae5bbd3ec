"""Pairs of recordings against a loop over all pairs of times."""

import numpy as np
import pytest

from jaxrl.spectral import laplacian
from jaxrl.spectral.recorded_pairs import pair_law, transitions_left


def slow_law(state, next_state, ends, discount, num_states):
    table, start = np.zeros((num_states, num_states)), 0
    for stop in [*(np.flatnonzero(ends[:-1]) + 1), len(state)]:
        for i in range(start, stop):
            n = stop - i
            law = laplacian.offset_law(n, discount)[n - 1]
            for k in range(1, n + 1):
                table[state[i], next_state[i + k - 1]] += law[k - 1]
        start = stop
    return table / table.sum()


@pytest.mark.parametrize("discount", [0.0, 0.4, 0.9, 1.0])
def test_every_pair_of_times_counts_within_its_trajectory(discount):
    rng = np.random.default_rng(0)
    state, next_state = rng.integers(0, 5, (2, 60))
    ends = rng.random(60) < 0.15
    left = transitions_left(ends)
    assert left[-1] == 1
    assert (left[ends] == 1).all()
    assert (left[:-1][~ends[:-1]] == left[1:][~ends[:-1]] + 1).all()
    law = pair_law(state, next_state, left, discount, 5)
    np.testing.assert_allclose(law, slow_law(state, next_state, ends, discount, 5), atol=1e-11)
