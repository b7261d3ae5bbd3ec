"""What a configuration of vector fields trains: experiments of every policy on every field."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.vector_field.params import Params
from jaxrl.loop import Metrics
from jaxrl.types import AgentState
from train.host import settings
from train.vector_field import experiments, recorded, scores
from train.vector_field.config import Config, check, make_env, make_learner, policy

SCORE = "field_error"
STRETCH = 50
"""Samples between two scores."""


class State(NamedTuple):
    """A laboratory: experiments side by side, their learners kept apart."""

    agent: dict[str, AgentState]  # by the first policy of each group, [P, F, ...]
    experiments: dict[str, Any]  # the same of `experiments.Experiment`
    reachable: jax.Array  # bool [F, G, G]
    key: jax.Array
    updates: jax.Array  # int32


def make_training(config: Config) -> settings.Training:
    """Raises ValueError, in one line, for what does not fit together."""
    check(config)
    if config.data:
        return recorded.make_training(config)
    env = make_env(config)
    learner = make_learner(config)
    policies = {name: policy(config, name) for name in config.policies}
    laboratory = experiments.make(
        env, partial(worlds, config), learner, policies, config.box, STRETCH
    )

    def init(key: jax.Array) -> State:
        begin_key, key = jax.random.split(key)
        agents, (running, reachable) = laboratory.init(begin_key)
        return State(agents, running, reachable, key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, Metrics]:
        rest = state.experiments, state.reachable
        agents, (running, reachable), measures = laboratory.advance(state.agent, rest)
        measures[SCORE] = jnp.mean(measures["error"][:, 0])
        state = State(agents, running, reachable, state.key, state.updates + 1)
        return state, Metrics(jnp.zeros((), jnp.int32), {}, measures)

    return settings.Training(
        init=init,
        update=update,
        evaluate=lambda *of_seeds: scores.evaluate(config, learner, env, *of_seeds),
        steps_per_update=STRETCH,
        unit="samples",
        score=SCORE,
    )


def worlds(config: Config, key: jax.Array) -> Params:
    """The parameters of one world for each field, `[F, ...]`, with weights of their own."""
    env, world = make_env(config), config.env

    def one(key: jax.Array, index: jax.Array):
        numbers = {
            name: getattr(world, name)
            for name in ("dt", "process_noise", "observation_noise", "bin_width")
        }
        return env.params(key, world.authority, field=index, **numbers)

    count = len(world.fields)
    return jax.vmap(one)(jax.random.split(key, count), jnp.arange(count))
