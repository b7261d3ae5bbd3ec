"""Observations of one of the two snakes, float32, each from its own point of view.

Moves come in the order forward, left, right, in the frame of the head; directions in the order up,
right, down, left, in that of the board. Manhattan distances are divided by the longest, rows + cols
- 2; meals by `target` and lengths by `target` + 3, those of a winner. No entry exceeds 1. "The
other" is the other snake.

| `features` | contents |
|---|---|
| 0-2 | danger forward, left, right: a wall, or the own body but for its tail, which moves on |
| 3, 4 | food: columns to the right over cols, rows downwards over rows |
| 5, 6 | the other is alive · a path of free cells leads to the own tail |
| 7-9 | heading up, right, down (left is none of them) |
| 10-12 | share of the free cells that a path beginning forward, left, right leads to |
| 13-15 | danger from the other's body forward, left, right, its tail included, as it may eat |
| 16-19 | the other's head lies up, right, down, left |
| 20-22 | the other's heading up, right, down |
| 23 | length of the other |
| 24 | distance of the heads |
| 25 | threat: 0.5 if the other is longer, and 0.5 if its head is nearer to the food |
| 26 | a path of free cells leads to the food |
| 27 | own length less the other's |
| 28 | own meals less the other's |
| 29 | how much nearer the own head is to the food than the other's, -1 to 1 |
| 30 | share of the empty cells that the own head reaches in fewer moves than the other's |
| 31 | steps since the last meal over 100, at most 1 |
| 32 | own meals |

If the other is dead, the entries about its body are 0 (13-25, 27 and 29); without food on the
board, those about food are (3, 4, 26, 29 and the second half of 25). So it is in `near`.

`near`, `[367]`, has all that in the frame of the head. Signs are those of ahead, behind, right,
left; offsets are in cells ahead and to the right, over the longer side of the board less 1.

| `near` | contents |
|---|---|
| 0-2, 3-5 | danger forward, left, right, and the share of the free cells, as above |
| 6-8 | danger from the other's body forward, left, right |
| 9, 10, 11-14 | offset of the other's head, and its signs |
| 15-18 | the other heads the same way, the opposite one, right, left |
| 19-21 | length of the other · distance of the heads · threat |
| 22, 23, 24-27 | offset of the food, and its signs |
| 28, 29 | offset of the own tail |
| 30-32 | cells to the wall forward, left, right, over the longer side less 1 |
| 33-35 | the other is alive · a path leads to the own tail · own length |
| 36-42 | 26-32 of `features` |
| 43-123 | of the 9 × 9 cells around the head, turned with it: blocked by a wall or a body |
| 124-204 | moves until the own tail has left the cell, over the length of a winner |
| 205-285 | the same of the other |
| 286-366 | 1 at the other's head |

`planes`, `[rows, cols, 7]`: own head · own body, 1 at the head falling to 1/length at the tail ·
the other's head · the other's body likewise · food · own meals, and the other's, on every cell.

Of several others, "the other" is the nearest that is alive. But the bodies of all are dangers
(13-15) and close cells (10-12); the other is alive (5) while any is; the other's meals (28, and the
last plane) are those of the one that has most; a cell is nearer (30) that no other reaches as soon;
and the planes show all.

A dead snake observes zeros.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.snake import bitboard
from envs.snake.bitboard import Board
from envs.snake.observations import vector
from envs.snake.views import order_of
from envs.two_snake import near
from envs.two_snake.scene import (
    Scene,
    comparison,
    danger,
    danger_from_others,
    distance_of_heads,
    is_reachable,
    max_length,
    reached_share,
    threat,
)

NUM_FEATURES, NUM_PLANES = 33, 7


def features(scene: Scene) -> jax.Array:
    """Float32 `[33]`; see the table above."""
    entries = [*own_features(scene), *other_features(scene), *comparison(scene)]
    return jnp.where(scene.view.lives, vector(entries), 0.0)


def own_features(scene: Scene) -> list[jax.Array]:
    """Entries 0-12: the own snake, the food, and whether the other is alive."""
    board, view = scene.board, scene.view
    own = view.own
    down, right = offset(board, own.head, view.food)
    return [
        *danger(scene),
        jnp.where(view.food >= 0, right / board.cols, 0.0),
        jnp.where(view.food >= 0, down / board.rows, 0.0),
        view.other_lives,
        is_reachable(scene, own.tail),
        *(own.heading == h for h in range(3)),
        *reached_share(scene),
    ]


def other_features(scene: Scene) -> list[jax.Array]:
    """Entries 13-25, all 0 where the other is dead."""
    view = scene.view
    own, other = view.own, view.other
    down, right = offset(scene.board, own.head, other.head)
    entries = [
        *danger_from_others(scene),
        *(down < 0, right > 0, down > 0, right < 0),
        *(other.heading == h for h in range(3)),
        other.length / max_length(scene),
        distance_of_heads(scene),
        threat(scene),
    ]
    return [jnp.where(view.other_lives, entry, 0) for entry in entries]


def offset(board: Board, origin: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows down and columns right from one cell to another."""
    return board.row(cell) - board.row(origin), board.col(cell) - board.col(origin)


def planes(scene: Scene) -> jax.Array:
    """Float32 `[rows, cols, 7]`; see above."""
    board, view = scene.board, scene.view
    layers = []
    for body in (view.own, view.other):
        order = order_of(body).astype(jnp.float32) * (1 / jnp.maximum(body.length, 1))
        layers += [jnp.asarray(board.indices) == body.head, order]
    if view.crowd is not None:
        heads = bitboard.contains(view.crowd.heads, jnp.asarray(board.indices))
        layers[2:] = [heads, view.crowd.places]
    layers += [jnp.asarray(board.indices) == view.food]
    meals = (view.score / scene.target, view.other_score / scene.target)
    layers += [jnp.broadcast_to(share, (board.num_cells,)) for share in meals]
    cells = jnp.stack([layer.astype(jnp.float32) for layer in layers], axis=-1)
    visible_cells = jnp.where(view.lives, cells, 0.0)
    return visible_cells.reshape(board.rows, board.cols, NUM_PLANES)


def no_danger(obs: jax.Array) -> jax.Array:
    """Forward, left, right, from `features`: nothing lies there, or only the own tail."""
    return (obs[..., 0:3] + obs[..., 13:16]) < 0.5


class Observation(NamedTuple):
    """How an observation is computed, and what it needs."""

    describe: Callable[[Scene], jax.Array]
    shape: Callable[[Board], tuple[int, ...]]
    needs_regions: bool = False
    needs_order: bool = False
    is_image: bool = False
    safe: Callable[[jax.Array], jax.Array] | None = None  # moves that look safe, bool [..., 3]
    reflect: Callable[[jax.Array], jax.Array] | None = None  # the observation of the reflected game


OBSERVATIONS = {
    "features": Observation(
        features, lambda board: (NUM_FEATURES,), needs_regions=True, safe=no_danger
    ),
    "near": Observation(
        near.near,
        lambda board: (near.SIZE,),
        needs_regions=True,
        needs_order=True,
        safe=near.no_danger,
        reflect=near.reflect,
    ),
    "planes": Observation(
        planes,
        lambda board: (board.rows, board.cols, NUM_PLANES),
        needs_order=True,
        is_image=True,
    ),
}
