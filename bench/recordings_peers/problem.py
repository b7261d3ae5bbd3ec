"""What a peer is given and gives back, and how it chooses what its method leaves open."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from train.vector_field.data import episodes
from train.vector_field.data.recordings import Data
from train.vector_field.recorded.prediction_scores import Forecaster, score

AHEAD = 30
SHARE = 0.2
"""Held out, as by default; of the training data, to choose by."""
CHOSEN_BY = (1, 10, 30)
"""Steps ahead whose mean R² decides."""
Candidate = TypeVar("Candidate", bound=Any)


class Problem(NamedTuple):
    """What a model is given."""

    file: Path  # as `train.vector_field --data` reads it
    training: Data
    held_out: Data
    is_count: np.ndarray  # bool [n]
    dims: int  # d of the truth, for models that do not find it out


class Fitted(NamedTuple):
    """A peer after its fit."""

    forecaster: Forecaster
    settings: dict[str, Any]  # what was chosen, as JSON has it


def choose(
    problem: Problem,
    first: Candidate,
    choices: Mapping[str, Sequence[Any]],
    fit: Callable[[Problem, Candidate], Forecaster],
) -> Candidate:
    """The settings that foresee the last fifth of the training data best, fitted to the rest.

    From `first` on, a NamedTuple, one field after the other takes the best of its choices.
    Raises ValueError if no settings have a finite score.
    """
    training, rest = episodes.split(problem.training, SHARE, AHEAD + 30)
    inner = problem._replace(training=training, held_out=rest)

    @lru_cache(None)
    def mean_r2(settings: Candidate) -> float:
        scores = score(training, rest, fit(inner, settings), problem.is_count, AHEAD)
        return float(np.nan_to_num(np.mean(scores.r2[list(CHOSEN_BY)]), nan=-np.inf))

    best = first
    for field, values in choices.items():
        best = max((best._replace(**{field: x}) for x in values), key=mean_r2)
    if not np.isfinite(mean_r2(best)):
        raise ValueError(f"no settings have a finite score, the last of them {best}")
    return best
