"""The sessions of the bench share no channel and no episode, and a short one is cut."""

import numpy as np
import pytest

from bench import sessions
from tests.recordings.systems import record


@pytest.mark.parametrize(("division", "count"), [("even", 5), ("short", 2)])
def test_a_recording_is_cut_into_two_sessions(division, count):
    recording = record("linear", 0)
    first, second = sessions.cut(recording, division)
    assert len(second.episodes) == count
    np.testing.assert_array_equal(np.concatenate([first.episodes, second.episodes]), np.arange(10))
    assert sorted([*first.channels, *second.channels]) == [*range(12)]
    whole = recording.lengths[second.episodes]
    assert second.lengths[-1] == whole[-1]  # the held-out one
    expected = whole[:-1] if division == "even" else np.minimum(whole[:-1], 150)
    np.testing.assert_array_equal(second.lengths[:-1], expected)
    np.testing.assert_array_equal(first.lengths, recording.lengths[first.episodes])
