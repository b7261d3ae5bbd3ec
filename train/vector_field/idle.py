"""Flags of `python -m train.vector_field` that have no effect in combination with others."""

from typing import Any, get_args

from jaxrl.dynamics import bases
from jaxrl.dynamics.learners import field_learner
from jaxrl.dynamics.planning.stimulation import OBJECTIVES
from train.host.plain_config import names_below
from train.vector_field.config import BASES, CART_POLE, Config, of_dimension, policy


def idle(config: Config) -> dict[str, str]:
    """Fields that have no effect with a configuration, and why."""
    waves = names_below(config.model.fourier, "model.fourier")
    if config.model.field == "fourier":
        waves = ["model.fourier.dims"]
    if config.data:
        return idle_with_data(config, waves)
    names = ["batch_size", "validation_share", "step_time", "time_unit"]
    names += names_below(config.state_space, "state_space")
    found: dict[str, str] = dict.fromkeys(names, "it needs --data")
    if config.env.dimension == 2:
        found["plane"] = "the plane has two dimensions"
    if not config.stop_gain:
        found["stop_over"] = "it needs stop_gain"
    found |= dict.fromkeys(names_below(config.state_space, "state_space"), "it needs --data")
    if config.learner != "state_space":
        found |= dict.fromkeys(names_below(config.online, "online"), "it needs learner state_space")
    if config.learner == "state_space":
        others = [names_below(getattr(config, x), x) for x in ("bayesian", "model", "vae")]
        names = [*(name for each in others for name in each), "noise_is_known"]
        found |= dict.fromkeys(names, "it needs another learner")
        found["online.agent.capacity"] = "run.total_steps sets it"
        found |= idle_in_policy(config, "online.agent.policy.")
    elif config.learner == "sequence_vae":
        found |= dict.fromkeys(names_below(config.bayesian, "bayesian"), "it needs another learner")
        found["noise_is_known"] = "it needs another learner"
        found |= dict.fromkeys(waves, "model.field or its grid sets it")
        found |= idle_in_policy(config, "vae.policy.")
    else:
        others = [*names_below(config.model, "model"), *names_below(config.vae, "vae")]
        found |= dict.fromkeys(others, "it needs learner sequence_vae")
        found |= idle_in_policy(config, "bayesian.policy.")
        if config.noise_is_known:
            names = ("bayesian.process_noise", "bayesian.noise_strength")
            found |= dict.fromkeys(names, "noise_is_known is set")
        found |= {f"bayesian.{name}.dims": "env.dimension sets it" for name in BASES}
        if config.learner == "family":
            names = [x for name in BASES for x in names_below(of(config, name), f"bayesian.{name}")]
            names += ["bayesian.basis", "bayesian.linear", "bayesian.prior_linear"]
            found |= dict.fromkeys(names, "a family of fields has no basis")
        else:
            each = field_learner.candidates(of_dimension(config.bayesian, config.env.dimension))
            kinds = zip(get_args(bases.Kind), BASES, strict=True)
            others = [name for kind, name in kinds if kind not in {x.basis for x in each}]
            names = [
                x for name in others for x in names_below(of(config, name), f"bayesian.{name}")
            ]
            if config.bayesian.basis == "auto":
                names.append("bayesian.linear")
            if not any(x.linear for x in each):
                names.append("bayesian.prior_linear")
            found |= dict.fromkeys(names, f"bayesian.basis is {config.bayesian.basis}")
        if config.bayesian.belief == "exact":
            found["bayesian.first_variance"] = "the first state is observed"
    if CART_POLE in config.env.fields:
        names = ("channels", "encoder", "num_inputs")
        found |= {f"env.{name}": "a cart_pole has its own" for name in names}
    if config.env.noise != "gaussian":
        found["env.observation_noise"] = "it needs env.noise gaussian"
    if config.env.noise != "poisson":
        found["env.bin_width"] = "it needs env.noise poisson"
    return found


def idle_with_data(config: Config, waves: list[str]) -> dict[str, str]:
    """The same with recorded data; `waves` are fields of `model.fourier` that others set."""
    names = names_below(config.bayesian, "bayesian")
    names += names_below(config.vae.policy, "vae.policy")
    names += names_below(config.online, "online")
    worldly = ("fields", "dimension", "channels", "num_inputs", "encoder", "authority")
    worldly += ("process_noise", "observation_noise")
    names += [f"env.{name}" for name in worldly]
    names += ["policies", "noise_is_known", "box", "plane", "stop_gain", "stop_over"]
    found = dict.fromkeys(names, "--data are learned from without experiments")
    if config.learner != "state_space":
        others = names_below(config.state_space, "state_space")
        found |= dict.fromkeys(others, "it needs learner state_space")
        return found | dict.fromkeys(waves, "model.field or its grid sets it")
    others = [*names_below(config.model, "model"), *names_below(config.vae, "vae")]
    others += ["batch_size", "env.observation", "env.dt"]
    found |= dict.fromkeys(others, "it needs learner sequence_vae")
    fit = "state_space.fit"
    found |= {f"{fit}.steps": "state_space.steps sets it"}
    found |= {f"{fit}.known": "a file says of no parameter what it is"}
    return found | {f"{fit}.objective.prior": "state_space.prior sets it"}


def of(config: Config, name: str) -> Any:
    """The settings of a basis of the Bayesian learner."""
    return getattr(config.bayesian, name)


def idle_in_policy(config: Config, where: str) -> dict[str, str]:
    """The same for the settings that all policies share."""
    chosen = [policy(config, name) for name in config.policies]
    kinds = {x.kind for x in chosen}
    objectives = {name for x in chosen for name in x.objectives}
    names = ("kind", "hold_steps", "at_edge", "strength", "objective")
    found = {f"{where}{name}": "--policies sets it" for name in names}
    if "myopic" not in kinds:
        found[f"{where}lookahead"] = "no policy is myopic"
    if not kinds & {"myopic", "planned"}:
        found[f"{where}action_cost"] = "no policy is myopic or planned"
    if "planned" not in kinds:
        names = ("propagate", "every", "replan_steps")
        planner = names_below(config.bayesian.policy.planner, "planner")
        found |= {f"{where}{name}": "no policy is planned" for name in (*names, *planner)}
    elif not objectives & {"d_optimal", "a_optimal"}:
        why = "no policy is d_optimal or a_optimal"
        found |= dict.fromkeys((f"{where}propagate", f"{where}every"), why)
    others = [f"weights.{name}" for name in OBJECTIVES if name not in objectives]
    if "goal" not in objectives:
        others.append("goal")
    if "rnd" not in objectives:
        others += names_below(config.bayesian.policy.rnd, "rnd")
    return found | {f"{where}{name}": "no policy has that objective" for name in others}
