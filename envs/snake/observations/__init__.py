"""What is seen of a game of Snake: observations by name, which `registry` describes."""

from envs.snake.observations.board_views import board_view, planes
from envs.snake.observations.registry import OBSERVATIONS, Observation
from envs.snake.observations.surroundings import (
    FAR,
    NEAR,
    NEAR_SIZE,
    NUM_NEAR,
    egocentric_view,
    far_view,
    gaps_view,
    near_view,
    reflect_far,
    reflect_gaps,
    reflect_near,
    reflect_squares,
)
from envs.snake.observations.vectors import (
    compass_view,
    enhanced_view,
    features,
    flood,
    reflect_tail,
    selective_view,
    tail,
    vector,
)

__all__ = [
    "FAR",
    "NEAR",
    "NEAR_SIZE",
    "NUM_NEAR",
    "OBSERVATIONS",
    "Observation",
    "board_view",
    "compass_view",
    "egocentric_view",
    "enhanced_view",
    "far_view",
    "features",
    "flood",
    "gaps_view",
    "near_view",
    "planes",
    "reflect_far",
    "reflect_gaps",
    "reflect_near",
    "reflect_squares",
    "reflect_tail",
    "selective_view",
    "tail",
    "vector",
]
