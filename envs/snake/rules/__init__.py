"""The game of Snake on arrays: no reward, no observation, no episode."""

from envs.snake.rules.body import advance, exit_heading, order, order_of
from envs.snake.rules.cells import (
    deadly_body,
    free_cells,
    longer_side,
    num_cells,
    num_open,
    open_cells,
    size_of,
)
from envs.snake.rules.food import draw_food, food_cells, nearest_food, scatter_food
from envs.snake.rules.headings import STEPS, candidates, offset, turn, turn_to
from envs.snake.rules.movement import is_entrapped, move
from envs.snake.rules.new_game import START_LENGTH, start, starts, uniform
from envs.snake.rules.state import AnyBody, Body, Event, State
from envs.snake.rules.versions import CLASSIC, MODERN, Rules

__all__ = [
    "CLASSIC",
    "MODERN",
    "START_LENGTH",
    "STEPS",
    "AnyBody",
    "Body",
    "Event",
    "Rules",
    "State",
    "advance",
    "candidates",
    "deadly_body",
    "draw_food",
    "exit_heading",
    "food_cells",
    "free_cells",
    "is_entrapped",
    "longer_side",
    "move",
    "nearest_food",
    "num_cells",
    "num_open",
    "offset",
    "open_cells",
    "order",
    "order_of",
    "scatter_food",
    "size_of",
    "start",
    "starts",
    "turn",
    "turn_to",
    "uniform",
]
