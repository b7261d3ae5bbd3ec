"""The configuration of `train.two_snake`: game, opponents, network, learner; presets."""

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

import jax
from flax import linen as nn

from envs.two_snake.env import RIVAL, Params, TwoSnake
from envs.two_snake.observations import OBSERVATIONS
from envs.two_snake.rewards import Rewards
from jaxrl import checks, self_play
from jaxrl.agents import ppo
from jaxrl.checks import Count, Range
from jaxrl.loop import Config as LoopConfig
from jaxrl.networks.conv import Conv
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.types import Agent
from train.host import settings
from train.two_snake.curriculum import Curriculum, Stage, Weights
from train.two_snake.curriculum import check as check_curriculum


@dataclass(frozen=True)
class Game:
    """The board, the observation and the rewards."""

    rows: Annotated[int, Range(least=4, most=20)] = 10
    """Height of the board, 4 to 20 cells."""
    cols: Annotated[int, Range(least=9, most=20)] = 10
    """Width of the board, 9 to 20 cells."""
    observation: Literal["features", "planes"] = "features"
    """What both snakes see; envs/two_snake/observations.py says what is in each."""
    max_steps_in_episode: Count = 1000
    """Steps after which a game is a draw."""
    rewards: Rewards = Rewards(
        food=1.0, opponent_food=-0.5, death=-1.0, win=3.0, lose=-3.0, draw=-2.0, shaping=0.01
    )
    """Rewards of moves, food, deaths and the end of a game."""


@dataclass(frozen=True)
class Network:
    """Dense layers; for `planes` two convolutions come first."""

    hidden: tuple[Count, ...] = (128, 128)
    """Width of each hidden layer."""
    shared: bool = True
    """Share all hidden layers between policy and value."""
    mask: bool = True
    """Mask moves into a wall or a body, unless all are; not with `planes`."""


STATIC = Stage(Weights(static=1.0), won=0.95, share=0.02)
RANDOM = Stage(Weights(static=0.1, random=1.0), won=0.95, share=0.03)
GREEDY = Stage(Weights(random=0.1, greedy=1.0), won=0.8, share=0.4)
FROZEN = Stage(Weights(greedy=0.5, rival=1.0), won=0.75, share=0.15)
POOL = Stage(Weights(static=0.3, random=0.1, greedy=0.9, defensive=0.6, rival=1.0), share=1.0)


@dataclass(frozen=True)
class Config:
    """Trains a snake to beat another one on the same board, by PPO."""

    env: Game = Game()
    network: Network = Network()
    agent: ppo.Config = ppo.Config(discount=0.995)
    anneal: bool = True
    """Let learning rate and entropy weight fall to zero over the budget."""
    curriculum: Curriculum = field(
        default_factory=lambda: Curriculum(STATIC, RANDOM, GREEDY, FROZEN, POOL)
    )
    rivals: self_play.Config = field(default_factory=self_play.Config)
    loop: LoopConfig = LoopConfig(num_envs=512, num_steps=64)
    run: settings.PlayConfig = field(
        default_factory=lambda: settings.PlayConfig(total_steps=20_000_000, evaluate_every=10)
    )


class Duel(TwoSnake):
    """The game for training: it ends when the learner dies, and reports which opponent was beaten.

    `info["outcome"]` has `met_NAME` and `won_NAME` for every opponent, both bool.
    """

    def transition(
        self, chance: dict[str, jax.Array], state: Any, action: jax.Array, params: Params
    ) -> tuple[Any, jax.Array, jax.Array, dict[str, Any]]:
        after, reward, is_over, info = super().transition(chance, state, action, params)
        for i, name in enumerate(self.opponents):
            met = after.opponent == i
            info["outcome"] |= {f"met_{name}": met, f"won_{name}": met & info["outcome"]["won"]}
        return after, reward, is_over, info


def check(config: Config) -> None:
    """Raises ValueError for errors that would only show after compilation, or never."""
    checks.config(config)
    check_curriculum(config.curriculum)


def idle(config: Config) -> dict[str, str]:
    """Fields that have no effect with a configuration, and why."""
    found = {"agent.component_weights": "the reward of two snakes has no components"}
    if config.anneal:
        found["agent.anneal_updates"] = "anneal sets it"
    if RIVAL not in config.curriculum.opponents():
        found |= {f"rivals.{f.name}": "no stage has a rival" for f in fields(config.rivals)}
    for stage in fields(config.curriculum):
        if stage.name not in config.curriculum.stages():
            where, why = f"curriculum.{stage.name}", "a stage of share 0 never begins"
            found |= {f"{where}.{name}": why for name in ("target", "won")}
            found |= {f"{where}.opponents.{f.name}": why for f in fields(Weights)}
    return found


def total_updates(config: Config) -> int:
    """The budget in updates."""
    return config.run.total_updates(config.loop.steps_per_update)


def make_env(config: Config) -> tuple[Duel, Params]:
    """The game for training; a stage sets its opponents and target."""
    game, opponents = config.env, config.curriculum.opponents()
    env = Duel(
        game.rows,
        game.cols,
        game.observation,
        opponents=opponents,
        rival=RIVAL in opponents,
        ends_with_learner=True,
    )
    params = replace(env.default_params, rewards=game.rewards)
    return env, replace(params, max_steps_in_episode=game.max_steps_in_episode)


def make_network(config: Config) -> ActorCritic:
    """Policy and value of the next move."""
    observation = OBSERVATIONS[config.env.observation]
    torso: nn.Module = MLP(config.network.hidden)
    if observation.needs_order:
        torso = nn.Sequential((Conv(), torso))
    allowed = observation.safe if config.network.mask else None
    return ActorCritic(torso, TwoSnake().num_actions, allowed, config.network.shared)


def make_agent(config: Config) -> Agent:
    """A PPO learner; if there is a rival, with the self-play that moves it."""
    agent_config, network = config.agent, make_network(config)
    if config.anneal:
        agent_config = replace(agent_config, anneal_updates=float(total_updates(config)))
    agent = ppo.make(network, agent_config, blocks=config.loop.blocks)
    if RIVAL not in config.curriculum.opponents():
        return agent

    def respond(params: Any, obs: jax.Array, key: jax.Array) -> jax.Array:
        return network.apply(params, obs)[0].sample(key)

    return self_play.make(agent, respond, config.rivals)


PRESETS = {
    "curriculum": Config(),
    "direct": Config(
        curriculum=Curriculum(
            static=replace(STATIC, share=0.0),
            random=replace(RANDOM, share=0.0),
            greedy=replace(GREEDY, share=0.0),
            frozen=replace(FROZEN, share=0.0),
            pool=Stage(Weights(rival=1.0), share=1.0),
        )
    ),
    "greedy": Config(
        curriculum=Curriculum(
            static=replace(STATIC, share=0.0),
            random=replace(RANDOM, share=0.0),
            greedy=Stage(Weights(greedy=1.0), share=1.0),
            frozen=replace(FROZEN, share=0.0),
            pool=replace(POOL, share=0.0),
        )
    ),
}

SUMMARIES = {
    "curriculum": "Five stages, from an opponent that lies still to a pool of former selves.",
    "direct": "Self-play from the first step.",
    "greedy": "Only the scripted opponent that takes the shortest path to the food.",
}
"""What each preset is."""
