"""Flags of `python -m train.vector_field` that have no effect in combination with others."""

from train.host.config import names_below
from train.vector_field.config import Config, policy


def idle(config: Config) -> dict[str, str]:
    """Fields that have no effect with a configuration, and why."""
    if config.data:
        names = names_below(config.bayesian, "bayesian")
        names += names_below(config.vae.policy, "vae.policy")
        why = "--data fits a sequence VAE without experiments"
        worldly = ("fields", "channels", "num_inputs", "encoder", "authority")
        worldly += ("process_noise", "observation_noise")
        names += [f"env.{name}" for name in worldly]
        return dict.fromkeys((*names, "policies", "noise_is_known", "box"), why)
    found = dict.fromkeys(("batch_size", "validation_share"), "it needs --data")
    if config.learner == "sequence_vae":
        found |= dict.fromkeys(names_below(config.bayesian, "bayesian"), "it needs another learner")
        found["noise_is_known"] = "it needs another learner"
        found |= idle_in_policy(config, "vae.policy.")
    else:
        others = [*names_below(config.model, "model"), *names_below(config.vae, "vae")]
        found |= dict.fromkeys(others, "it needs learner sequence_vae")
        found |= idle_in_policy(config, "bayesian.policy.")
        if config.noise_is_known:
            names = ("bayesian.process_noise", "bayesian.noise_strength")
            found |= dict.fromkeys(names, "noise_is_known is set")
        if config.learner == "family":
            names = names_below(config.bayesian.grid, "bayesian.grid")
            found |= dict.fromkeys(names, "a family of fields has no grid")
        if config.bayesian.belief == "exact":
            found["bayesian.first_variance"] = "the first state is observed"
    if config.env.noise != "gaussian":
        found["env.observation_noise"] = "it needs env.noise gaussian"
    if config.env.noise != "poisson":
        found["env.bin_width"] = "it needs env.noise poisson"
    return found


def idle_in_policy(config: Config, where: str) -> dict[str, str]:
    """The same for the settings that all policies share."""
    kinds = {policy(config, name).kind for name in config.policies}
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
    return found
