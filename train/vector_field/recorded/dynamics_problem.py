"""The model of recorded data, what it is fitted to and what is held out; of each session, too.

Letters: S starts.
"""

import logging
from functools import partial
from typing import NamedTuple

from jaxrl.dynamics.state_space.filter import Prediction
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting.sessions import session_model
from jaxrl.dynamics.state_space.model import Params, StateSpace, check
from train.host.machine.progress import print_line
from train.host.numbers import quantity
from train.vector_field.config import Config
from train.vector_field.data import episodes
from train.vector_field.data.oddities import oddities
from train.vector_field.data.reading import read_data
from train.vector_field.data.recordings import Data
from train.vector_field.data.sessions import longest_session, map_sessions, parts_of
from train.vector_field.experiment.held_out import AHEAD, SKIPPED
from train.vector_field.recorded import (
    session_fits,
    state_space,
)
from train.vector_field.recorded.choices import delays, selection

_log = logging.getLogger(__name__)


class Agent(NamedTuple):
    """What a run learns."""

    params: Params  # of the start of the smallest loss, in the units of the data
    fits: fits.Fit  # [S, ...], in units of their spread


class Problem(NamedTuple):
    """What is fitted, and to what."""

    model: StateSpace
    training: Data
    held_out: Data


def chosen_by(training: Data) -> Data:
    """The data by which a model is chosen: the longest session, where there are several."""
    return training if training.sessions is None else parts_of(training)[longest_session(training)]


def tell_channels(config: Config, data: Data) -> None:
    """Says which channels hold counts, and what is unusual about the data."""
    is_count = state_space.count_channels(data, config.env.noise)
    counts, numbers = int(is_count.sum()), int((~is_count).sum())
    kinds = [f"{quantity(counts, 'channels')} of counts"] * bool(counts)
    kinds += [f"{quantity(numbers, 'channels')} of numbers"] * bool(numbers)
    print_line(f"{', '.join(config.data)}: {' and '.join(kinds)}; --env.noise says otherwise")
    names = [", ".join(config.data)] if data.sessions is None else data.sessions.names
    for name, part in zip(names, parts_of(data), strict=True):
        is_decided = counts or config.env.noise == "auto"
        for oddity in oddities(part, "poisson" if is_decided else "gaussian"):
            _log.warning("%s: %s", name, oddity)


def split(config: Config, data: Data) -> tuple[Data, Data]:
    """Training data and held-out data, of each session; raises ValueError unless these can be
    scored."""

    def split_part(data: Data) -> tuple[Data, Data]:
        training, held_out = episodes.split(data, config.validation_share, SKIPPED + AHEAD + 1)
        episodes.refuse_unscored(held_out, AHEAD)
        return training, held_out

    training, held_out = map_sessions(split_part, data)
    return training, held_out


def problem_of(config: Config, data: Data | None = None) -> Problem:
    """The model and the data, which are read if they are not given.

    Raises ValueError for what was left open, and for unusable files.
    """
    if selection.is_open(config) or delays.is_open(config):
        raise ValueError(
            "state_space.dims, field, prior, steps and delay are chosen by the data first, where "
            "they are 0, auto or empty: a sweep varies other values alone, as it chooses once for "
            "all members; in Python call dynamics_fit.complete(config)"
        )
    if data is None:
        data = read_data(config)
    training, held_out = split(config, data)
    is_count = state_space.count_channels(data, config.env.noise)
    model = state_space.make_model(config.state_space, is_count, data.u.shape[-1])
    check(model)
    return Problem(model, training, held_out)


def session_problems(problem: Problem) -> list[Problem]:
    """The problem of each session by itself; the problem itself where there are none."""
    parts = zip(parts_of(problem.training), parts_of(problem.held_out), strict=True)
    channels = partial(session_fits.channels_of, problem.training)
    return [
        Problem(session_model(problem.model, channels(s)), *training_and_held_out)
        for s, training_and_held_out in enumerate(parts)
    ]


def prediction_of(config: Config) -> Prediction:
    """How its filter predicts."""
    return config.state_space.fit.objective.prediction
