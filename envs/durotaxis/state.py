"""What a colony carries from step to step, and the numbers of the experiment."""

from typing import Any

import jax
import numpy as np
from flax import struct

from envs.durotaxis import marking
from envs.durotaxis.actions import Bounds, Spawn
from envs.durotaxis.rewards import RewardSet
from envs.durotaxis.rules import Colony
from envs.durotaxis.substrate import Law, Ranges


@struct.dataclass
class State:
    """One colony in one episode; C slots, K components of the reward."""

    colony: Colony
    law: Law
    time: jax.Array  # int32, steps since the start
    left_moves: jax.Array  # int32, steps in a row that took the centroid to the left
    milestones: jax.Array  # bool [4], see rewards.milestones_reached
    marks: marking.Marks | tuple[()]  # where the rewards are those of the state machine
    earned: jax.Array  # float32 [K], sums of the components in this episode


@struct.dataclass
class Params:
    """The numbers of the experiment."""

    law: Law
    """Stiffness of the ground, where it is not random."""
    weights: RewardSet
    """Of the reward set that the environment was built with."""
    spawn: Spawn
    """Spawn parameters where the action is the ratio alone."""
    field: Any = struct.field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """Measured stiffness [height, width] instead of the law; [0, 0]: none."""
    ranges: Ranges = Ranges()
    """Where random ground is drawn from."""
    bounds: Bounds = Bounds()
    """Of the numbers in an action."""
    width: float = 600.0
    """Of the ground, a whole number of px; the goal is its right edge."""
    height: float = 400.0
    """Of the ground, a whole number of px."""
    critical_nodes: float = 50.0
    """Above it rewards call a colony too large."""
    threshold_nodes: float = 100.0
    """Above it the episode ends."""
    delay: float = 3.0
    """Steps that a node must have been there before it can be marked for deletion."""
    delta_intensity: float = 2.5
    """What a child's ground must gain over its parent's to be called a success."""
    left_moves_limit: int = 30
    """Steps in a row that may take the centroid to the left; with the last the episode ends."""
    max_steps_in_episode: int = 1000
    """Steps after which an episode is truncated."""
