"""What an episode came to: `info["outcome"]` of its last step, or what its steps add up to.

An environment says which by `outcome_kinds`, such as `{"food": "sum"}`, an attribute or a property;
an entry that is not named there is that of the last step. The name of what is reported says so,
too: `food_sum` and `speed_mean` are over all steps of an episode, `food` is of the last one.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

LAST, SUM, MEAN = "last", "sum", "mean"
KINDS = (LAST, SUM, MEAN)
EPISODE_NAMES = frozenset({"return", "length", "terminated", "truncated"})
REPORT_NAMES = frozenset({"seed", "games", "incomplete", "nonfinite", "steps"})
RESERVED = EPISODE_NAMES | REPORT_NAMES
"""Names that the report of an episode, or of many, has for something else."""


def kinds(env: Any) -> dict[str, str]:
    """Which of `KINDS` each entry is that the environment says it of.

    Raises ValueError unless they are a dict, of these kinds by name.
    """
    declared = getattr(env, "outcome_kinds", {})
    if not isinstance(declared, Mapping):
        raise ValueError(
            f"outcome_kinds is a {type(declared).__name__}; expected a dict such as "
            "{'food': 'sum'}"
        )
    for name, kind in declared.items():
        if kind not in KINDS:
            raise ValueError(
                f"outcome_kinds has {name!r}: {kind!r}; expected one of {', '.join(KINDS)}"
            )
    return dict(declared)


def check(env: Any, outcome: Mapping[str, Any]) -> None:
    """Raises ValueError for kinds of what is not there, and for a name that would hide another.

    Also for what is no dict of scalars, `[N]` of N environments.
    """
    if not isinstance(outcome, Mapping):
        raise ValueError(f"info['outcome'] is a {type(outcome).__name__}; expected a dict")
    for name, x in outcome.items():
        if len(shape := getattr(x, "shape", ())) > 1:
            raise ValueError(
                f"info['outcome'] has {name!r} of shape {list(shape[1:])}; expected scalars"
            )
    declared = kinds(env)
    names = [report_name(name, declared) for name in outcome]
    for name in declared:
        if name not in outcome:
            raise ValueError(
                f"outcome_kinds has {name!r}, which info['outcome'] has not; it has "
                f"{', '.join(outcome) or 'nothing'}"
            )
    for name in names:
        if name in RESERVED or names.count(name) > 1:
            raise ValueError(f"info['outcome'] has {name!r}, a name that is taken: choose another")


def report_name(name: str, declared: Mapping[str, str]) -> str:
    """The name under which an entry is reported."""
    kind = declared.get(name, LAST)
    return name if kind == LAST else f"{name}_{kind}"


def is_value_of_last_step(name: str) -> bool:
    """Whether what is reported under a name is the value of the last step of an episode."""
    return name not in RESERVED and not name.endswith((f"_{SUM}", f"_{MEAN}"))


def begin(env: Any, num_envs: int) -> dict[str, jax.Array]:
    """Sums of 0, `[N]`, of each entry that adds up over an episode."""
    names = [name for name, kind in kinds(env).items() if kind != LAST]
    return {name: jnp.zeros(num_envs) for name in names}


def add(sums: dict[str, jax.Array], outcome: Mapping[str, Any]) -> dict[str, jax.Array]:
    """The sums after a step with this outcome."""
    return {name: x + jnp.asarray(outcome[name], x.dtype) for name, x in sums.items()}


def totals(
    env: Any, sums: dict[str, jax.Array], length: jax.Array, outcome: Mapping[str, Any]
) -> dict[str, Any]:
    """What an episode of so many steps came to, if this outcome is that of its last one."""
    declared = kinds(env)
    mean = lambda name: sums[name] / jnp.asarray(length, jnp.float32)
    getters = {LAST: outcome.get, SUM: sums.get, MEAN: mean}
    return {report_name(x, declared): getters[declared.get(x, LAST)](x) for x in outcome}
