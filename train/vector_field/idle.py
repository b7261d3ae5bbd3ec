"""Flags of `python -m train.vector_field` that have no effect in combination with others."""

from typing import Any, get_args

from jaxrl.dynamics import bases
from jaxrl.dynamics.learners import field_learner
from jaxrl.dynamics.planning.stimulation import OBJECTIVES
from train.host.plain_config import names_below
from train.vector_field.config import BASES, CART_POLE, Config, policy, resize_bases


def idle(config: Config) -> dict[str, str]:
    """Fields that have no effect with a configuration, and why."""
    waves = names_below(config.model.fourier, "model.fourier")
    if config.model.field == "fourier":
        waves = ["model.fourier.dims"]
    if config.data:
        return idle_with_data(config, waves)
    # Flags of data, and those that the world and the rule for stopping leave idle.
    names = ["batch_size", "validation_share", "step_time", "time_unit"]
    names += names_below(config.state_space, "state_space")
    reasons: dict[str, str] = dict.fromkeys(names, "it needs --data")
    if config.env.dimension == 2:
        reasons["plane"] = "the plane has two dimensions"
    if not config.stop_gain:
        reasons["stop_over"] = "it needs stop_gain"
    reasons |= dict.fromkeys(names_below(config.state_space, "state_space"), "it needs --data")
    if config.learner != "state_space":
        reasons |= dict.fromkeys(
            names_below(config.online, "online"), "it needs learner state_space"
        )
    # Flags of the other learners, and those of its own that the learner sets itself.
    if config.learner == "state_space":
        others = [names_below(getattr(config, x), x) for x in ("bayesian", "model", "vae")]
        names = [*(name for each in others for name in each), "noise_is_known"]
        reasons |= dict.fromkeys(names, "it needs another learner")
        reasons["online.agent.capacity"] = "run.total_steps sets it"
        reasons |= idle_in_policy(config, "online.agent.policy.")
    elif config.learner == "sequence_vae":
        reasons |= dict.fromkeys(
            names_below(config.bayesian, "bayesian"), "it needs another learner"
        )
        reasons["noise_is_known"] = "it needs another learner"
        reasons |= dict.fromkeys(waves, "model.field or its grid sets it")
        reasons |= idle_in_policy(config, "vae.policy.")
    else:
        others = [*names_below(config.model, "model"), *names_below(config.vae, "vae")]
        reasons |= dict.fromkeys(others, "it needs learner sequence_vae")
        reasons |= idle_in_policy(config, "bayesian.policy.")
        if config.noise_is_known:
            names = ("bayesian.process_noise", "bayesian.noise_strength")
            reasons |= dict.fromkeys(names, "noise_is_known is set")
        reasons |= {f"bayesian.{name}.dims": "env.dimension sets it" for name in BASES}
        if config.learner == "family":
            names = [
                x
                for name in BASES
                for x in names_below(basis_settings(config, name), f"bayesian.{name}")
            ]
            names += ["bayesian.basis", "bayesian.linear", "bayesian.prior_linear"]
            reasons |= dict.fromkeys(names, "a family of fields has no basis")
        else:
            # Bases that are not tried, and what only they would need.
            candidates = field_learner.candidates(
                resize_bases(config.bayesian, config.env.dimension)
            )
            kinds = zip(get_args(bases.Kind), BASES, strict=True)
            others = [name for kind, name in kinds if kind not in {x.basis for x in candidates}]
            names = [
                x
                for name in others
                for x in names_below(basis_settings(config, name), f"bayesian.{name}")
            ]
            if config.bayesian.basis == "auto":
                names.append("bayesian.linear")
            if not any(x.linear for x in candidates):
                names.append("bayesian.prior_linear")
            reasons |= dict.fromkeys(names, f"bayesian.basis is {config.bayesian.basis}")
        if config.bayesian.belief == "exact":
            reasons["bayesian.first_variance"] = "the first state is observed"
    # Numbers of the world.
    if CART_POLE in config.env.fields:
        names = ("channels", "encoder", "num_inputs")
        reasons |= {f"env.{name}": "a cart_pole has its own" for name in names}
    if config.env.noise != "gaussian":
        reasons["env.observation_noise"] = "it needs env.noise gaussian"
    if config.env.noise != "poisson":
        reasons["env.bin_width"] = "it needs env.noise poisson"
    return reasons


def idle_with_data(config: Config, waves: list[str]) -> dict[str, str]:
    """The same with recorded data; `waves` are fields of `model.fourier` that others set."""
    names = names_below(config.bayesian, "bayesian")
    names += names_below(config.vae.policy, "vae.policy")
    names += names_below(config.online, "online")
    worldly = ("fields", "dimension", "channels", "num_inputs", "encoder", "authority")
    worldly += ("process_noise", "observation_noise")
    names += [f"env.{name}" for name in worldly]
    names += ["policies", "noise_is_known", "box", "plane", "stop_gain", "stop_over"]
    reasons = dict.fromkeys(names, "--data are learned from without experiments")
    if config.learner != "state_space":
        others = names_below(config.state_space, "state_space")
        reasons |= dict.fromkeys(others, "it needs learner state_space")
        return reasons | dict.fromkeys(waves, "model.field or its grid sets it")
    others = [*names_below(config.model, "model"), *names_below(config.vae, "vae")]
    others += ["batch_size", "env.observation", "env.dt"]
    reasons |= dict.fromkeys(others, "it needs learner sequence_vae")
    fit = "state_space.fit"
    reasons |= {f"{fit}.steps": "state_space.steps sets it"}
    reasons |= {f"{fit}.known": "a file says of no parameter what it is"}
    return reasons | {f"{fit}.objective.prior": "state_space.prior sets it"}


def basis_settings(config: Config, name: str) -> Any:
    """The settings of a basis of the Bayesian learner."""
    return getattr(config.bayesian, name)


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
