"""Fits to sessions of different channels: where they begin, and each session by itself.

The fit sees one record, in which an episode lacks the channels of other sessions. Everything after
it looks at one session at a time: its channels with the shared field are a model of their own.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxrl.dynamics.state_space.fitting.sessions import (
    Session,
)
from jaxrl.dynamics.state_space.fitting.units import Units, scale_record
from train.vector_field.data.recordings import Data
from train.vector_field.data.sessions import longest_session, parts_of
from train.vector_field.recorded import baselines, state_space
from train.vector_field.recorded.choices import trials
from train.vector_field.recorded.prediction_scores import Scores, Weights


def scaled_sessions(training: Data, units: Units) -> list[Session]:
    """The newest part of each session, in units; the longest session comes first."""
    assert training.sessions is not None
    sessions = []
    for s, part in enumerate(parts_of(training)):
        channels = training.sessions.channels(s)
        record = state_space.record_of(baselines.newest(part, trials.MOST_STEPS))
        own = units._replace(mean=units.mean[channels], deviation=units.deviation[channels])
        sessions.append(Session(scale_record(record, own), channels))
    first = longest_session(training)
    return [sessions[first], *sessions[:first], *sessions[first + 1 :]]


def channels_of(data: Data, session: int) -> np.ndarray:
    """The places of a session's channels; all of data without sessions."""
    if data.sessions is None:
        return np.arange(data.y.shape[-1])
    return data.sessions.channels(session)


def pooled_scores(scores: Sequence[Scores]) -> Scores:
    """The scores of all sessions together, every forecast value alike; those of the only one.

    R² is that of all squares, in units of the variance of each channel in the training data: the
    mean of the sessions' R² would be ruled by one of a few forecasts, whose R² says nothing.
    """
    if len(scores) == 1:
        return scores[0]
    totals: list[Any] = [sum(x) for x in zip(*(x.weights for x in scores), strict=True)]
    weights = Weights(*totals)
    has_spread = weights.spread > 0
    r2 = 1 - weights.error / np.where(has_spread, weights.spread, 1)
    coverage = _average([(x.coverage, x.weights.observed) for x in scores])
    gain = float(_average([(x.gain, x.weights.values) for x in scores]))
    return Scores(np.where(has_spread, r2, np.nan), coverage, gain, weights)


def _average(weighted: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """The mean of numbers `[...]` with their weights; NaN where all weights are 0."""
    numbers, weights = (np.stack(x) for x in zip(*weighted, strict=True))
    total = weights.sum(0)
    sums = np.where(weights > 0, numbers * weights, 0).sum(0)
    return np.where(total > 0, sums / np.where(total > 0, total, 1), np.nan)
