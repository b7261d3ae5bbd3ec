"""Schedules of agents with a replay, as shares of the budget of a run."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from jaxrl.checks import INT32, NonNegative
from train.host.training import Config

C = TypeVar("C")
SETS = {"explore_share": "epsilon_transitions", "importance_share": "importance_transitions"}
"""The field of a DQN that each of the `Shares` sets."""


@dataclass(frozen=True)
class Shares:
    """How much of the budget the schedules of a DQN take; a base of configurations of one."""

    explore_share: NonNegative | None = None
    """Share of the budget over which epsilon, the share of random actions, falls; None:
    agent.epsilon_transitions say it."""
    importance_share: NonNegative | None = None
    """Share of the budget over which prioritised replay comes to correct for all of its bias; None:
    agent.importance_transitions say it."""

    @property
    def has_share(self) -> bool:
        """Whether some schedule is a share of the budget."""
        return any(getattr(self, name) is not None for name in SETS)


def scheduled_agent(agent: C, shares: Shares, budget: int) -> C:
    """The configuration of a DQN that is trained for so many transitions; shares may be traced."""
    field_shares = {field: getattr(shares, name) for name, field in SETS.items()}
    spans = {
        field: span(share, budget) for field, share in field_shares.items() if share is not None
    }
    return replace(agent, **spans)  # pyright: ignore[reportArgumentType, reportReturnType]


def span(share: Any, budget: int) -> int | jax.Array:
    """A share of a budget in whole transitions, of which an agent counts as many as fit."""
    if isinstance(share, int | float):
        return min(round(share * budget), INT32)
    return jnp.round(jnp.minimum(share * budget, INT32))


def idle(agent: Any, shares: Shares) -> dict[str, str]:
    """Fields that have no effect with the others, by dotted name, and why."""
    used = [name for name in SETS if getattr(shares, name) is not None]
    idle = {f"agent.{SETS[name]}": f"{name} sets it, unless that is None" for name in used}
    if agent.epsilon_start == agent.epsilon_end and "explore_share" in used:
        idle["explore_share"] = "agent.epsilon_start and agent.epsilon_end are the same"
    if not agent.prioritised and "importance_share" in used:
        idle["importance_share"] = "it needs agent.prioritised"
    return idle


def caution(warmup: int, run: Config, steps_per_update: int) -> str:
    """What is said of a budget that ends before the `warmup` of an agent, in transitions."""
    budget = run.total_updates(steps_per_update) * steps_per_update
    if warmup <= budget:
        return ""
    return (
        f"nothing will be learned, as agent.warmup is {warmup:,} transitions and the budget "
        f"{budget:,}: choose more --run.total-steps, or a smaller --agent.warmup"
    )
