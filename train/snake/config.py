"""The configuration of `train.snake`: game, network, algorithm and budget."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import jax
from flax import linen as nn

from envs.snake.env import Params, Snake
from envs.snake.observations import OBSERVATIONS
from envs.snake.rewards import Rewards
from jaxrl import checks
from jaxrl.agents import dqn, ppo, pqn
from jaxrl.checks import Count, CountOrZero, NonNegative, Range, Share
from jaxrl.dependent_fields import needs, never, sets, unless
from jaxrl.loop import Config as LoopConfig
from jaxrl.networks.conv import Conv
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mirror import MirrorActorCritic, have_pairs
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.types import Agent
from train.host import schedules
from train.host.numbers import quantity
from train.host.training import PlayConfig

REWARDS = Rewards(step=-0.001, food=1.0, death=-1.0, shaping=0.0, timeout=0.0)

Side = Annotated[int, Range(least=4, most=32)]  # cells
StepsOrZero = Annotated[int, Range(least=0, most=10**15)]


@dataclass(frozen=True)
class Game:
    """The board, the rules, the observation and the rewards."""

    rows: Side = 10
    """Height of the board, 4 to 32 cells."""
    cols: Side = 10
    """Width of the board, 4 to 32 cells."""
    observation: Literal[
        "features",
        "flood",
        "selective",
        "enhanced",
        "tail",
        "near",
        "far",
        "gaps",
        "compass",
        "board",
        "planes",
        "egocentric",
    ] = "tail"
    """What the agent sees; envs/snake/observations/registry.py says what is in each."""
    rules: Literal["classic", "modern"] = "classic"
    """classic: the tail kills, no win. modern: follow the tail, win on a full board, starve."""
    actions: Literal["relative", "absolute"] = "relative"
    """relative: forward, left, right. absolute: up, right, down, left."""
    obstacles: CountOrZero = 0
    """Cells closed to the snake, drawn anew for every game: at most (rows × cols - 15) / 9, such
    as 9 on a board of 10 × 10."""
    foods: Count = 1
    """Pieces of food on the board at a time."""
    max_steps_in_episode: Count = 1000
    """Steps after which a game is truncated."""
    rewards: Rewards = REWARDS
    """Rewards of moves, food and deaths."""
    mirror: bool = False
    """In training, mirror half of the games, left for right."""
    grown_share: Share = 0.0
    """In training, share of the games that start with a snake of random length. Their score, in the
    record and the learning curve, counts the cells that it begins with, too."""
    late_share: Share = 0.0
    """In training, share of the games that begin where an earlier one was late, with a tenth to
    half of the cells free. Their score counts as that of grown ones."""
    smallest_side: CountOrZero = 0
    """In training, draw the rows of each game from this number to `rows`, and the columns from it
    to `cols`; 0: all games have `rows` and `cols`."""
    square_boards: Annotated[bool, needs("smallest_side")] = False
    """In training, draw one number for rows and columns alike, up to the shorter side. About half
    of the boards then have two odd sides; where both are drawn, about a quarter have."""
    sees_entrapment: bool = False
    """Append to the observation whether the snake is softly entrapped; not to images."""
    entrapment_threshold: Annotated[
        Share, unless("entrapment", "off", why="entrapment is neither seen nor paid for")
    ] = 0.3
    """Where no move leads to as large a share of the free cells, the snake is softly entrapped."""

    @property
    def entrapment(self) -> Literal["off", "judged", "seen"]:
        """What is made of soft entrapment: it costs a flood fill, so nothing unless it matters."""
        if self.sees_entrapment:
            return "seen"
        weights = self.rewards.entrapment, self.rewards.entrapped_food
        return "judged" if any(checks.may_be_positive(abs(x)) for x in weights) else "off"


@dataclass(frozen=True)
class Network:
    """Dense layers; for `planes` and `egocentric` two convolutions come first."""

    hidden: tuple[Count, ...] = (128, 128)
    """Width of each hidden layer."""
    layer_norm: bool = False
    """Apply layer normalisation before each activation."""
    shared: bool = True
    """Share all hidden layers between policy and value; with PPO."""
    equivariant: bool = False
    """Treat left and right alike by the weights, so that the policy of a mirrored game is the
    mirrored policy. Without effect unless with PPO, `shared`, no `layer_norm`, relative actions, no
    `sees_entrapment`, and the observation `tail`, `near`, `far` or `gaps`."""
    mask: bool = False
    """Mask moves that kill at once, unless all do; with PPO, relative actions, and an observation
    that begins with the danger forward, left and right."""
    dueling: bool = False
    """Estimate the state value and the advantages of actions separately; with Q-learning."""
    noisy: bool = False
    """Explore by learned noise in all weights (noisy networks); with DQN."""
    atoms: Count = 1
    """Atoms of a learned distribution of returns, such as 51; 1: learn its mean; with DQN."""


OF_PPO = never("it needs a preset of ppo").of("shared", "equivariant")
NOT_DUELING = never("it needs a preset of dqn or pqn").of("dueling")
NO_COMPONENTS = never("the reward of Snake has no components").of("component_weights")
AnnealSteps = Annotated[StepsOrZero | None, sets("agent.anneal_updates", always=True)]


@dataclass(frozen=True)
class Config:
    """The fields of every preset."""

    env: Game = Game()
    network: Annotated[Network, OF_PPO] = Network()
    loop: LoopConfig = LoopConfig(num_envs=512, num_steps=64)
    run: PlayConfig = field(
        default_factory=lambda: PlayConfig(total_steps=30_000_000, evaluate_every=5)
    )


@dataclass(frozen=True)
class PPO(Config):
    """Learns Snake by policy gradients."""

    network: Annotated[Network, NOT_DUELING] = Network()
    agent: Annotated[ppo.Config, NO_COMPONENTS] = ppo.Config(discount=0.995)
    anneal_steps: AnnealSteps = None
    """Steps over which learning rate and entropy weight fall to zero and the discount moves to its
    final value; None: the budget; 0: never."""


@dataclass(frozen=True)
class PQN(Config):
    """Learns Snake by Q(λ) on fresh experience."""

    agent: pqn.Config = pqn.Config(discount=0.995, epsilon_end=0.0)
    network: Annotated[Network, OF_PPO] = Network(layer_norm=True)
    loop: LoopConfig = LoopConfig(num_envs=512, num_steps=32)
    anneal_steps: AnnealSteps = None
    """Steps over which the learning rate falls to zero; None: the budget; 0: never."""
    explore_share: Annotated[NonNegative, sets("agent.epsilon_updates")] = 0.5
    """Share of the budget over which epsilon, the share of random actions, falls."""


@dataclass(frozen=True)
class DQN(schedules.Shares, Config):
    """Learns Snake by deep Q-learning, with the sizes of the system with 256 games at once."""

    agent: dqn.Config = dqn.Config()
    anneal_steps: AnnealSteps = 0
    """Steps over which the learning rate falls to zero, from the end of the warm-up on; None: as
    many as the budget has; 0: never."""


AnyConfig = PPO | PQN | DQN


def check(config: AnyConfig) -> None:
    """Raises ValueError for errors that would only show after compilation, or never."""
    checks.config(config)
    network = config.network
    if network.mask and not (isinstance(config, PPO) and config.env.actions == "relative"):
        raise ValueError("network.mask needs PPO and env.actions relative: leave it out")
    if network.mask and OBSERVATIONS[config.env.observation].safe is None:
        names = ", ".join(name for name, view in OBSERVATIONS.items() if view.safe is not None)
        raise ValueError(
            "network.mask finds no danger forward, left and right in env.observation "
            f"{config.env.observation}: choose one of {names}, or leave it out"
        )
    if reflection(config) and not have_pairs(network.hidden):
        raise ValueError("network.equivariant needs even widths in network.hidden, one at least")
    if (network.noisy or network.atoms > 1) and not isinstance(config, DQN):
        raise ValueError("network.noisy and network.atoms need a preset of dqn: leave them out")
    if isinstance(config, DQN) and config.agent.categorical != (network.atoms > 1):
        raise ValueError(
            f"network.atoms is {network.atoms}, agent.categorical {config.agent.categorical}: "
            "a distribution needs both, such as 51 atoms"
        )


def environment(config: AnyConfig) -> str:
    """What a configuration learns in, for titles."""
    game = config.env
    smallest = f"{game.smallest_side}×{game.smallest_side} to " * (game.smallest_side > 0)
    return f"Snake {smallest}{board_text(game)}, {game.observation}"


def board_text(game: Game) -> str:
    """The board of a game, with what lies on it beyond one piece of food."""
    return layout_text(game.rows, game.cols, game.obstacles, game.foods)


def layout_text(rows: int, cols: int, obstacles: int, foods: int) -> str:
    """The same, such as `10×10 with 5 obstacles and 3 pieces of food`."""
    extras = [quantity(obstacles, "obstacles")] * (obstacles > 0)
    extras += [f"{foods:,} pieces of food"] * (foods > 1)
    return f"{rows}×{cols}" + f" with {' and '.join(extras)}" * bool(extras)


def as_played(game: Game) -> Game:
    """The game without what changes the games of training alone, which not every board allows."""
    return replace(
        game,
        mirror=False,
        grown_share=0.0,
        late_share=0.0,
        smallest_side=0,
        square_boards=False,
    )


def make_env(game: Game, training: bool) -> tuple[Snake, Params]:
    """The game for training, or the one for evaluation."""
    env = Snake(
        game.rows,
        game.cols,
        game.observation,
        game.rules,
        game.actions,
        mirror=game.mirror and training,
        grown_starts=training and checks.may_be_positive(game.grown_share),
        late_starts=training and checks.may_be_positive(game.late_share),
        entrapment=game.entrapment,
        crowding=checks.may_be_positive(abs(game.rewards.crowding)),
        obstacles=game.obstacles,
        foods=game.foods,
        smallest_side=game.smallest_side if training else 0,
        square_boards=game.square_boards and training,
    )
    return env, Params(
        max_steps_in_episode=game.max_steps_in_episode,
        rewards=game.rewards,
        grown_share=game.grown_share,
        late_share=game.late_share,
        entrapment_threshold=game.entrapment_threshold,
    )


def make_agent(config: AnyConfig, num_actions: int, greedy: bool = False) -> Agent:
    """The agent of a configuration."""
    network = config.network
    torso = MLP(network.hidden, layer_norm=network.layer_norm, noisy=network.noisy)
    if OBSERVATIONS[config.env.observation].is_image:
        torso = nn.Sequential((Conv(), torso))
    if isinstance(config, PPO):
        allowed = OBSERVATIONS[config.env.observation].safe if network.mask else None
        actor_critic = ActorCritic(torso, num_actions, allowed, network.shared)
        if reflect := reflection(config):
            actor_critic = MirrorActorCritic(network.hidden, reflect, allowed)
        return ppo.make(actor_critic, with_annealing(config), greedy, config.loop.blocks)
    q_network = QNetwork(
        torso, num_actions, network.dueling, noisy=network.noisy, atoms=network.atoms
    )
    if isinstance(config, PQN):
        return pqn.make(q_network, with_annealing(config), greedy, config.loop.blocks)
    return dqn.make(
        q_network, with_annealing(config), greedy, config.loop.num_envs, config.loop.blocks
    )


def reflection(config: AnyConfig) -> Callable[[jax.Array], jax.Array] | None:
    """`obs -> obs` of the mirrored game, for a network that treats left and right alike.

    None for a dense one: where that is not asked for, or the game or the network has no mirror.
    """
    game, network, view = config.env, config.network, OBSERVATIONS[config.env.observation]
    has_mirror = isinstance(config, PPO) and game.actions == "relative" and not view.is_image
    has_pairs = network.shared and not network.layer_norm
    if not (network.equivariant and has_mirror and has_pairs) or game.entrapment == "seen":
        return None
    return view.reflect


def with_annealing(config: AnyConfig) -> Any:
    """The configuration of the agent, with its schedules in updates."""
    per_update = config.loop.steps_per_update
    total_updates = float(config.run.total_updates(per_update))
    steps = config.anneal_steps
    updates = total_updates if steps is None else steps / per_update if steps else float("inf")
    if isinstance(config, DQN):
        agent = schedules.scheduled_agent(config.agent, config, config.run.total_steps)
        return replace(agent, anneal_updates=updates * agent.updates_per_rollout)
    agent = replace(config.agent, anneal_updates=updates)
    if isinstance(config, PQN):
        return replace(agent, epsilon_updates=config.explore_share * total_updates)
    return agent


def follows_budget(config: AnyConfig) -> bool:
    """Whether a schedule ends with the budget, or with a share of it."""
    has_share = isinstance(config, PQN) or (isinstance(config, DQN) and config.has_share)
    return has_share or config.anneal_steps is None


def caution(config: AnyConfig) -> str:
    """What is said of a configuration that learns nothing."""
    if not isinstance(config, DQN):
        return ""
    return schedules.caution(config.agent.warmup, config.run, config.loop.steps_per_update)
