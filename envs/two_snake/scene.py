"""One snake's view of a game, and the facts that several observations are made of."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.snake import bitboard
from envs.snake.bitboard import Board, distance
from envs.snake.rules import START_LENGTH
from envs.two_snake.views import View, cells_ahead, length_of_others, num_free

PATIENCE = 100  # steps


class Scene(NamedTuple):
    """A view, and what observations need of it."""

    board: Board
    view: View
    regions: Any  # Regions, where the observation needs them
    target: jax.Array | int  # meals that win


def danger(scene: Scene) -> jax.Array:
    """Bool `[3]`, forward, left, right: a wall or the own body, but for its tail."""
    board, own = scene.board, scene.view.own
    body = bitboard.difference(own.occupied, bitboard.single(own.tail, board.num_words))
    open_cells = bitboard.difference(board.cells, body)
    return ~bitboard.intersects(cells_ahead(board, scene.view), open_cells)


def danger_from_others(scene: Scene) -> jax.Array:
    """Bool `[3]`, forward, left, right: another's body, its tail included, as it may eat."""
    return bitboard.intersects(cells_ahead(scene.board, scene.view), scene.view.other.occupied)


def reached_share(scene: Scene) -> jax.Array:
    """`[3]`, the share of the free cells that a path beginning forward, left, right leads to."""
    return bitboard.count(scene.regions.reached) / num_free(scene.board, scene.view)


def is_reachable(scene: Scene, cell: jax.Array) -> jax.Array:
    """Whether a path of free cells leads there."""
    target = bitboard.single(cell, scene.board.num_words)
    return jnp.any(bitboard.intersects(scene.regions.reached, target))


def nearness(scene: Scene) -> jax.Array:
    """By how many cells the own head is nearer to the food than the other's."""
    board, view = scene.board, scene.view
    own, theirs = (distance(board, body.head, view.food) for body in (view.own, view.other))
    return theirs - own


def threat(scene: Scene) -> jax.Array:
    """0.5 if the other is longer, and 0.5 if its head is nearer to the food."""
    view = scene.view
    nearer = (view.food >= 0) & (nearness(scene) < 0)
    return 0.5 * (view.other.length > view.own.length) + 0.5 * nearer


def distance_of_heads(scene: Scene) -> jax.Array:
    """The distance as a share of the longest."""
    view = scene.view
    return distance(scene.board, view.own.head, view.other.head) / max_distance(scene.board)


def comparison(scene: Scene) -> list[jax.Array]:
    """Food in reach, leads in length and meals, nearness, share of the board, hunger, own meals."""
    board, view = scene.board, scene.view
    own, other = view.own, view.other
    empty = board.num_cells - own.length - length_of_others(view)
    lead = (own.length - other.length) / max_length(scene)
    return [
        is_reachable(scene, view.food),
        jnp.where(view.other_lives, lead, 0.0),
        (view.score - view.other_score) / scene.target,
        jnp.where(view.other_lives & (view.food >= 0), nearness(scene) / max_distance(board), 0.0),
        scene.regions.mine / jnp.maximum(empty, 1),
        jnp.minimum(view.hunger / PATIENCE, 1.0),
        view.score / scene.target,
    ]


def max_distance(board: Board) -> int:
    """The longest distance on the board."""
    return board.rows + board.cols - 2


def max_length(scene: Scene) -> jax.Array | int:
    """The length of a snake that has won."""
    return scene.target + START_LENGTH
