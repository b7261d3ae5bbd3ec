"""Who plays the environment as its author wrote it."""

from typing import Any

import jax

from envs.wrappers import FlattenObservation, PlainActions
from jaxrl.types import Agent, AgentState, Memory, Metrics, Observation
from train.host.player import Player

FORMS = PlainActions, FlattenObservation
"""Wrappers that remember nothing, and only give observations and actions another form."""


def player_inside(env: Any, params: Any, agent: Agent) -> Player:
    """The player of what is inside of wrappers of form, as `agent` plays `env`.

    What it sees and does has the form of that environment's own spaces. Other wrappers stay, and
    all that is inside of them.
    """
    if not isinstance(env, FORMS):
        return Player(env, params, agent)

    def act(state: AgentState, memory: Memory, obs: Observation, key: jax.Array):
        action, memory, extras = agent.act(state, memory, env.show((), obs), key)
        return env.decide(key, (), action, params)[1], memory, extras

    def explain(state: AgentState, memory: Memory, obs: Observation) -> Metrics:
        return agent.explain(state, memory, env.show((), obs))

    return player_inside(env.env, env.inner(params), agent._replace(act=act, explain=explain))
