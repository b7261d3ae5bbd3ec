"""The configuration of `train.durotaxis`: experiment, network, learner."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

import numpy as np

from envs.durotaxis import placement
from envs.durotaxis.actions import FIXED, PARAMETERS, Bounds, Form, Spawn, Spawning
from envs.durotaxis.actions import names as names_of_action
from envs.durotaxis.env import Durotaxis, Ground, Params
from envs.durotaxis.parents import Deletion
from envs.durotaxis.placement import Placement
from envs.durotaxis.rewards import registry
from envs.durotaxis.rewards.registry import RewardSet
from envs.durotaxis.substrate import Law, Ranges
from jaxrl import checks
from jaxrl.agents import ppo
from jaxrl.checks import Count, CountOrZero, NonNegative, Positive, Range, Share
from jaxrl.dependent_fields import needs, sets, unless
from jaxrl.loop import Config as LoopConfig
from train.durotaxis.field import read_field
from train.host.training import PlayConfig

Stiffness = Annotated[float, Range(least=-1e6, most=1e6)]
Width = Annotated[int, Range(least=20, most=10**6)]
Height = Annotated[int, Range(least=5, most=10**6)]
OF_LAWS = unless("field_file", why="the ground is that of {}field_file")
OF_FILES = needs("field_file")
NOT_OF_RANDOM = unless("ground", "random", why="random ground is drawn from {}ranges")
OF_LENGTHS = "it needs {}units physical or {}field_pixel_size"
OF_RECOVERY = needs("recovery_nodes")


@dataclass(frozen=True)
class Experiment:
    """The colony, its ground, its actions and its rewards."""

    ground: Annotated[Ground, OF_LAWS] = "linear"
    """Stiffness m x + b, b exp(m x), or one of them with new numbers in every episode."""
    slope: Annotated[Stiffness, OF_LAWS, NOT_OF_RANDOM] = 0.05
    """m, per px."""
    base: Annotated[Stiffness, OF_LAWS, NOT_OF_RANDOM] = 1.0
    """b."""
    ranges: Annotated[
        Ranges, unless("field_file", why="it needs {}ground random"), needs("ground", "random")
    ] = Ranges()
    """The ranges that random ground is drawn from."""
    field_file: str = ""
    """Measured stiffness instead: an .npy file, [height, width], or an image in grey (.png, .tif).
    It sets the size of the ground."""
    field_pixel_size: Annotated[Positive | None, OF_FILES] = None
    """Width of a pixel of that file, µm; the ground is then resampled to its own pixels, of
    `pixel_size` each. None: they are the same."""
    field_range: Annotated[tuple[NonNegative, NonNegative] | None, OF_FILES] = None
    """Stiffness of black and of white in an image."""
    goal: str = "right"
    """Where the colony is to go, from the opposite side: right, left, up, down, or degrees
    counter-clockwise from right. A law rises towards the goal; a measured field stays as it is.
    What is said of right and left, of actions and rewards, then means towards the goal and away
    from it."""
    width: Annotated[Width, OF_LAWS] = 600
    """Width of the ground, px."""
    height: Annotated[Height, OF_LAWS] = 400
    """Height of the ground, px."""
    num_founders: Count = 5
    """Nodes at the start."""
    capacity: Annotated[int, Range(least=1, most=10_000)] = 100
    """Largest number of nodes (the size of the arrays)."""
    threshold_nodes: Positive = 100.0
    """Number of nodes above which the episode ends."""
    critical_nodes: Positive = 50.0
    """Number of nodes above which rewards count a colony as too large."""
    spawning: Spawning = "directed"
    """directed: children in one direction, which is part of the action. isotropic: in any
    direction."""
    action: Form = "global"
    """global: share of nodes to delete and spawn parameters. ratio: that share alone. nodes: a
    choice for every node."""
    deletion: Deletion = "forest"
    """What becomes of a deleted node's children. forest: they go to its parent. tree: the leftmost
    takes its place, so that the colony stays one tree."""
    bounds: Bounds = Bounds()
    """Lower and upper bound of each number in an action."""
    spawn: Annotated[Spawn, needs("spawning", "directed").of("theta")] = FIXED["directed"]
    """Spawn parameters where the action is the share alone, and in the first of two stages."""
    observation: Literal["full", "local"] = "full"
    """local: without hull and centrality, which need all pairs of nodes."""
    weights: RewardSet = field(default_factory=lambda: registry.weights_of("distance"))
    """Weights of the components of the reward."""
    delay: NonNegative = 3.0
    """Rewards of deletion ask for nodes that are at least this + 1 steps old; with state_machine:
    steps from a mark to its deadline."""
    delta_intensity: float = 2.5
    """Least gain in stiffness from parent to child for a spawn to count as a success; with
    shaping_spawn: least stiffness of the ground of nodes that count."""
    left_moves_limit: Count = 30
    """The episode ends after so many steps in a row with the centroid moving left, away from the
    goal."""
    recovery_nodes: CountOrZero = 0
    """Nodes that an empty colony begins again with, around its old centroid; 0: it has ended."""
    max_recoveries: Annotated[Count, OF_RECOVERY] = 2
    """How often in an episode an empty colony may begin again."""
    recovery_price: Annotated[NonNegative, OF_RECOVERY] = 0.5
    """Price of each new beginning, as a share of that of an empty colony."""
    max_steps_in_episode: Count = 1000
    """Steps after which an episode is truncated."""
    units: Literal["px", "physical"] = "px"
    """px: tables and pictures are in px and units of stiffness. physical: in µm and kPa."""
    pixel_size: Annotated[
        Positive,
        needs("units", "physical") | unless("field_pixel_size", None, why=OF_LENGTHS),
    ] = 1.0
    """Width of a px of the ground, µm."""
    stiffness_unit: Annotated[Positive, needs("units", "physical")] = 1.0
    """Unit of stiffness, kPa."""


@dataclass(frozen=True)
class Network:
    """Message passing with a token that attends to all nodes, or a plain mean of the nodes."""

    torso: Literal["graph", "pooled"] = "graph"
    """graph: messages between parents and children; pooled: each node by itself, then a mean."""
    width: Count = 32
    """Width of every layer."""
    layers: Count = 1
    """Rounds of message passing, or layers before the mean."""
    heads: Annotated[Count, needs("torso", "graph")] = 2
    """Attention heads of the token."""


@dataclass(frozen=True)
class Curriculum:
    """A goal that moves away, and spawn parameters that are held, while the colony learns."""

    first_width: Annotated[float, Range(least=20.0, most=1e6)] | None = None
    """Width of the ground at the start, px; None: always the full width."""
    share: Annotated[
        float,
        Range(above=0.0, most=1.0),
        unless("first_width", None, why="it needs {}first_width"),
    ] = 0.5
    """Share of the budget after which the ground has its full width."""
    hold_spawn: Share = 0.0
    """Share of the budget in which deletion alone is learned: the spawn parameters of the action
    are then held at `env.spawn`."""


@dataclass(frozen=True)
class Config:
    """Trains a colony of cells to climb a gradient of stiffness, by PPO on graphs."""

    env: Annotated[
        Experiment,
        (
            needs("env.action", "ratio", why="it needs env.action ratio")
            | needs("curriculum.hold_spawn")
        ).of("spawn"),
    ] = field(default_factory=Experiment)
    network: Network = Network()
    agent: ppo.Config = ppo.Config(
        learning_rate=1e-3, discount=0.99, entropy_weight=0.003, epochs=2, minibatches=32
    )
    anneal: Annotated[bool, sets("agent.anneal_updates")] = True
    """Let learning rate and entropy weight fall to zero over the budget."""
    curriculum: Curriculum = Curriculum()
    loop: LoopConfig = LoopConfig(num_envs=64, num_steps=32)
    run: PlayConfig = field(
        default_factory=lambda: PlayConfig(
            total_steps=200_000, chunk_steps=10_000, evaluate_every=4
        )
    )


def make_env(experiment: Experiment) -> tuple[Durotaxis, Params]:
    """The environment and its parameters. Raises ValueError for invalid settings."""
    # What shapes the arrays, and is compiled.
    env = Durotaxis(
        capacity=experiment.capacity,
        num_founders=experiment.num_founders,
        ground=experiment.ground,
        spawning=experiment.spawning,
        action=experiment.action,
        reward_set=name_of(experiment.weights),
        observation=experiment.observation,
        deletion=experiment.deletion,
        recovery_nodes=experiment.recovery_nodes,
    )
    # Numbers, which may change without another compilation.
    ground, goal_placement = ground_of(experiment)
    params = Params(
        law=Law(
            exponential=np.bool_(experiment.ground == "exponential"),
            slope=experiment.slope,
            base=experiment.base,
        ),
        weights=experiment.weights,
        spawn=experiment.spawn,
        field=ground,
        ranges=experiment.ranges,
        bounds=experiment.bounds,
        width=float(goal_placement.length),
        height=float(goal_placement.breadth),
        critical_nodes=experiment.critical_nodes,
        threshold_nodes=experiment.threshold_nodes,
        delay=experiment.delay,
        delta_intensity=experiment.delta_intensity,
        left_moves_limit=experiment.left_moves_limit,
        max_recoveries=experiment.max_recoveries,
        recovery_price=experiment.recovery_price,
        max_steps_in_episode=experiment.max_steps_in_episode,
    )
    env.check(params)
    return env, params


def ground_of(experiment: Experiment) -> tuple[np.ndarray, Placement]:
    """Measured stiffness as the colony meets it, and where its ground lies in what was measured.

    Raises ValueError for a file without stiffness and for an unknown goal.
    """
    scale = experiment.field_pixel_size
    scale = None if scale is None else scale / experiment.pixel_size
    stiffness = read_field(experiment.field_file, scale, experiment.field_range)
    height, width = stiffness.shape if stiffness.size else (experiment.height, experiment.width)
    goal_placement = placement.place(experiment.goal, width, height)
    return placement.rotate_field(stiffness, goal_placement), goal_placement


def name_of(weights: RewardSet) -> str:
    """The name of the reward set that the weights belong to."""
    return next(name for name, kind in registry.SETS.items() if isinstance(weights, kind))


def check(config: Config) -> None:
    """Raises ValueError for errors that would only show after compilation, or never."""
    checks.config(config)
    if holds_spawn(config):
        check_held(config.env)


def holds_spawn(config: Config) -> bool:
    """Whether spawn parameters are held at first."""
    return checks.may_be_positive(config.curriculum.hold_spawn)


def held_spawn(env: Experiment) -> tuple[float, ...]:
    """The values that the spawn parameters of the action are held at, in their order."""
    return tuple(getattr(env.spawn, name) for name in PARAMETERS[env.spawning])


def check_held(env: Experiment) -> None:
    """Raises ValueError for an action without spawn parameters, and for values out of bounds."""
    if env.action == "ratio":
        raise ValueError(
            "curriculum.hold_spawn holds spawn parameters, but env.action ratio has none: choose "
            "env.action global or nodes"
        )
    for name, value in zip(PARAMETERS[env.spawning], held_spawn(env), strict=True):
        low, high = getattr(env.bounds, name)
        checks.number(f"env.spawn.{name}", value, least=low, most=high)


def idle(config: Config) -> dict[str, str]:
    """The bounds of numbers that the action does not have, and that it has none."""
    action = config.env.action
    names = set(names_of_action(action, config.env.spawning))
    others = [x.name for x in fields(config.env.bounds) if x.name not in names]
    return {f"env.bounds.{name}": f"env.action {action} has no such number" for name in others}
