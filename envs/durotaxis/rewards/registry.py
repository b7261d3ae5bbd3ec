"""Rewards by name: a set is chosen once, statically; its weights are numbers that may be traced.

`SETS[name]` is the class of the weights: `SETS[name].NAMES` names the K components, and
`weights.components(step)`, float32 `[K]`, are their values, whose sum is the reward.
"""

import dataclasses
from typing import Any, get_args, get_type_hints

import numpy as np

from envs.arguments import Range, check_name, is_traced
from envs.durotaxis.rewards.base import RewardSet
from envs.durotaxis.rewards.facts import Ending, Step, milestones_reached
from envs.durotaxis.rewards.sets import Combined, Distance, Normal, ThreePart
from envs.durotaxis.rewards.state_machine import StateMachine

__all__ = ["SETS", "Ending", "RewardSet", "Step", "check", "milestones_reached", "weights_of"]

SETS: dict[str, type[RewardSet]] = {
    "normal": Normal,
    "distance": Distance,
    "combined": Combined,
    "three_part": ThreePart,
    "state_machine": StateMachine,
}


def weights_of(name: str, **changes: Any) -> RewardSet:
    """The weights of the set `name`: its defaults, but for `changes`.

    Raises ValueError for a set or a weight that does not exist, and for what `check` refuses.
    """
    kind = _set_of(name)
    field_names = [field.name for field in dataclasses.fields(kind)]
    for change in changes:
        if change not in field_names:
            raise ValueError(
                f"reward {change!r} is unknown to the set {name!r}; "
                f"expected one of {', '.join(field_names)}"
            )
    weights = kind(**changes)
    check(name, weights)
    return weights


def check(name: str, weights: Any) -> None:
    """Raises ValueError unless `weights` are those of the set `name`.

    They may have any shape; traced ones cannot be checked and pass. All must be finite and within
    what is declared beside their field.
    """
    kind = _set_of(name)
    if not isinstance(weights, kind):
        raise ValueError(
            f"weights are a {type(weights).__name__}; the reward set {name!r} takes "
            f"{kind.__name__}: make them with weights_of({name!r})"
        )
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if is_traced(getattr(weights, field.name)):
            continue
        value = np.asarray(getattr(weights, field.name))
        limits = (x for x in get_args(hints[field.name]) if isinstance(x, Range))
        expected = _expected_text(value, next(limits, Range()))
        if expected:
            description = value[()] if value.ndim == 0 else "an array with such a value"
            raise ValueError(f"reward {field.name!r} is {description}; expected {expected}")


def _set_of(name: str) -> type[RewardSet]:
    check_name("reward set", name, SETS)
    return SETS[name]


def _expected_text(value: np.ndarray, within: Range) -> str:
    """What is expected instead of an invalid value; empty for a valid one."""
    if not np.issubdtype(value.dtype, np.number):
        return "a number"
    if not np.all(np.isfinite(value)):
        return "a finite number"
    inside = (value >= within.least) & (value > within.above) & (value <= within.most)
    return "" if np.all(inside) else str(within)
