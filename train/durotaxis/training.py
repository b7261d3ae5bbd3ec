"""The training of a configuration of durotaxis, and the curricula of goal and of action."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from envs.durotaxis import actions
from envs.durotaxis.env import Durotaxis, Params
from jaxrl import checks
from jaxrl.agents import ppo
from jaxrl.loop import Curriculum, LoopMetrics, make_loop
from jaxrl.networks.graph import (
    GraphActorCritic,
    GraphTorso,
    HybridActorCritic,
    PooledTorso,
    set_held,
)
from jaxrl.types import Agent
from jaxrl.wrappers import graph_cropping
from train.durotaxis.config import Config, check, held_spawn, holds_spawn, make_env
from train.durotaxis.episodes import chances
from train.host.scoring import games, limits
from train.host.training import Score, Training

SCORE = "arrived"
"""Whether a colony reached the goal."""


def make_training(config: Config) -> Training:
    """Raises ValueError, in one line, for an invalid configuration."""
    env, params, agent = make_parts(config)
    player = make_parts(config, greedy=config.run.evaluation_greedy)[2]
    if env.action != "nodes":  # which has a choice for every slot
        agent = graph_cropping.make(agent)
    loop = make_loop(env, params, agent, config.loop, make_curriculum(config, params))
    most = limits.most_steps(config.env.max_steps_in_episode, config.run.evaluation_steps)
    parts = actions.names(env.action, env.spawning)
    lists = ("action_mean", "action_deviation", "action_min", "action_max")
    score = Score(SCORE, labels=dict.fromkeys(lists, parts))
    count = config.run.evaluation_games
    evaluation = games.of_player(env, params, player, count, most, score=score)
    return Training(
        init=loop.init,
        update=loop.update,
        **evaluation.fields,
        blocks=config.loop.blocks,
        steps_per_update=config.loop.steps_per_update,
        budget_shapes_learning=config.anneal
        or config.curriculum.first_width is not None
        or holds_spawn(config),
    )


def make_curriculum(config: Config, params: Params) -> Curriculum | None:
    """The goal moves away, or spawn parameters are held, or both; None where neither does.

    Its course is the number of updates. What is held is among the parameters of the policy, so a
    policy that is kept or exported acts as it did. Raises ValueError for a goal that would begin
    beyond the ground, whose size a measured field sets.
    """
    first, holds = config.curriculum.first_width, holds_spawn(config)
    if first is None and not holds:
        return None
    if first is not None:
        checks.number("curriculum.first_width", first, most=params.width)
    total = config.run.total_updates(config.loop.steps_per_update)

    def params_at(updates: jax.Array) -> Params:
        if first is None:
            return params
        progress = jnp.clip(updates / (config.curriculum.share * total), 0.0, 1.0)
        return replace(
            params, width=jnp.round(first + progress * (params.width - first))
        )  # whole px

    def advance(updates: jax.Array, state: ppo.State, metrics: LoopMetrics):
        if not holds:
            return updates + 1, state, {}
        is_held = lambda updates: updates < config.curriculum.hold_spawn * total
        state = state._replace(params=set_held(state.params, is_held(updates + 1)))
        return updates + 1, state, {"stage": jnp.where(is_held(updates), 1.0, 2.0)}

    return Curriculum(lambda: jnp.zeros((), jnp.int32), params_at, advance)


def make_parts(config: Config, greedy: bool = False) -> tuple[Durotaxis, Params, Agent]:
    """The environment, its parameters and the agent of a configuration."""
    check(config)
    env, params = make_env(config.env)
    agent_config = config.agent
    if config.anneal:
        updates = config.run.total_updates(config.loop.steps_per_update)
        agent_config = replace(agent_config, anneal_updates=float(updates))
    network = make_network(config, env)
    agent = ppo.make(network, agent_config, greedy, config.loop.blocks)
    has_share = "delete_ratio" in actions.names(env.action, env.spawning)
    return env, params, chances.explain_share(agent, network) if has_share else agent


def make_network(config: Config, env: Durotaxis) -> Any:
    """Actor and critic, with a value for each component of the reward."""
    network = config.network
    torso = PooledTorso(network.width, network.layers)
    if network.torso == "graph":
        torso = GraphTorso(network.width, network.layers, network.heads)
    names = actions.names(env.action, env.spawning)
    ends = [getattr(config.env.bounds, name) for name in names]
    low, high = (tuple(float(end[i]) for end in ends) for i in (0, 1))
    fixed = (None,) * len(names)
    if holds_spawn(config):
        spawn = held_spawn(config.env)
        fixed = (None,) * (len(names) - len(spawn)) + spawn
    kind = HybridActorCritic if env.action == "nodes" else GraphActorCritic
    return kind(torso, len(names), low, high, len(env.component_names), fixed)
