"""The settings of stimulation policies."""

from typing import Literal

from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, NonNegative
from jaxrl.dynamics.planning import distillation, icem

Kind = Literal["hold", "myopic", "planned"]
OBJECTIVES = ("d_optimal", "a_optimal", "disagreement", "goal", "rnd")


@struct.dataclass
class Weights:
    """Of the objectives of a plan, whose units differ; each counts where the policy names it."""

    d_optimal: NonNegative = 1.0
    """Of D-optimality, in nats (times 2)."""
    a_optimal: NonNegative = 1.0
    """Of A-optimality."""
    disagreement: NonNegative = 1.0
    """Of the sum of the field's predictive variances along the path."""
    goal: NonNegative = 1.0
    """Of the sum of the distances from the goal along the path, which is a cost."""
    rnd: NonNegative = 1.0
    """Of the sum of the novelties along the path."""


@struct.dataclass
class Config:
    """How inputs are chosen."""

    kind: Kind = struct.field(pytree_node=False, default="planned")
    """Random inputs, the input of largest predictive variance, or the most informative plan."""
    hold_steps: Count = 1
    """hold: steps for which a random input is held."""
    at_edge: bool = False
    """hold: draw inputs on the edge of the box, in a random direction, not uniformly inside."""
    strength: NonNegative = 1.0
    """hold: share of the random input; 0 for none, or what is next to it where 0 is not allowed."""
    lookahead: Count = struct.field(pytree_node=False, default=5)
    """myopic: steps ahead that are predicted, each candidate being held."""
    objective: str = struct.field(pytree_node=False, default="d_optimal")
    """planned: d_optimal (decrease of the log-determinant of the parameters' covariance), a_optimal
    (of its trace), disagreement (predictive variance of the field along the path), goal (nearness
    to a goal) or rnd (novelty, by random network distillation); several joined by +, weighted."""
    weights: Weights = Weights()
    """planned: how much each objective counts."""
    goal: tuple[float, ...] = (0.0,)
    """goal: where the state should be, or, for a sequence VAE or a state-space model, what should
    be observed; a number for each component, or one for all."""
    rnd: distillation.Config = distillation.Config()
    """rnd: the networks."""
    propagate: bool = struct.field(pytree_node=False, default=False)
    """planned: include the effect of the parameters on later states, observed with noise."""
    every: Count = struct.field(pytree_node=False, default=2)
    """planned: steps between two states whose information is counted, from that after so many steps
    on and not later than the plan's last; `propagate` counts all of them."""
    replan_steps: Count = 5
    """planned: steps taken of a plan before the next one is made."""
    action_cost: NonNegative = 0.0
    """myopic, planned: cost of the squared input, per step."""
    planner: icem.Config = icem.Config(initial_std=1.0, colour=2.5)
    """planned: the search."""

    @property
    def objectives(self) -> tuple[str, ...]:
        """Objectives of a plan; empty for other kinds."""
        return tuple(self.objective.split("+")) if self.kind == "planned" else ()


def check_config(config: Config) -> None:
    """Raises ValueError for unknown names and out-of-range or inconsistent settings."""
    checks.config(config)
    icem.check_config(config.planner)
    horizon = config.planner.horizon
    if config.kind != "planned":
        return
    check_objectives(config.objectives)
    if isinstance(config.replan_steps, int) and config.replan_steps > horizon:
        raise ValueError(
            f"replan_steps is {config.replan_steps}, expected at most the planned "
            f"horizon={horizon}: plan further ahead or more often"
        )
    if config.every > horizon:
        raise ValueError(f"every is {config.every}, expected at most the planned horizon={horizon}")


def check_objectives(names: tuple[str, ...]) -> None:
    """Raises ValueError unless every name is known and given once."""
    if not {*names} <= {*OBJECTIVES} or len({*names}) < len(names):
        raise ValueError(
            f"objective is {'+'.join(names)}, expected some of {', '.join(OBJECTIVES)}, each once, "
            "joined by +"
        )


def check_goal(config: Config, components: int) -> None:
    """Raises ValueError for a goal of another number of components than `components` or 1."""
    if "goal" in config.objectives and len(config.goal) not in (1, components):
        raise ValueError(
            f"goal has {len(config.goal)} numbers, expected {components}, one for each component, "
            "or one for all"
        )
