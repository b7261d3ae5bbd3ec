"""The state of a game of Snake, and what a move did to it.

The body is one set of occupied cells and, for each of its cells, the direction in which the snake
left it: the tail advances by reading two bits, at a cost that does not depend on how long the snake
is.
"""

from typing import Any, TypeVar

import jax
from flax import struct

from envs.snake.bitboard import Bits


@struct.dataclass
class Body:
    """One snake. Cells are indices of `Board.index`; all integers are int32."""

    occupied: Bits  # head and tail included
    exits: tuple[Bits, Bits]  # low and high bit of the direction in which a body cell was left
    head: jax.Array
    tail: jax.Array
    heading: jax.Array
    length: jax.Array
    order: jax.Array | None  # int16 [cells]: 1 at the tail, rising to length at the head; or none


@struct.dataclass
class State(Body):
    """One game: its snake, and what lies around it."""

    food: jax.Array  # -1 when the board is full
    time: jax.Array  # steps since the start
    hunger: jax.Array  # steps since the last meal
    mirrored: jax.Array | None = None  # whether observations and actions are reflected
    foods: jax.Array | None = None  # [K] every piece, -1 for none, where there are several: `food`
    # is then the nearest of them, and of those the one in the first cell
    obstacles: Bits | None = None  # cells that no snake can enter, where there are any
    size: jax.Array | None = None  # [2] rows and columns that are played on, where games differ in
    # it: the cells beyond are among the obstacles
    reached: Bits | None = None  # words [3] of `scene.Regions`, where they are kept
    practice: Any = None  # `starts.late.Practice`, where games may begin late


AnyBody = TypeVar("AnyBody", bound=Body)


class Event(struct.PyTreeNode):
    """What a move did, each a bool scalar."""

    ate: jax.Array
    died: jax.Array
    filled: jax.Array  # the move ate the last food that fits
