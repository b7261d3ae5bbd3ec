"""The configuration of `train.two_snake`: game, opponents, network, learner; presets."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import jax

from envs.two_snake.env import MOVED, Params, TwoSnake
from envs.two_snake.observations import OBSERVATIONS
from envs.two_snake.rewards import Rewards
from jaxrl import checks
from jaxrl.agents import dqn, ppo
from jaxrl.checks import Count, Range
from jaxrl.dependent_fields import needs, never, sets
from jaxrl.loop import Config as LoopConfig
from jaxrl.networks.mirror import have_pairs
from jaxrl.wrappers import self_play
from train.host import schedules
from train.host.device_presets import wide_preset
from train.host.program import Preset
from train.host.training import PlayConfig
from train.two_snake.curriculum import Curriculum, Stage, Weights
from train.two_snake.curriculum import check as check_curriculum


@dataclass(frozen=True)
class Game:
    """The board, the observation and the rewards."""

    rows: Annotated[int, Range(least=4, most=32)] = 10
    """Height of the board, 4 to 32 cells."""
    cols: Annotated[int, Range(least=9, most=32)] = 10
    """Width of the board, 9 to 32 cells."""
    snakes: Annotated[int, Range(least=2, most=4)] = 2
    """Snakes on the board, all but the learner moved by the opponent of the episode."""
    observation: Literal["features", "near", "planes"] = "near"
    """What all snakes see; envs/two_snake/observations.py says what is in each."""
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
    """Share all hidden layers between policy and value; with PPO."""
    mask: bool = True
    """Mask moves into a wall or a body, unless all are; with PPO, and not with `planes`."""
    equivariant: bool = False
    """Treat left and right alike by the weights, so that the policy of a mirrored game is the
    mirrored policy; with PPO, `shared` and `near`. Others are as without it."""
    dueling: bool = False
    """Estimate the state value and the advantages of actions separately; with DQN."""


OF_PPO = never("it needs a preset of PPO").of("shared", "equivariant")
OF_DQN = never("it needs a preset of DQN").of("dueling")
STATIC = Stage(Weights(static=1.0), won=0.95, share=0.02)
RANDOM = Stage(Weights(static=0.1, random=1.0), won=0.95, share=0.03)
GREEDY = Stage(Weights(random=0.1, greedy=1.0), won=0.8, share=0.4)
FROZEN = Stage(Weights(greedy=0.5, rival=1.0), won=0.75, share=0.15)
POOL = Stage(Weights(static=0.3, random=0.1, greedy=0.9, defensive=0.6, rival=1.0), share=1.0)


@dataclass(frozen=True)
class Config:
    """The fields of every preset."""

    env: Game = Game()
    network: Network = Network()
    anneal: Annotated[bool, sets("agent.anneal_updates")] = True
    """Let learning rate and entropy weight fall to zero over the budget."""
    curriculum: Curriculum = field(
        default_factory=lambda: Curriculum(STATIC, RANDOM, GREEDY, FROZEN, POOL)
    )
    rivals: Annotated[
        self_play.Config, needs("curriculum.has_rival", why="no stage has a rival")
    ] = field(default_factory=self_play.Config)
    opponent: Annotated[str, needs("curriculum.has_guest", why="no stage has a guest")] = ""
    """A trained snake to be met as `guest`: a run directory, a policy file, or a name that `python
    -m train.policies list` shows. Of a run of several seeds it is the first; `python -m
    train.policies export` makes a file of another. Its network may be any. Keep the file until the
    run has ended."""
    loop: LoopConfig = LoopConfig(num_envs=512, num_steps=64)
    run: PlayConfig = field(
        default_factory=lambda: PlayConfig(total_steps=10_000_000, evaluate_every=10)
    )


@dataclass(frozen=True)
class PPO(Config):
    """Trains a snake to beat another one on the same board, by PPO."""

    network: Annotated[Network, OF_DQN] = Network(equivariant=True)
    agent: Annotated[
        ppo.Config,
        never("the reward of two snakes has no components").of("component_weights"),
    ] = ppo.Config(learning_rate=3e-3, discount=0.995, epochs=1, minibatches=16)


@dataclass(frozen=True)
class DQN(schedules.Shares, Config):
    """Trains a snake to beat another one on the same board, by deep Q-learning."""

    agent: dqn.Config = dqn.Config(
        learning_rate=5e-4,
        discount=0.99,
        batch_size=256,
        updates_per_rollout=16,
        capacity=500_000,
        warmup=20_000,
        n_step=3,
        epsilon_transitions=1_000_000,
    )
    network: Annotated[Network, OF_PPO] = Network(mask=False, dueling=True)
    env: Game = Game(observation="features")
    loop: LoopConfig = LoopConfig(num_envs=256, num_steps=4)
    run: PlayConfig = field(
        default_factory=lambda: PlayConfig(total_steps=5_000_000, evaluate_every=10)
    )


AnyConfig = PPO | DQN


class Duel(TwoSnake):
    """The game for training: it ends when the learner dies, and reports which opponent was beaten.

    `info["outcome"]` has `met_NAME` and `won_NAME` for every opponent, both bool, in the place of
    its index, of which a mean over games would say nothing.
    """

    def transition(
        self, chance: dict[str, jax.Array], state: Any, action: jax.Array, params: Params
    ) -> tuple[Any, jax.Array, jax.Array, dict[str, Any]]:
        after, reward, is_over, info = super().transition(chance, state, action, params)
        del info["outcome"]["opponent"]
        for i, name in enumerate(self.opponents):
            met = after.opponent == i
            info["outcome"] |= {f"met_{name}": met, f"won_{name}": met & info["outcome"]["won"]}
        return after, reward, is_over, info


def check(config: AnyConfig) -> None:
    """Raises ValueError for errors that would only show after compilation, or never."""
    checks.config(config)
    check_curriculum(config.curriculum)
    if reflection(config) and not have_pairs(config.network.hidden):
        raise ValueError("network.equivariant needs even widths in network.hidden, one at least")
    if isinstance(config, DQN) and config.network.mask:
        raise ValueError("network.mask needs a preset of PPO: leave it out")
    if isinstance(config, DQN) and config.agent.categorical:
        raise ValueError("agent.categorical needs a network with atoms, which two snakes have not")
    if config.curriculum.has_guest and not config.opponent:
        raise ValueError("a stage has the opponent guest: say who that is with --opponent")


def reflection(config: AnyConfig) -> Callable[[jax.Array], jax.Array] | None:
    """`obs -> obs` of the mirrored game, for a network that treats left and right alike.

    None for a dense one: where that is not asked for, or the observation has no mirror.
    """
    network = config.network
    if not (isinstance(config, PPO) and network.equivariant and network.shared):
        return None
    return OBSERVATIONS[config.env.observation].reflect


def follows_budget(config: AnyConfig) -> bool:
    """Whether a schedule ends with the budget, or with a share of it."""
    has_share = isinstance(config, DQN) and config.has_share
    return has_share or config.anneal or len(config.curriculum.stages()) > 1


def caution(config: AnyConfig) -> str:
    """What is said of a configuration that learns nothing."""
    if not isinstance(config, DQN):
        return ""
    return schedules.caution(config.agent.warmup, config.run, config.loop.steps_per_update)


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
        rival=any(name in opponents for name in MOVED),
        ends_with_learner=True,
        snakes=game.snakes,
    )
    params = replace(env.default_params, rewards=game.rewards)
    return env, replace(params, max_steps_in_episode=game.max_steps_in_episode)


def single_stage(stage: Stage, name: str) -> Curriculum:
    """A curriculum of one stage."""
    absent_stages = {
        "static": replace(STATIC, share=0.0),
        "random": replace(RANDOM, share=0.0),
        "greedy": replace(GREEDY, share=0.0),
        "frozen": replace(FROZEN, share=0.0),
        "pool": replace(POOL, share=0.0),
    }
    return Curriculum(**absent_stages | {name: replace(stage, share=1.0)})


PRESETS: dict[str, Preset] = {
    "curriculum": Preset(
        PPO(),
        "Five stages, from an opponent that lies still to a pool of former selves.",
        wide="curriculum_wide",
    ),
    "curriculum_wide": wide_preset(
        PPO(rivals=self_play.Config(snapshot_updates=12)),
        8192,
        16,
        "The same in the shape for GPUs and TPUs: more games, shorter rollouts.",
        minibatches=64,
    ),
    "direct": Preset(
        PPO(curriculum=single_stage(Stage(Weights(rival=1.0)), "pool")),
        "Self-play from the first step.",
    ),
    "greedy": Preset(
        PPO(curriculum=single_stage(Stage(Weights(greedy=1.0)), "greedy")),
        "Only the scripted opponent that takes the shortest path to the food.",
    ),
    "guest": Preset(
        PPO(curriculum=single_stage(Stage(Weights(guest=1.0)), "pool"), opponent="two-snakes"),
        "Only the trained snake of --opponent, by default the one of the library.",
    ),
    "dqn": Preset(
        DQN(explore_share=0.2, importance_share=1.0),
        "The five stages by deep Q-learning.",
    ),
}
