"""The training of a configuration of vector fields: every policy experiments on every field."""

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

SAMPLES_PER_UPDATE = 50
"""Samples of each experiment in one update, and so between two scores."""


class State(NamedTuple):
    """Experiments side by side, with their learners in a field of their own."""

    agent: dict[str, AgentState]  # by the first policy of each group, [P, F, ...]
    experiments: dict[str, Any]  # the same with `experiments.Experiment`
    reachable: jax.Array  # bool [F, G, G]
    key: jax.Array
    updates: jax.Array  # int32


def make_training(config: Config) -> settings.Training:
    """Raises ValueError, in one line, for an invalid configuration."""
    check(config)
    if config.data:
        return recorded.make_training(config)
    env = make_env(config)
    learner = make_learner(config)
    policies = {name: policy(config, name) for name in config.policies}
    laboratory = experiments.make(
        env, partial(worlds, config), learner, policies, config.box, SAMPLES_PER_UPDATE
    )

    def init(key: jax.Array) -> State:
        begin_key, key = jax.random.split(key)
        agents, (running, reachable) = laboratory.init(begin_key)
        return State(agents, running, reachable, key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, Metrics]:
        rest = state.experiments, state.reachable
        agents, (running, reachable), measures = laboratory.advance(state.agent, rest)
        measures[scores.SCORE] = jnp.mean(measures["error"][:, 0])
        state = State(agents, running, reachable, state.key, state.updates + 1)
        return state, Metrics(jnp.zeros((), jnp.int32), {}, measures)

    return settings.Training(
        init=init,
        update=update,
        evaluate=lambda *of_seeds: scores.evaluate(config, learner, env, *of_seeds),
        steps_per_update=SAMPLES_PER_UPDATE,
        unit="samples",
        score=scores.SCORE,
        lower_is_better=True,
    )


def worlds(config: Config, key: jax.Array) -> Params:
    """The parameters of one world for each field, `[F, ...]`, each with its own random weights."""
    env, world = make_env(config), config.env

    def one(key: jax.Array, index: jax.Array):
        numbers = {
            name: getattr(world, name)
            for name in ("dt", "process_noise", "observation_noise", "bin_width")
        }
        return env.params(key, world.authority, field=index, **numbers)

    count = len(world.fields)
    return jax.vmap(one)(jax.random.split(key, count), jnp.arange(count))
