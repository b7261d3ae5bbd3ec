"""Members of a sweep that have ended before the others of their batch, and stay as they were."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxrl.numerics.trees import take
from jaxrl.types import PyTree, RunState
from train.host.compilation.compiled import Report
from train.host.files.rows import Counters
from train.host.machine import devices
from train.host.training import Config


def places_of_ended(settings: Config, counters: Counters) -> list[int]:
    """The places of the members that have had all episodes of their budget."""
    is_over = lambda episodes: settings.fraction_done(0, [episodes], 1) >= 1
    return [s for s, episodes in enumerate(counters.episodes) if is_over(episodes)]


def copies(state: RunState, places: Sequence[int]) -> dict[int, PyTree]:
    """The states of some of M members, by their places, on the host."""
    return {s: jax.device_get(take(state, s)) for s in places}


def put_back(state: RunState, copies: dict[int, PyTree], like: RunState) -> RunState:
    """The state of M members, some of them as they were; it is placed as `like`, and consumed."""
    for place, member in copies.items():
        state = _replace_member(state, np.int32(place), member)
    return devices.place_like(state, like)


@partial(jax.jit, donate_argnums=0)
def _replace_member(state: PyTree, place: jax.Array, member: PyTree) -> PyTree:
    return jax.tree.map(lambda x, own: x.at[place].set(own), state, member)


def report_without(report: Report, places: Sequence[int]) -> Report:
    """The report `[U, M]` of a chunk in which some members played no episode that counts."""
    goes_on = np.ones(report.finite.shape[1], bool)
    goes_on[list(places)] = False
    metrics: Any = report.metrics
    metrics = metrics._replace(episodes=np.where(goes_on, metrics.episodes, 0))
    return report._replace(metrics=metrics, finite=report.finite | ~goes_on)
