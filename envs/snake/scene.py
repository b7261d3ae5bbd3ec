"""Facts about one game of Snake that observations are made of.

Whatever is counted by direction comes in one order: forward, left, right in the frame of the head,
and up, right, down, left in the frame of the board.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from envs.snake import bitboard, rules
from envs.snake.bitboard import Bits, Board
from envs.snake.rules import Body, Rules, State


class Regions(struct.PyTreeNode):
    """The free cells that can be reached through each candidate cell, itself included."""

    reached: Bits  # words [3]: forward, left, right; empty where the candidate is blocked


class Scene(NamedTuple):
    """A game and what observations need of it."""

    board: Board
    rules: Rules
    state: State
    regions: Any  # Regions, where the observation needs them
    starving: jax.Array  # hunger as a share of the limit; 0 without starvation


def flood_regions(board: Board, rules_: Rules, state: State) -> Regions:
    """Flood fill from the three candidate cells, before the tail moves on."""
    free = rules.free_cells(board, rules_, state)
    seeds = bitboard.single(jnp.stack(rules.candidates(board, state)), board.num_words)
    fill = jax.vmap(lambda seed: bitboard.flood(board, seed, free))
    return Regions(fill(seeds))


def open_regions(board: Board, rules_: Rules, state: State) -> Regions:
    """`flood_regions` of a new game, without a search.

    A straight snake of three cannot divide a board of at least 4×4, nor do `layouts` of obstacles:
    every free cell can be reached from any free candidate.
    """
    free = rules.free_cells(board, rules_, state)
    seeds = bitboard.single(jnp.stack(rules.candidates(board, state)), board.num_words)
    is_free = bitboard.intersects(seeds, free)  # [3]
    return Regions(tuple(jnp.where(is_free, word, jnp.uint32(0)) for word in free))


def danger(scene: Scene) -> list[jax.Array]:
    """Forward, left, right: 1 if moving there kills."""
    free = rules.free_cells(scene.board, scene.rules, scene.state)
    cells = rules.candidates(scene.board, scene.state)
    return [~bitboard.contains(free, cell) for cell in cells]


def compass(scene: Scene, cell: jax.Array) -> list[jax.Array]:
    """Up, right, down, left: 1 if `cell` lies that way of the head; all 0 for no cell (-1)."""
    board, head = scene.board, scene.state.head
    down, right = board.row(cell) - board.row(head), board.col(cell) - board.col(head)
    exists = cell >= 0
    return [exists & way for way in (down < 0, right > 0, down > 0, right < 0)]


def heading(scene: Scene) -> list[jax.Array]:
    """Up, right, down; left is none of them."""
    return [scene.state.heading == h for h in range(3)]


def reach(scene: Scene) -> list[jax.Array]:
    """Forward, left, right: the share of the free cells that can be reached that way."""
    cells = bitboard.count(scene.regions.reached)  # [3]
    free = jnp.maximum(rules.num_open(scene.board, scene.state) - scene.state.length, 1)
    return list(jnp.minimum(cells / free, 1.0))


def is_softly_entrapped(
    board: Board, state: State, regions: Regions, threshold: float | jax.Array
) -> jax.Array:
    """Whether every move leads to less than a share `threshold` of the free cells, if any is left.

    Nothing need have happened yet: there may be a way out once the tail has moved on.
    """
    free = rules.num_open(board, state) - state.length
    most = jnp.max(bitboard.count(regions.reached))
    return (most / jnp.maximum(free, 1) < threshold) & (free > 0)


def tail_reach(scene: Scene) -> jax.Array:
    """Bool `[3]`: whether a path that begins forward, left, right leads to the tail."""
    beside = bitboard.neighbourhood(scene.board, scene.regions.reached)
    return bitboard.intersects(beside, bitboard.single(scene.state.tail, scene.board.num_words))


def food_reach(scene: Scene) -> jax.Array:
    """Bool `[3]`: whether a path that begins forward, left, right leads to the food."""
    food = rules.food_cells(scene.board, scene.state)
    return bitboard.intersects(scene.regions.reached, food)


def is_tail_reachable(scene: Scene) -> jax.Array:
    """Whether any path of free cells leads from the head to the tail."""
    board, state = scene.board, scene.state
    is_beside = sum(
        (state.tail == state.head + step).astype(jnp.int32)
        for step in (1, -1, board.stride, -board.stride)
    )
    return (is_beside > 0) | jnp.any(tail_reach(scene))


def escapes(scene: Scene) -> list[jax.Array]:
    """Forward, left, right: the share of the four neighbours of that cell that are free."""
    board = scene.board
    free = rules.free_cells(board, scene.rules, scene.state)

    def escape_share(cell):
        steps = (1, -1, board.stride, -board.stride)
        ways = sum(bitboard.contains(free, cell + s).astype(jnp.float32) for s in steps)
        return jnp.where(bitboard.contains(free, cell), ways / 4, 0.0)

    return [escape_share(cell) for cell in rules.candidates(board, scene.state)]


def offset_from_head(board: Board, body: Body, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
    """How far forward and how far right of the head a cell lies; 0, 0 for no cell (-1)."""
    down, right = board.row(cell) - board.row(body.head), board.col(cell) - board.col(body.head)
    up = -down
    ahead = _select_by_heading(body.heading, up, right, down, -right)
    aside = _select_by_heading(body.heading, right, down, -right, up)
    return jnp.where(cell >= 0, ahead, 0), jnp.where(cell >= 0, aside, 0)


def cell_from_head(board: Board, body: Body, ahead: jax.Array, aside: jax.Array) -> jax.Array:
    """The cell so far forward and right of the head, or the nearest to that on the board."""
    down = _select_by_heading(body.heading, -ahead, aside, ahead, -aside)
    right = _select_by_heading(body.heading, aside, ahead, -aside, -ahead)
    row = jnp.clip(board.row(body.head) + down, 0, board.rows - 1)
    col = jnp.clip(board.col(body.head) + right, 0, board.cols - 1)
    return row * board.stride + col


def offset_signs(ahead: jax.Array, aside: jax.Array) -> list[jax.Array]:
    """Whether a cell lies ahead of the head, behind it, to its right, and to its left."""
    return [ahead > 0, ahead < 0, aside > 0, aside < 0]


def reflect_ways(first: int) -> list[int]:
    """Where forward, left, right, which begin at entry `first`, lie in the reflected game."""
    return [first, first + 2, first + 1]


def reflect_signs(first: int) -> list[int]:
    """Where `offset_signs`, which begin at entry `first`, lie in the reflected game."""
    return [first, first + 1, first + 3, first + 2]


def wall_distances(
    board: Board,
    body: Body,
    obstacles: Bits | None = None,
    size: tuple[jax.Array | int, jax.Array | int] | None = None,
) -> list[jax.Array]:
    """Forward, left, right: the cells between the head and the wall, or an obstacle before it.

    `size` are the rows and columns that are played on; None: all.
    """
    rows, cols = size or (board.rows, board.cols)
    row, col = board.row(body.head), board.col(body.head)
    up, right, down, left = row, cols - 1 - col, rows - 1 - row, col
    if obstacles is not None:
        cells = jnp.asarray(board.indices)
        below, beside = board.row(cells) - row, board.col(cells) - col
        is_obstacle = bitboard.contains(obstacles, cells)
        in_column, in_row = is_obstacle & (beside == 0), is_obstacle & (below == 0)
        up, right, down, left = (
            jnp.min(jnp.where(is_in_line & (away > 0), away - 1, to_wall))
            for is_in_line, away, to_wall in (
                (in_column, -below, up),
                (in_row, beside, right),
                (in_column, below, down),
                (in_row, -beside, left),
            )
        )
    return [
        _select_by_heading(body.heading, up, right, down, left),
        _select_by_heading(body.heading, left, up, right, down),
        _select_by_heading(body.heading, right, down, left, up),
    ]


def _select_by_heading(heading: jax.Array, up, right, down, left) -> jax.Array:
    vertical = jnp.where(heading == 0, up, down)
    return jnp.where(heading & 1 != 0, jnp.where(heading == 1, right, left), vertical)
