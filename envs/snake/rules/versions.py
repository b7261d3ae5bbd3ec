"""The versions of Snake, classic and modern, and the switches in which they differ."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Rules:
    """The switches in which versions of Snake differ."""

    tail_is_fatal: bool
    """Whether moving into the cell that the tail leaves in the same step kills."""
    full_board_wins: bool
    """Whether a full board ends the game as won; otherwise it continues without food."""
    random_start: bool
    """Whether the snake starts anywhere; otherwise in the middle, heading right."""
    starvation: Literal["off", "truncate", "terminate"]
    """What happens after too many steps without food."""


CLASSIC = Rules(tail_is_fatal=True, full_board_wins=False, random_start=False, starvation="off")
MODERN = Rules(tail_is_fatal=False, full_board_wins=True, random_start=True, starvation="terminate")
