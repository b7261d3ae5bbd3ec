"""Flags without effect with others, where a rule beside a field could not tell them."""

from typing import get_args

from jaxrl.dynamics import bases
from jaxrl.dynamics.learners import field_model
from jaxrl.dynamics.planning.stimulation_config import OBJECTIVES
from train.host.plain_config import names_below
from train.vector_field.config import BASES, Config
from train.vector_field.factories import policy, resize_bases


def idle(config: Config) -> dict[str, str]:
    """Fields of the policies and of the bases that experiments do not use, and why.

    Raises ValueError for a policy that is unknown.
    """
    if config.data:
        return {}
    learners = {"state_space": "online.agent", "sequence_vae": "vae"}
    reasons = idle_in_policy(config, f"{learners.get(config.learner, 'bayesian')}.policy.")
    return reasons | (idle_in_bases(config) if config.learner == "bayesian" else {})


def idle_in_bases(config: Config) -> dict[str, str]:
    """Bases of the Bayesian learner that are not tried, and what only they would need."""
    candidates = field_model.candidates(resize_bases(config.bayesian, config.env.dimension))
    kinds = zip(get_args(bases.Kind), BASES, strict=True)
    others = [name for kind, name in kinds if kind not in {x.basis for x in candidates}]
    names = [x for name in others for x in names_below(getattr(config.bayesian, name), name)]
    if config.bayesian.basis == "auto":
        names.append("linear")
    if not any(x.linear for x in candidates):
        names.append("prior_linear")
    return {f"bayesian.{name}": f"bayesian.basis is {config.bayesian.basis}" for name in names}


def idle_in_policy(config: Config, where: str) -> dict[str, str]:
    """The same for the settings that all policies share."""
    chosen = [policy(config, name) for name in config.policies]
    kinds = {x.kind for x in chosen}
    objectives = {name for x in chosen for name in x.objectives}
    names = ("kind", "hold_steps", "at_edge", "strength", "objective")
    reasons = {f"{where}{name}": "--policies sets it" for name in names}
    if "myopic" not in kinds:
        reasons[f"{where}lookahead"] = "no policy is myopic"
    if not kinds & {"myopic", "planned"}:
        reasons[f"{where}action_cost"] = "no policy is myopic or planned"
    if "planned" not in kinds:
        names = ("propagate", "every", "replan_steps")
        planner = names_below(config.bayesian.policy.planner, "planner")
        reasons |= {f"{where}{name}": "no policy is planned" for name in (*names, *planner)}
    elif not objectives & {"d_optimal", "a_optimal"}:
        why = "no policy is d_optimal or a_optimal"
        reasons |= dict.fromkeys((f"{where}propagate", f"{where}every"), why)
    others = [f"weights.{name}" for name in OBJECTIVES if name not in objectives]
    if "goal" not in objectives:
        others.append("goal")
    if "rnd" not in objectives:
        others += names_below(config.bayesian.policy.rnd, "rnd")
    return reasons | {f"{where}{name}": "no policy has that objective" for name in others}
