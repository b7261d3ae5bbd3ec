"""The configuration of `train.gymnax`: environment, network, algorithm and budget."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from gymnax.environments.spaces import Box

from jaxrl import checks
from jaxrl.agents import dqn, ppo, pqn, recurrent_ppo, sac
from jaxrl.checks import NonNegative
from jaxrl.dependent_fields import never, sets
from jaxrl.loop import Config as LoopConfig
from jaxrl.types import Agent
from jaxrl.wrappers import normalisation
from train.gymnax import networks
from train.gymnax.actions import family, has_parts
from train.gymnax.networks import Network
from train.host import schedules
from train.host.environments import environments
from train.host.environments.environments import Game, Task
from train.host.environments.joined import JoinedBox
from train.host.training import PlayConfig


def budget(steps: int) -> PlayConfig:
    """So many steps, with a row of the record for each hundredth of them."""
    return PlayConfig(total_steps=steps, chunk_steps=steps // 100, evaluation_games=200)


BOTH = normalisation.Config(observations=True, rewards=True, reward_clip=10.0)
NOT_SHARED = never("it needs a preset of ppo and discrete actions").of("shared")
NO_MEMORY = never("it needs a preset of recurrent").of("memory")
NO_COMPONENTS = never("these rewards have no components").of("component_weights")
ONE_DISCOUNT = never("agent.discount sets it").of("discount")
PlainNetwork = Annotated[Network, NOT_SHARED, NO_MEMORY]
Anneal = Annotated[bool, sets("agent.anneal_updates")]


@dataclass(frozen=True)
class Config:
    """The fields of every preset."""

    env: Game = Game()
    network: PlainNetwork = Network()
    loop: LoopConfig = LoopConfig(num_envs=16, num_steps=128)
    run: PlayConfig = field(default_factory=lambda: budget(500_000))


@dataclass(frozen=True)
class PPO(Config):
    """Learns by policy gradients."""

    network: Annotated[Network, NO_MEMORY] = Network()
    agent: Annotated[ppo.Config, NO_COMPONENTS] = ppo.Config(
        learning_rate=1e-3, epochs=4, minibatches=4, shuffle_group=4
    )
    normalise: Annotated[normalisation.Config, ONE_DISCOUNT] = BOTH
    anneal: Anneal = True
    """Let the learning rate and the entropy weight fall to zero over the budget."""


@dataclass(frozen=True)
class Recurrent(Config):
    """Learns by policy gradients, with a memory of what it has observed."""

    network: Annotated[Network, NOT_SHARED] = Network()
    agent: Annotated[recurrent_ppo.Config, NO_COMPONENTS] = recurrent_ppo.Config()
    normalise: Annotated[normalisation.Config, ONE_DISCOUNT] = normalisation.Config()
    anneal: Anneal = True
    """Let the learning rate and the entropy weight fall to zero over the budget."""
    loop: LoopConfig = LoopConfig(num_envs=64, num_steps=64)


@dataclass(frozen=True)
class PQN(Config):
    """Learns Q(λ) on fresh experience."""

    agent: pqn.Config = pqn.Config()
    network: PlainNetwork = Network(hidden=(128, 128), activation="relu", layer_norm=True)
    anneal: Anneal = True
    """Let the learning rate fall to zero over the budget."""
    explore_share: Annotated[NonNegative, sets("agent.epsilon_updates")] = 0.2
    """Share of the budget over which epsilon, the share of random actions, falls."""


@dataclass(frozen=True)
class DQN(schedules.Shares, Config):
    """Learns by deep Q-learning from a replay."""

    agent: dqn.Config = dqn.Config()
    network: PlainNetwork = Network(hidden=(128, 128), activation="relu", weight_init="he")
    anneal: Anneal = True
    """Let the learning rate fall to zero over as many steps as the budget has, from the end of the
    warm-up on: at the end the share of the budget that was warm-up is left of it."""


@dataclass(frozen=True)
class SAC(Config):
    """Learns continuous actions by soft actor-critic, from a replay."""

    agent: sac.Config = sac.Config(noise_correlation=0.95)
    network: PlainNetwork = Network(hidden=(64, 64), activation="relu")
    loop: LoopConfig = LoopConfig(num_envs=8, num_steps=1)
    run: PlayConfig = field(default_factory=lambda: budget(50_000))


AnyConfig = PPO | Recurrent | PQN | DQN | SAC


def make_agent(config: AnyConfig, task: Task, greedy: bool = False) -> Agent:
    """The agent of a configuration, for the spaces of an environment."""
    spaces, network = (network_observation(config, task), task.action), config.network
    num_envs, blocks = config.loop.num_envs, config.loop.blocks
    if isinstance(config, SAC):
        network_pair = networks.actor_and_critics(network, *spaces)
        return sac.make(*network_pair, config.agent, greedy, num_envs, blocks)
    agent = with_annealing(config)
    if isinstance(config, DQN):
        return dqn.make(networks.q_network(network, *spaces), agent, greedy, num_envs, blocks)
    if isinstance(config, PQN):
        return pqn.make(networks.q_network(network, *spaces), agent, greedy, blocks)
    module, build = ppo, networks.actor_critic
    if isinstance(config, Recurrent):
        module, build = recurrent_ppo, networks.recurrent
    plain = module.make(build(network, *spaces), agent, greedy, blocks)
    scale = replace(config.normalise, discount=config.agent.discount)
    is_joined = isinstance(task.observation, JoinedBox)
    normalised_mask = ~task.observation.is_of_image() if is_joined else None
    integers = isinstance(task.observation, Box)
    return normalisation.make(plain, scale, num_envs, integers, normalised_mask)


def network_observation(config: AnyConfig, task: Task) -> Any:
    """The space of what the network sees: of observations, or of normalised ones."""
    is_normalised = isinstance(config, PPO | Recurrent) and config.normalise.observations
    if is_normalised and isinstance(task.observation, JoinedBox):
        return task.observation.with_free_numbers()
    if is_normalised and isinstance(task.observation, Box):
        return Box(-np.inf, np.inf, task.observation.shape)
    return task.observation


def with_annealing(config: AnyConfig) -> Any:
    """The configuration of the agent, with its schedules in updates."""
    total_updates = float(config.run.total_updates(config.loop.steps_per_update))
    agent = config.agent
    if not isinstance(config, SAC) and config.anneal:
        each = config.agent.updates_per_rollout if isinstance(config, DQN) else 1
        agent = replace(agent, anneal_updates=total_updates * each)
    if isinstance(config, PQN):
        agent = replace(agent, epsilon_updates=config.explore_share * total_updates)
    if isinstance(config, DQN):
        agent = schedules.scheduled_agent(agent, config, config.run.total_steps)
    return agent


def follows_budget(config: AnyConfig) -> bool:
    """Whether a schedule ends with the budget, or with a share of it."""
    has_share = isinstance(config, PQN) or (isinstance(config, DQN) and config.has_share)
    return has_share or getattr(config, "anneal", False)


def caution(config: AnyConfig) -> str:
    """What is said of a configuration that learns nothing."""
    if not isinstance(config, DQN | SAC):
        return ""
    agent = config.agent
    warmup = agent.warmup if isinstance(config, DQN) else min(agent.warmup, agent.capacity)
    return schedules.caution(warmup, config.run, config.loop.steps_per_update)


def check(config: AnyConfig) -> None:
    """Raises ValueError for errors that would only show after compilation, or never."""
    checks.config(config)
    if isinstance(config, DQN) and config.agent.categorical:
        raise ValueError("agent.categorical needs a network of atoms, which only Snake has")


def idle(config: AnyConfig) -> dict[str, str]:
    """Fields of the network that have no effect in an environment, and why.

    Raises ValueError for one that cannot be made.
    """
    task = environments.make(config.env)
    reasons = {} if task.shows_images else {"network.channels": "it needs images"}
    if family(task) == "continuous" or has_parts(task.action):
        reasons["network.shared"] = "it needs a preset of ppo and discrete actions"
    return reasons
