"""The configuration of `train.durotaxis`: experiment, network, learner; presets."""

import sys
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Literal

import numpy as np

from envs.durotaxis import rewards
from envs.durotaxis.actions import FIXED, Bounds, Form, Spawn, Spawning
from envs.durotaxis.actions import names as names_of_action
from envs.durotaxis.env import Durotaxis, Ground, Params
from envs.durotaxis.rewards import RewardSet
from envs.durotaxis.substrate import Law, Ranges
from jaxrl import checks
from jaxrl.agents import ppo
from jaxrl.checks import Count, NonNegative, Positive, Range
from jaxrl.loop import Config as LoopConfig
from train.host import array_files, settings

LARGEST_STIFFNESS = 1e6

Stiffness = Annotated[float, Range(least=-1e6, most=1e6)]
Width = Annotated[int, Range(least=20, most=10**6)]
Height = Annotated[int, Range(least=5, most=10**6)]


@dataclass(frozen=True)
class Experiment:
    """The colony, its ground, its actions and its rewards."""

    ground: Ground = "linear"
    """Stiffness m x + b, b exp(m x), or one of them with new numbers in every episode."""
    slope: Stiffness = 0.05
    """m, per px."""
    base: Stiffness = 1.0
    """b."""
    ranges: Ranges = Ranges()
    """The ranges that random ground is drawn from."""
    field_file: str = ""
    """Measured stiffness instead: a .npy file with a row for every px of height and a column for
    every px of width. It sets the size of the ground."""
    width: Width = 600
    """Width of the ground, px; the goal is its right edge."""
    height: Height = 400
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
    bounds: Bounds = Bounds()
    """Lower and upper bound of each number in an action."""
    spawn: Spawn = FIXED["directed"]
    """Spawn parameters where the action is the share alone."""
    observation: Literal["full", "local"] = "full"
    """local: without hull and centrality, which need all pairs of nodes."""
    weights: RewardSet = field(default_factory=lambda: rewards.weights_of("distance"))
    """Weights of the components of the reward."""
    delay: NonNegative = 3.0
    """Steps that a node must exist before it can be marked for deletion."""
    delta_intensity: float = 2.5
    """Least gain in stiffness from parent to child for a spawn to count as a success."""
    left_moves_limit: Count = 30
    """The episode ends after so many steps in a row with the centroid moving left."""
    max_steps_in_episode: Count = 1000
    """Steps after which an episode is truncated."""


@dataclass(frozen=True)
class Network:
    """Message passing with a token that attends to all nodes, or a plain mean of the nodes."""

    torso: Literal["graph", "pooled"] = "graph"
    """graph: messages between parents and children; pooled: each node by itself, then a mean."""
    width: Count = 32
    """Width of every layer."""
    layers: Count = 1
    """Rounds of message passing, or layers before the mean."""
    heads: Count = 2
    """Attention heads of the token."""


@dataclass(frozen=True)
class Curriculum:
    """A goal that moves away while the colony learns."""

    first_width: Annotated[float, Range(least=20.0, most=1e6)] | None = None
    """Width of the ground at the start, px; None: always the full width."""
    share: Annotated[float, Range(above=0.0, most=1.0)] = 0.5
    """Share of the budget after which the ground has its full width."""


@dataclass(frozen=True)
class Config:
    """Trains a colony of cells to climb a gradient of stiffness, by PPO on graphs."""

    env: Experiment = field(default_factory=Experiment)
    network: Network = Network()
    agent: ppo.Config = ppo.Config(
        learning_rate=1e-3, discount=0.99, entropy_weight=0.003, epochs=2, minibatches=32
    )
    anneal: bool = True
    """Let learning rate and entropy weight fall to zero over the budget."""
    curriculum: Curriculum = Curriculum()
    loop: LoopConfig = LoopConfig(num_envs=64, num_steps=32)
    run: settings.PlayConfig = field(
        default_factory=lambda: settings.PlayConfig(
            total_steps=200_000, chunk_steps=10_000, evaluate_every=4
        )
    )


def make_env(experiment: Experiment) -> tuple[Durotaxis, Params]:
    """The environment and its parameters. Raises ValueError for invalid settings."""
    env = Durotaxis(
        capacity=experiment.capacity,
        num_founders=experiment.num_founders,
        ground=experiment.ground,
        spawning=experiment.spawning,
        action=experiment.action,
        reward_set=name_of(experiment.weights),
        observation=experiment.observation,
    )
    ground = read_field(experiment.field_file)
    height, width = ground.shape if ground.size else (experiment.height, experiment.width)
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
        width=float(width),
        height=float(height),
        critical_nodes=experiment.critical_nodes,
        threshold_nodes=experiment.threshold_nodes,
        delay=experiment.delay,
        delta_intensity=experiment.delta_intensity,
        left_moves_limit=experiment.left_moves_limit,
        max_steps_in_episode=experiment.max_steps_in_episode,
    )
    env.check(params)
    return env, params


