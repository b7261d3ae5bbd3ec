"""The state of an episode, and the numbers of the experiment."""

from typing import Any

import jax
import numpy as np
from flax import struct

from envs.durotaxis import marking
from envs.durotaxis.actions import Bounds, Spawn
from envs.durotaxis.rewards.registry import RewardSet
from envs.durotaxis.rules import Colony
from envs.durotaxis.substrate import Law, Ranges


@struct.dataclass
class State:
    """One colony in one episode; C slots, K components of the reward."""

    colony: Colony
    law: Law
    time: jax.Array  # int32, steps since the start
    left_moves: jax.Array  # int32, steps in a row that moved the centroid to the left
    milestones: jax.Array  # bool [4], see rewards.milestones_reached
    marks: marking.Marks | tuple[()]  # only with the reward set `state_machine`
    earned: jax.Array  # float32 [K], sums of the components in this episode
    recoveries: jax.Array | tuple[()] = ()  # int32, in this episode; only if a colony may recover


@struct.dataclass
class Params:
    """The numbers of the experiment."""

    law: Law
    """Stiffness of the ground, unless it is random."""
    weights: RewardSet
    """Weights of the reward set that the environment was built with."""
    spawn: Spawn
    """Spawn parameters of the action `ratio`."""
    field: Any = struct.field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """Measured stiffness [height, width] instead of the law; [0, 0]: none."""
    ranges: Ranges = Ranges()
    """Ranges of the law of random ground."""
    bounds: Bounds = Bounds()
    """Bounds of the numbers in an action."""
    width: float = 600.0
    """Width of the ground, a whole number of px; the goal is its right edge."""
    height: float = 400.0
    """Height of the ground, a whole number of px."""
    critical_nodes: float = 50.0
    """Number of nodes above which rewards treat a colony as too large."""
    threshold_nodes: float = 100.0
    """Number of nodes above which the episode ends."""
    delay: float = 3.0
    """The rule of deletion names nodes that are at least this + 1 steps old; with `state_machine`:
    steps from a mark to its deadline."""
    delta_intensity: float = 2.5
    """A child is a success if its ground is stiffer than its parent's by at least this; with
    `shaping_spawn`, a node counts on ground of at least this stiffness itself."""
    left_moves_limit: int = 30
    """The episode ends once so many steps in a row have moved the centroid to the left."""
    max_recoveries: int = 2
    """How often in an episode an empty colony may recover."""
    recovery_price: float = 0.5
    """Price of a recovery, as a share of that of an empty colony."""
    max_steps_in_episode: int = 1000
    """Steps after which an episode is truncated."""
