"""Fits to sessions of different channels: where they begin, and each session by itself.

The fit sees one record, in which an episode lacks the channels of other sessions. Everything after
it looks at one session at a time: its channels with the shared field are a model of their own.
"""

from collections.abc import Sequence

import numpy as np

from jaxrl.dynamics.state_space.fitting.sessions import (
    Session,
)
from jaxrl.dynamics.state_space.fitting.units import Units, scale_record
from train.vector_field.data.recordings import Data
from train.vector_field.data.sessions import longest_session, parts_of
from train.vector_field.recorded import baselines, selection, state_space
from train.vector_field.recorded.prediction_scores import Scores


def scaled_sessions(training: Data, units: Units) -> list[Session]:
    """The newest part of each session, in units; the longest session comes first."""
    assert training.sessions is not None
    sessions = []
    for s, part in enumerate(parts_of(training)):
        channels = training.sessions.channels(s)
        record = state_space.record_of(baselines.newest(part, selection.MOST_STEPS))
        own = Units(units.mean[channels], units.deviation[channels], units.input_size)
        sessions.append(Session(scale_record(record, own), channels))
    first = longest_session(training)
    return [sessions[first], *sessions[:first], *sessions[first + 1 :]]


def channels_of(data: Data, session: int) -> np.ndarray:
    """The places of a session's channels; all of data without sessions."""
    if data.sessions is None:
        return np.arange(data.y.shape[-1])
    return data.sessions.channels(session)


def mean_scores(scores: Sequence[Scores], sizes: Sequence[int]) -> Scores:
    """Scores of all sessions together, each weighted by its number of channels."""
    average = lambda numbers: np.average(np.stack(numbers), axis=0, weights=sizes)
    r2, coverage, gain = (average(x) for x in zip(*scores, strict=True))
    return Scores(r2, coverage, float(gain))
