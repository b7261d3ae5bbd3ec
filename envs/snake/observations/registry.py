"""Named observations of a game of Snake, all float32.

Whatever is counted by direction comes in one order: forward, left, right in the frame of the head,
and up, right, down, left in the frame of the board.

An obstacle is seen as a wall where walls are; `board` has -1 there, and `planes` counts it as body
without a place in it. Of several pieces of food, directions and offsets are those of the nearest;
`food reachable` says whether any is, and what shows the board shows all. So no size depends on
either.

| name | size | contents |
|---|---|---|
| `features` | 10 | danger forward, left, right · food up, right, down, left · heading up, right, down |
| `flood` | 13 | `features` · share of the free cells that can be reached forward, left, right |
| `selective` | 18 | `flood` · tail up, right, down, left · tail reachable |
| `enhanced` | 23 | `flood` · escapes forward, left, right · tail (4) · tail reachable · its distance · length |
| `tail` | 28 | danger (3) · reach (3) · tail reachable (3) · food reachable (3), each forward, left, right · food and tail offset (forward, right) · signs of each (4 + 4) · distance to the walls (3) · length |
| `near` | 191 | `tail` · hunger · for each of the 9 × 9 cells around the head, rotated with it: blocked (81) · for how long (81) |
| `far` | 913 | `near` · for each of the 19 × 19 cells around the head, rotated with it: free (361) · for how long blocked, 0 beyond the walls (361) |
| `gaps` | 290 | `near` · one over the number of free cells · one over the distance between the free cells nearest to the food and farthest from it · of each: offset (forward, right), one over the distance from food and head, whether the body turns around it (4) (8 + 8) · for each of the 9 × 9 cells around the head: how soon it is free (81) |
| `compass` | 19 | heading up, right, down, left · danger (4) · food along the longer way (4) · food right and down · length · head col, row · tail col, row |
| `board` | rows × cols | one number per cell: body 1/3, head 2/3, food 1 |
| `egocentric` | side × side × 5 | the whole board around the head, rotated with it: wall · place in the body · food · length · hunger |
| `planes` | rows × cols × 5 | body · head · tail · food · place in the body, 1 at the head |
"""  # noqa: E501

from collections.abc import Callable
from typing import NamedTuple

import jax

from envs.snake import gaps
from envs.snake.bitboard import Board
from envs.snake.observations.board_views import board_view, planes
from envs.snake.observations.surroundings import (
    FAR,
    NEAR_SIZE,
    NUM_NEAR,
    egocentric_view,
    far_view,
    gaps_view,
    near_view,
    reflect_far,
    reflect_gaps,
    reflect_near,
)
from envs.snake.observations.vectors import (
    compass_view,
    enhanced_view,
    features,
    flood,
    reflect_tail,
    selective_view,
    tail,
)
from envs.snake.scene import Scene
from envs.snake.views import full_radius


class Observation(NamedTuple):
    """A named observation: how it is computed and what it needs."""

    describe: Callable[[Scene], jax.Array]
    shape: Callable[[Board], tuple[int, ...]]
    needs_regions: bool = True
    needs_order: bool = False
    is_image: bool = False
    is_list_of_cells: bool = False  # row by row: of boards of other rows the entries are others
    sees_hunger: bool = False
    safe: Callable[[jax.Array], jax.Array] | None = None  # moves that do not kill, bool [..., 3]
    reflect: Callable[[jax.Array], jax.Array] | None = None  # the observation of the reflected game

    def layout(self, board: Board) -> Board | tuple[int, ...]:
        """What two boards must have alike, so that entries of one network mean the same on both."""
        return board if self.is_list_of_cells else self.shape(board)


def _entries(size: int) -> Callable[[Board], tuple[int, ...]]:
    return lambda board: (size,)


def _head_square(board: Board) -> tuple[int, ...]:
    return (2 * full_radius(board) + 1, 2 * full_radius(board) + 1, 5)


def _no_danger(obs: jax.Array) -> jax.Array:
    """Forward, left, right, from observations that begin with the danger there."""
    return obs[..., :3] < 0.5


OBSERVATIONS = {
    "features": Observation(features, _entries(10), needs_regions=False, safe=_no_danger),
    "flood": Observation(flood, _entries(13), safe=_no_danger),
    "selective": Observation(selective_view, _entries(18), safe=_no_danger),
    "enhanced": Observation(enhanced_view, _entries(23), safe=_no_danger),
    "tail": Observation(tail, _entries(28), safe=_no_danger, reflect=reflect_tail),
    "near": Observation(
        near_view,
        _entries(NEAR_SIZE),
        needs_order=True,
        sees_hunger=True,
        safe=_no_danger,
        reflect=reflect_near,
    ),
    "far": Observation(
        far_view,
        _entries(NEAR_SIZE + 2 * (2 * FAR + 1) ** 2),
        needs_order=True,
        sees_hunger=True,
        safe=_no_danger,
        reflect=reflect_far,
    ),
    "gaps": Observation(
        gaps_view,
        _entries(NEAR_SIZE + gaps.NUM_STRAYS + NUM_NEAR),
        needs_order=True,
        sees_hunger=True,
        safe=_no_danger,
        reflect=reflect_gaps,
    ),
    "compass": Observation(compass_view, _entries(19), needs_regions=False),
    "board": Observation(
        board_view,
        lambda board: (board.num_cells,),
        needs_regions=False,
        is_list_of_cells=True,
    ),
    "planes": Observation(
        planes,
        lambda board: (board.rows, board.cols, 5),
        needs_regions=False,
        needs_order=True,
        is_image=True,
    ),
    "egocentric": Observation(
        egocentric_view,
        _head_square,
        needs_regions=False,
        needs_order=True,
        is_image=True,
        sees_hunger=True,
        reflect=lambda obs: obs[:, ::-1],
    ),
}
