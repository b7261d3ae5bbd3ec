"""Schedules of agents with a replay, as shares of the budget of a run."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import jax
import jax.numpy as jnp

from jaxrl.checks import INT32, NonNegative
from jaxrl.dependent_fields import needs, sets, unless
from train.host.training import Config

C = TypeVar("C")
SETS = {"explore_share": "epsilon_transitions", "importance_share": "importance_transitions"}
"""The field of a DQN that each of the `Shares` sets."""
CONSTANT = "agent.epsilon_start and agent.epsilon_end are the same"


@dataclass(frozen=True)
class Shares:
    """How much of the budget the schedules of a DQN take; a base of configurations of one.

    These have the field `agent`, a `dqn.Config`.
    """

    explore_share: Annotated[
        NonNegative | None,
        unless("agent.has_constant_epsilon", why=CONSTANT) | needs("explore_share", None),
        sets("agent.epsilon_transitions", why="explore_share sets it, unless that is None"),
    ] = None
    """Share of the budget over which epsilon falls, the share of steps at which a random action
    begins; None: agent.epsilon_transitions say it."""
    importance_share: Annotated[
        NonNegative | None,
        needs("agent.prioritised", why="it needs agent.prioritised")
        | needs("importance_share", None),
        sets("agent.importance_transitions", why="importance_share sets it, unless that is None"),
    ] = None
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


def caution(warmup: int, run: Config, steps_per_update: int) -> str:
    """What is said of a budget that ends before the `warmup` of an agent, in transitions."""
    budget = run.total_updates(steps_per_update) * steps_per_update
    if warmup <= budget:
        return ""
    return (
        f"nothing will be learned, as agent.warmup is {warmup:,} transitions and the budget "
        f"{budget:,}: choose more --run.total-steps, or a smaller --agent.warmup"
    )
