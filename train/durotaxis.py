"""`python -m train.durotaxis`: a colony of cells learns to climb a gradient of stiffness.

Presets: `linear` (default) and `shallow`, `exponential`, `random` for other ground; `isotropic`,
where cells divide in all directions and only deletion can lead; `hybrid`, with a choice for every
node; `curriculum`, a goal that moves away; `normal`, `three_part`, `state_machine` for the other
sets of rewards.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from envs.durotaxis import actions
from envs.durotaxis.env import Durotaxis, Params
from jaxrl import evaluate
from jaxrl.agents import ppo
from jaxrl.loop import Metrics, TrainState, make_loop
from jaxrl.networks.graph import GraphActorCritic, GraphTorso, HybridActorCritic, PooledTorso
from jaxrl.types import Agent, AgentState
from train import (
    command,
    durotaxis_episodes,
    durotaxis_evaluation,
    durotaxis_pictures,
    pictures,
    programs,
    records,
    runs,
    scores,
    settings,
)
from train.durotaxis_config import PRESETS, Config, check, make_env
from train.run import Result, run

evaluation = durotaxis_evaluation
"""What `train.evaluate` offers for runs of this module."""

SCORE = "arrived"
"""Whether a colony reached the goal."""


def make_training(config: Config) -> settings.Training:
    """Raises ValueError, in one line, for what does not fit together."""
    env, params, agent = make_parts(config)
    player = make_parts(config, greedy=config.run.evaluation_greedy)[2]

    def update(state: TrainState) -> tuple[TrainState, Metrics]:
        now = params_at(config, params, state.updates)
        return make_loop(env, now, agent, config.loop).update(state)

    def episodes_of(agent_state: AgentState, key: jax.Array) -> evaluate.Episodes:
        games, limit = config.run.evaluation_games, config.env.max_steps_in_episode
        return evaluate.evaluate(env, params, player, agent_state, key, games, 1, limit)

    return settings.Training(
        init=make_loop(env, params_at(config, params, 0), agent, config.loop).init,
        update=update,
        evaluate=scores.games(episodes_of, SCORE),
        steps_per_update=steps_per_update(config),
        score=SCORE,
        budget_shapes_learning=config.anneal or config.curriculum.first_width is not None,
    )


def make_parts(config: Config, greedy: bool = False) -> tuple[Durotaxis, Params, Agent]:
    """The environment, its parameters and the agent of a configuration."""
    check(config)
    env, params = make_env(config.env)
    agent_config = config.agent
    if config.anneal:
        updates = config.run.total_updates(steps_per_update(config))
        agent_config = replace(agent_config, anneal_updates=float(updates))
    return env, params, ppo.make(make_network(config, env), agent_config, greedy)


def make_network(config: Config, env: Durotaxis) -> Any:
    """Actor and critic, a value for each component of the reward."""
    network = config.network
    torso = PooledTorso(network.width, network.layers)
    if network.torso == "graph":
        torso = GraphTorso(network.width, network.layers, network.heads)
    names = actions.names(env.action, env.spawning)
    ends = [getattr(config.env.bounds, name) for name in names]
    low, high = (tuple(float(end[i]) for end in ends) for i in (0, 1))
    kind = HybridActorCritic if env.action == "nodes" else GraphActorCritic
    return kind(torso, len(names), low, high, len(env.component_names))


def params_at(config: Config, params: Params, updates: jax.Array | int) -> Params:
    """The experiment after so many updates; only a curriculum changes it."""
    first = config.curriculum.first_width
    if first is None:
        return params
    total = config.run.total_updates(steps_per_update(config))
    done = jnp.clip(updates / (config.curriculum.share * total), 0.0, 1.0)
    return replace(params, width=jnp.round(first + done * (params.width - first)))  # whole px


def steps_per_update(config: Config) -> int:
    """Environment steps."""
    return config.loop.num_envs * config.loop.num_steps


def train(config: Config, preset: str = "linear") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    result = run(make_training(config), config, "durotaxis", preset)
    finish(config, result)
    return result


def finish(config: Config, result: Result) -> None:
    """The pictures of a run that came to its end."""
    print(draw_curve(result.directory, config))
    if result.evaluation:
        agent = scores.agents_of(result.state.agent, config.run.num_seeds)[0]
        which = durotaxis_episodes.chosen(result.evaluation.detail.episodes[0])
        parts = make_parts(config, greedy=config.run.evaluation_greedy)
        key, games = programs.keys_of(config.run.seed)[1], config.run.evaluation_games
        (episode,) = durotaxis_episodes.play(*parts, agent, key, games, [which])
        for path in durotaxis_pictures.climb(episode, parts[1], result.directory):
            print(path)


def draw(run: runs.Run, games: int, key: int) -> list[Path]:
    """The curve of a run, and the climb of one of `games` colonies that `key` has led to."""
    parts = make_parts(run.config, greedy=run.config.run.evaluation_greedy)
    played = durotaxis_episodes.play(*parts, run.agents[0], jax.random.key(key), games)
    episode = played[durotaxis_episodes.chosen(durotaxis_episodes.ended(played))]
    curve = draw_curve(run.directory, run.config)
    return [curve, *durotaxis_pictures.climb(episode, parts[1], run.directory)]


def draw_curve(directory: Path, config: Config) -> Path:
    """Writes `learning_curve.png` into a run directory."""
    path = directory / "learning_curve.png"
    title = f"Durotaxis, {config.env.ground} ground, {config.env.spawning} spawning"
    evaluation = scores.read_evaluation(directory)
    pictures.learning_curve(records.read_metrics(directory), path, SCORE, title, evaluation)
    return path


if __name__ == "__main__":
    sys.exit(command.main("durotaxis", PRESETS, make_training, finish))
