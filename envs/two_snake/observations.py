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
board, those about food are (3, 4, 26, 29 and the second half of 25).

`planes`, `[rows, cols, 7]`: own head · own body, 1 at the head falling to 1/length at the tail ·
the other's head · the other's body likewise · food · own meals, and the other's, on every cell.

Of several others, "the other" is the nearest that is alive. But the bodies of all are dangers
(13-15) and close cells (10-12); the other is alive (5) while any is; the other's meals (28, and the
last plane) are those of the one that has most; a cell is nearer (30) that no other reaches as soon;
and the planes show all.

A dead snake observes zeros.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.snake import bitboard
from envs.snake.bitboard import Board, distance
from envs.snake.rules import START_LENGTH
from envs.two_snake.views import NUM_MOVES, View, cells_ahead, length_of_others, num_free

NUM_FEATURES, NUM_PLANES = 33, 7
PATIENCE = 100  # steps


class Scene(NamedTuple):
    """A view, and what observations need of it."""

    board: Board
    view: View
    regions: Any  # Regions, where the observation needs them
    target: jax.Array | int  # meals that win


def features(scene: Scene) -> jax.Array:
    """Float32 `[33]`; see the table above."""
    raw_entries = [*own_features(scene), *other_features(scene), *comparison(scene)]
    entries = jnp.stack([jnp.asarray(entry, jnp.float32) for entry in raw_entries])
    return jnp.where(scene.view.lives, entries, 0.0)


def own_features(scene: Scene) -> list[jax.Array]:
    """Entries 0-12: the own snake, the food, and whether the other is alive."""
    board, view = scene.board, scene.view
    own, reached = view.own, scene.regions.reached
    tail = bitboard.single(own.tail, board.num_words)
    body = bitboard.difference(own.occupied, tail)
    danger = ~bitboard.intersects(cells_ahead(board, view), bitboard.difference(board.cells, body))
    down, right = offset(board, own.head, view.food)
    room = bitboard.count(reached) / num_free(board, view)
    return [
        *(danger[i] for i in range(NUM_MOVES)),
        jnp.where(view.food >= 0, right / board.cols, 0.0),
        jnp.where(view.food >= 0, down / board.rows, 0.0),
        view.other_lives,
        jnp.any(bitboard.intersects(reached, tail)),
        *(own.heading == h for h in range(3)),
        *(room[i] for i in range(NUM_MOVES)),
    ]


def other_features(scene: Scene) -> list[jax.Array]:
    """Entries 13-25, all 0 where the other is dead."""
    board, view = scene.board, scene.view
    own, other, exists = view.own, view.other, view.other_lives
    danger = bitboard.intersects(cells_ahead(board, view), other.occupied)
    down, right = offset(board, own.head, other.head)
    nearer = (view.food >= 0) & (nearness(scene) < 0)
    threat = 0.5 * (other.length > own.length) + 0.5 * nearer
    entries = [
        *(danger[i] for i in range(NUM_MOVES)),
        *(down < 0, right > 0, down > 0, right < 0),
        *(other.heading == h for h in range(3)),
        other.length / max_length(scene),
        distance(board, own.head, other.head) / max_distance(board),
        threat,
    ]
    return [jnp.where(exists, entry, 0) for entry in entries]


def comparison(scene: Scene) -> list[jax.Array]:
    """Entries 26-32: the food, and how the two compare."""
    board, view = scene.board, scene.view
    own, other, regions = view.own, view.other, scene.regions
    food = bitboard.single(view.food, board.num_words)
    empty = board.num_cells - own.length - length_of_others(view)
    lead = (own.length - other.length) / max_length(scene)
    return [
        jnp.any(bitboard.intersects(regions.reached, food)),
        jnp.where(view.other_lives, lead, 0.0),
        (view.score - view.other_score) / scene.target,
        jnp.where(view.other_lives & (view.food >= 0), nearness(scene) / max_distance(board), 0.0),
        regions.mine / jnp.maximum(empty, 1),
        jnp.minimum(view.hunger / PATIENCE, 1.0),
        view.score / scene.target,
    ]


def offset(board: Board, origin: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows down and columns right from one cell to another."""
    return board.row(cell) - board.row(origin), board.col(cell) - board.col(origin)


def nearness(scene: Scene) -> jax.Array:
    """By how many cells the own head is nearer to the food than the other's."""
    board, view = scene.board, scene.view
    own, theirs = (distance(board, body.head, view.food) for body in (view.own, view.other))
    return theirs - own


def max_distance(board: Board) -> int:
    """The longest distance on the board."""
    return board.rows + board.cols - 2


def max_length(scene: Scene) -> jax.Array | int:
    """The length of a snake that has won."""
    return scene.target + START_LENGTH


def planes(scene: Scene) -> jax.Array:
    """Float32 `[rows, cols, 7]`; see above."""
    board, view = scene.board, scene.view
    layers = []
    for body in (view.own, view.other):
        assert body.order is not None, "the game was started without the order of the bodies"
        order = body.order.astype(jnp.float32) * (1 / jnp.maximum(body.length, 1))
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
    needs_regions: bool
    needs_order: bool
    safe: Callable[[jax.Array], jax.Array] | None = None  # moves that look safe, bool [..., 3]

    def shape(self, board: Board) -> tuple[int, ...]:
        """The shape of the array that `describe` returns."""
        return (board.rows, board.cols, NUM_PLANES) if self.needs_order else (NUM_FEATURES,)


OBSERVATIONS = {
    "features": Observation(features, needs_regions=True, needs_order=False, safe=no_danger),
    "planes": Observation(planes, needs_regions=False, needs_order=True),
}