def name_of(weights: RewardSet) -> str:
    """The name of the reward set that the weights belong to."""
    return next(name for name, kind in rewards.SETS.items() if isinstance(weights, kind))


def read_field(path: str) -> np.ndarray:
    """Stiffness `[height, width]`, float32; `[0, 0]` without a path. Says once what was read.

    Raises ValueError, in one line, for any other file, and for stiffness that is not finite, that
    float32 cannot hold, or that is negative or 0 everywhere.
    """
    if not path:
        return np.zeros((0, 0), np.float32)
    try:
        values = array_files.read_npy(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; expected one of numpy.save") from None
    except ValueError as error:
        raise ValueError(
            f"{path} is not an .npy file of numbers ({error}): write it with numpy.save"
        ) from None
    if values.ndim != 2:
        raise ValueError(f"{path} has the shape {values.shape}; expected float [height, width]")
    if not (np.isfinite(values).all() and np.all(np.abs(values) <= LARGEST_STIFFNESS)):
        raise ValueError(
            f"{path} has values that are not finite or beyond {LARGEST_STIFFNESS:g}; expected "
            "stiffness: fill the gaps, or divide"
        )
    if values.size and (values.min() < 0 or values.max() == 0):
        raise ValueError(
            f"{path} has stiffness from {values.min():g} to {values.max():g}; expected none below "
            "0 and some above: raise negative values to 0"
        )
    tell_of_field(path, *values.shape, values.size > 0 and float(np.ptp(values)) == 0)
    return values.astype(np.float32)


@cache
def tell_of_field(path: str, height: int, width: int, is_constant: bool) -> None:
    """Says, once for each file, how its cells relate to the ground."""
    flat = "; it is the same everywhere, so nothing leads the colony to the goal" * is_constant
    size = f"{width} px wide and {height} px high"
    print(f"{path}: every cell is one px, so the ground is {size}{flat}", file=sys.stderr)


def check(config: Config) -> None:
    """Raises ValueError for errors that would only show after compilation, or never."""
    checks.config(config)
    first = config.curriculum.first_width
    if first is not None:
        checks.number("curriculum.first_width", first, most=config.env.width)


def idle(config: Config) -> dict[str, str]:
    """Fields that have no effect with a configuration, and why."""
    env, found = config.env, {}
    if config.anneal:
        found["agent.anneal_updates"] = "anneal sets it"
    if config.curriculum.first_width is None:
        found["curriculum.share"] = "it needs curriculum.first_width"
    if config.network.torso == "pooled":
        found["network.heads"] = "it needs network.torso graph"
    if env.field_file:
        names = ("ground", "slope", "base", "width", "height")
        found |= {f"env.{name}": "the ground is that of env.field_file" for name in names}
    elif env.ground == "random":
        found |= dict.fromkeys(("env.slope", "env.base"), "random ground is drawn from env.ranges")
    if env.field_file or env.ground != "random":
        names = (f"env.ranges.{x.name}" for x in fields(env.ranges))
        found |= dict.fromkeys(names, "it needs env.ground random")
    chosen = names_of_action(env.action, env.spawning)
    for name in (x.name for x in fields(env.bounds) if x.name not in chosen):
        found[f"env.bounds.{name}"] = f"env.action {env.action} has no such number"
    for name in (x.name for x in fields(env.spawn) if env.action != "ratio"):
        found[f"env.spawn.{name}"] = "it needs env.action ratio"
    if env.spawning == "isotropic":
        found["env.spawn.theta"] = "it needs env.spawning directed"
    return found


def experiment(**changes: Any) -> Experiment:
    return replace(Experiment(), **changes)


ISOTROPIC = experiment(
    spawning="isotropic", action="ratio", spawn=FIXED["isotropic"], num_founders=70
)
PRESETS = {
    "linear": Config(),
    "shallow": Config(env=experiment(slope=0.01)),
    "exponential": Config(env=experiment(ground="exponential", slope=0.02)),
    "random": Config(env=experiment(ground="random")),
    "isotropic": Config(env=ISOTROPIC),
    "hybrid": Config(env=experiment(action="nodes")),
    "curriculum": Config(env=experiment(ground="random"), curriculum=Curriculum(first_width=150.0)),
    "normal": Config(env=experiment(weights=rewards.weights_of("normal"))),
    "three_part": Config(env=experiment(weights=rewards.weights_of("three_part"))),
    "state_machine": Config(env=experiment(weights=rewards.weights_of("state_machine"))),
}

SUMMARIES = {
    "linear": "Linear stiffness; progress and arrival are rewarded.",
    "shallow": "The same with a fifth of the slope.",
    "exponential": "Exponential stiffness.",
    "random": "New ground in every episode.",
    "isotropic": "Cells divide in all directions; only deletion is controlled.",
    "hybrid": "A choice for every cell, and continuous spawn parameters.",
    "curriculum": "Random ground, and a goal that moves away.",
    "normal": "The nineteen reward components of the first version.",
    "three_part": "Deletion, distance and ending, as in the second version.",
    "state_machine": "Marks and deadlines of deletion, as in the third version.",
}
"""What each preset is."""
