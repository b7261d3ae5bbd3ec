"""What a constant input does to a phase portrait: the same analysis at several inputs, compared.

Letters: T steps, N visited states, d dimensions of the state, m inputs, K constant inputs.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxrl.dynamics.phase_portrait.attractors import Effort
from jaxrl.dynamics.phase_portrait.fixed_points import Step
from jaxrl.dynamics.phase_portrait.portrait import Portrait, portrait_of

RARE = 0.01
"""Attractors to which a smaller share of the visited states comes are not compared."""


class Attractors(NamedTuple):
    """How many of each kind there are. A stable node may become a spiral: nothing is reborn."""

    stable_points: int
    cycles: int
    aperiodic: int


class Change(NamedTuple):
    """The attractors differ under two inputs: there is a bifurcation between them.

    Or, where a basin merely shrinks, one of them takes none of the visited states any more.
    """

    low: np.ndarray  # [m]
    high: np.ndarray  # [m]
    before: Attractors  # under `low`
    after: Attractors  # under `high`


class Influence(NamedTuple):
    """What one component of the input does, the others held."""

    component: int
    portraits: tuple[Portrait, ...]  # from the lowest to the highest value of the component
    changes: tuple[Change, ...]  # between neighbours among them


def attractors_of(portrait: Portrait) -> Attractors:
    """The attractors that visited states come to, counted."""
    stable = [p for p in portrait.fixed_points if p.is_attracting and p.share >= RARE]
    cycles = [c for c in portrait.cycles if c.share >= RARE]
    aperiodic = portrait.aperiodic is not None and portrait.aperiodic.share >= RARE
    return Attractors(len(stable), len(cycles), int(aperiodic))


def changes_between(portraits: Sequence[Portrait]) -> tuple[Change, ...]:
    """Where the attractors of neighbouring portraits differ."""
    counts = [attractors_of(portrait) for portrait in portraits]
    return tuple(
        Change(portraits[i].inputs, portraits[i + 1].inputs, counts[i], counts[i + 1])
        for i in range(len(portraits) - 1)
        if counts[i] != counts[i + 1]
    )


def narrow(
    step: Step, states: Any, change: Change, halvings: int, effort: Effort | None = None
) -> Change:
    """The same change between inputs that lie closer together, by so many halvings.

    Where there are several changes between the two, it is one of them, and `after` may then be what
    lies between.
    """
    for _ in range(halvings):
        middle = (change.low + change.high) / 2
        counts = attractors_of(portrait_of(step, states, middle, effort))
        if counts == change.before:
            change = change._replace(low=middle)
        else:
            change = change._replace(high=middle, after=counts)
    return change


def influences(
    step: Step,
    states: Any,
    record: Any,
    base: Portrait,
    effort: Effort | None = None,
    halvings: int = 4,
) -> tuple[Influence, ...]:
    """What each component of the inputs of a record `[T, m]` does, that is not constant in it.

    It is held at its smallest and its largest value, the others at those of `base`, the portrait
    between the two. Changes are narrowed by `halvings`, each of which costs a portrait. Raises
    ValueError for a record of another shape or with values not finite.
    """
    record = np.asarray(record, float)
    if record.ndim != 2 or record.shape[1] != len(base.inputs) or not np.isfinite(record).all():
        raise ValueError(
            f"the record of inputs has the shape {record.shape}; expected finite numbers "
            f"[T, {len(base.inputs)}], as the portrait has inputs"
        )
    if not len(record):
        raise ValueError("the record of inputs is empty; expected a step or more")
    varies = np.flatnonzero(record.max(0) > record.min(0))
    coarse_influences = tuple(
        _influence(step, states, record[:, i], i, base, effort) for i in varies.tolist()
    )
    narrow_change = lambda change: narrow(step, states, change, halvings, effort)
    return tuple(
        x._replace(changes=tuple(map(narrow_change, x.changes))) for x in coarse_influences
    )


def _influence(
    step: Step, states: Any, values: np.ndarray, component: int, base: Portrait, effort: Any
) -> Influence:
    middle = base.inputs[component]
    ends = [x for x in (values.min(), values.max()) if abs(x - middle) > 1e-6 * np.ptp(values)]
    portraits = [base]
    for value in ends:
        inputs = base.inputs.copy()
        inputs[component] = value
        portraits.append(portrait_of(step, states, inputs, effort))
    portraits.sort(key=lambda portrait: portrait.inputs[component])
    return Influence(component, tuple(portraits), changes_between(portraits))
