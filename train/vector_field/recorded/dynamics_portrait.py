"""The phase portrait of a model of recorded data: with no input, or the usual one, and at extremes.

Letters: E episodes, T steps, N states, d dimensions, m inputs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.phase_portrait.influence import Influence, influences
from jaxrl.dynamics.phase_portrait.portrait import Portrait, portrait_of
from jaxrl.dynamics.phase_portrait.summary import summary
from jaxrl.dynamics.state_space.model import Params, StateSpace, step
from train.vector_field.data.recordings import Data
from train.vector_field.data.step_time import StepTime
from train.vector_field.pictures.portrait_picture import duration

MOST_STATES = 5_000
"""Filtered states, evenly spaced, that say where data have been."""


class Portraits(NamedTuple):
    """What a model does under constant inputs."""

    move: Callable[[jax.Array, jax.Array], jax.Array]  # (z [d], u [m]) -> the expected next state
    usual: Portrait  # without input, or with the mean one where it is never 0
    influences: tuple[Influence, ...]  # of each component of the input


def portraits_of(model: StateSpace, params: Params, data: Data, beliefs: Belief) -> Portraits:
    """The portraits in the region of the filtered states `[E, T, d]` of `data`."""
    move = lambda z, u: step(model, params, z, u)
    states = visited_states(data, np.asarray(beliefs.mean))
    inputs = data.u[np.arange(data.u.shape[1]) < data.lengths[:, None]]  # [N, m]
    never_rests = (np.sign(inputs.min(0)) == np.sign(inputs.max(0))) & (inputs.min(0) != 0)
    base = np.where(never_rests, inputs.mean(0, dtype=float), 0.0)
    usual = portrait_of(move, states, base)
    return Portraits(move, usual, influences(move, states, inputs, usual))


def visited_states(data: Data, means: np.ndarray) -> np.ndarray:
    """Some of the states `[N, d]`, without padding."""
    states = means[np.arange(means.shape[1]) < data.lengths[:, None]]
    return states[:: -(-len(states) // MOST_STATES)]


def as_json(portraits: Portraits, time: StepTime) -> dict[str, Any]:
    """Describes them as JSON can, times in steps and, where it is known, in the unit of `time`."""
    length = None if time == StepTime() else time.length
    in_words = partial(duration, time)
    return summary(portraits.usual, portraits.influences, length, in_words)
