"""The configuration of goals and options without cells, and the arms in open space."""

from dataclasses import dataclass, field
from typing import Annotated

import tyro
from flax import linen as nn

from jaxrl import checks
from jaxrl.agents import ppo
from jaxrl.checks import Count, CountOrZero, Positive, Seed
from jaxrl.dependent_fields import needs, never
from jaxrl.loop import Config as LoopConfig
from jaxrl.networks.mlp import MLP, GaussianActorCritic
from jaxrl.spectral.learning.encoder import Fourier
from jaxrl.types import Agent
from train.host import training as settings

ARMS = ("none", "straight line", "learned distance", "fewest moves")
"""What rewards of goals are shaped by: distances to the goal, but for the first."""
SCORED = "learned distance"
WAVES = 4
"""Frequencies of the Fourier features that learners see of each coordinate."""
LIMIT = 100
"""Steps of an episode."""
RADIUS = 0.5
"""How near to a goal is there, in tiles."""


@dataclass(frozen=True)
class SpaceConfig:
    """Learns to reach random goals, and to climb eigenvectors, by PPO.

    The eigenvectors are those of a run of train.allo on positions or pictures, or in an environment
    of env.id. Goals are reached with rewards shaped by the learned distance, by others, and by
    none; each option climbs or descends an eigenvector.
    """

    learned: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="RUN")] = ""
    """Directory of a run of train.allo without cells, of which the first seed is taken; its flag
    may be left out where it stands first, after the preset, or after the value of another flag:
    python -m train.goals RUN."""
    goals: CountOrZero = 4
    """Different goals, drawn at random; each has a learner for each distance
    that shapes rewards, and one without shaping."""
    task_seed: Annotated[Seed | None, tyro.conf.arg(metavar="INT")] = None
    """Seed by which goals are drawn; None: run.seed, in a sweep that of its first members."""
    options: CountOrZero = 4
    """Eigenvectors after the constant one; of each, one learner goes up and another one down."""
    weight: Annotated[Positive, needs("goals")] = 1.0
    """Shaping reward for the whole way from the farthest place to a goal."""
    hidden: tuple[Count, ...] = (64, 64)
    """Width of each layer of a learner, whose policy and value are apart."""
    agent: Annotated[
        ppo.Config, never("these rewards have no components").of("component_weights")
    ] = ppo.Config(learning_rate=1e-3, discount=0.97, gae_lambda=0.95, epochs=4, minibatches=4)
    loop: LoopConfig = LoopConfig(num_envs=16, num_steps=64)
    run: settings.Config = field(
        default_factory=lambda: settings.Config(seed=3, total_steps=100_000, chunk_steps=10_240)
    )


def check(config: SpaceConfig) -> None:
    """Raises ValueError for invalid numbers and without a run."""
    checks.config(config)
    if not config.learned:
        raise ValueError("expected the directory of a run of train.allo: python -m train.goals RUN")
    if not config.goals and not config.options:
        raise ValueError("there are no goals and no options: ask for some")


def make_network(config: SpaceConfig) -> nn.Module:
    """Policy and value of a learner in open space; it sees its position."""
    torso = nn.Sequential((Fourier(WAVES), MLP(config.hidden)))
    return GaussianActorCritic(torso, torso.copy(), 2, low=(-1.0, -1.0), high=(1.0, 1.0))


def make_agent(config: SpaceConfig, network: nn.Module, greedy: bool = False) -> Agent:
    """A learner."""
    return ppo.make(network, config.agent, greedy, config.loop.blocks)
