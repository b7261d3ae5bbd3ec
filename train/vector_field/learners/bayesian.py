"""A learner that knows how fields are seen: a Gaussian posterior of the field."""

from dataclasses import replace
from functools import partial

from envs.vector_field import VectorField
from envs.vector_field.fields import FIELDS
from envs.vector_field.params import Params
from jaxrl.dynamics.learners import field_learner, field_model
from jaxrl.dynamics.planning import stimulation
from jaxrl.types import Agent
from train.vector_field.learners.learner import Learner, constants_of, make_latent_model

FAMILIES = {
    "limit_cycle": ("radius_squared", "spin"),
    "double_limit_cycle": ("radius", "spin"),
    "duffing": ("damping", "linear"),
    "van_der_pol": ("damping", "stiffness"),
    "snowman": ("radius", "spin"),
}
"""The two unknown parameters of each field in its family."""
FIRST_GUESS = 0.5
"""Initial estimate of each of them; no field has this value."""


def bayesian(env: VectorField, config: field_learner.Config, family: str = "") -> Learner:
    """Gaussian posterior with a known decoder; with `family`, of two parameters of that field."""
    system = field_model.System(
        env.effect,
        env.emission,
        circular=env.circular,
        angular_channels=env.angular_channels,
    )
    if family:
        member = lambda z, e: FIELDS[family](z, **dict(zip(FAMILIES[family], e, strict=True)))
        start = (FIRST_GUESS,) * len(FAMILIES[family])
        system = system._replace(family=member, family_start=start)

    candidates = () if family else field_model.candidates(config)

    def make(policy: stimulation.Config, params: Params) -> Agent:
        constants = constants_of(params, env.num_inputs)
        return field_learner.make(replace(config, policy=policy), system, constants)

    return Learner(
        make=make,
        world=lambda agent: agent.known.numbers,
        velocity=partial(field_model.velocity, config, system),
        uncertainty=partial(field_model.uncertainty, config, system),
        forecast=partial(field_learner.forecast, config, system),
        latent_model=lambda agent: make_latent_model(
            partial(field_learner.beliefs, config, system, agent),
            partial(field_model.velocity, config, system, agent),
            lambda z: env.emission(z, agent.known.numbers)[0],
            field_learner.predictive_model(config, system, agent),
        ),
        bases=tuple(x.basis + " + linear" * x.linear for x in candidates)
        if len(candidates) > 1
        else (),
        basis=lambda agent: agent.place,
        information_gain=field_model.information_gain,
    )
