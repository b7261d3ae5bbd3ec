"""Scripted opponents. All see the board before the move; none plans ahead.

| name | what it does |
|---|---|
| `static` | never moves: it neither eats nor dies; a snake that runs into it dies |
| `random` | an open move, uniformly: not into a wall or a body |
| `greedy` | the first step of a shortest path to the food; without a path, the first open move |
| `defensive` | the move from which most cells can be reached, if these are less than 0.3 of the free cells or the other's head is nearer to the food; otherwise as `greedy` |

Of equal moves the first of forward, left, right is taken; without an open move it is forward. The
other's tail counts as blocked, as it stays if that snake eats; the own tail is open.
"""  # noqa: E501

import jax
import jax.numpy as jnp

from envs import bounded_loop
from envs.snake import bitboard
from envs.snake.bitboard import Bits, Board, distance
from envs.two_snake.views import (
    View,
    cells_ahead,
    free_cells,
    mask,
    num_free,
    open_moves,
    reachable_cells,
)

OPPONENTS = ("static", "random", "greedy", "defensive")
CRAMPED = 3  # tenths of the free cells


def turn(
    board: Board,
    names: tuple[str, ...],
    chosen: jax.Array,
    view: View,
    random_word: jax.Array | None,
) -> jax.Array:
    """The relative action of the player `names[chosen]`, int32; 0 for names not in OPPONENTS.

    `random_word` is uint32, and needed only where `random` is among the names.
    """
    moves = {}
    if "random" in names:
        assert random_word is not None
        moves["random"] = random_move(board, view, random_word)
    if "greedy" in names or "defensive" in names:
        moves["greedy"] = greedy(board, view)
    if "defensive" in names:
        moves["defensive"] = defensive(board, view, moves["greedy"])
    action = jnp.zeros((), jnp.int32)
    for i, name in enumerate(names):
        if name in moves:
            action = jnp.where(chosen == i, moves[name], action)
    return action


def random_move(board: Board, view: View, random_word: jax.Array) -> jax.Array:
    """A uniform open move, from 32 random bits."""
    moves = open_moves(board, view)
    count = jax.lax.population_count(moves)
    return jnp.maximum(bitboard.draw((moves,), count, random_word), 0)


def greedy(board: Board, view: View) -> jax.Array:
    """The first step of a shortest path to the food, or the first open move."""
    shortest = mask(bitboard.intersects(cells_ahead(board, view), flood_from_food(board, view)))
    return first_move(jnp.where(shortest != 0, shortest, open_moves(board, view)))


def flood_from_food(board: Board, view: View) -> Bits:
    """A flood fill from the food, stopped as soon as it contains a cell ahead of the head."""
    free = free_cells(board, view)
    moves = cells_ahead(board, view)  # words [3]
    goal = bitboard.intersection(tuple(w[0] | w[1] | w[2] for w in moves), free)

    def grow(carry: tuple[Bits, jax.Array]) -> tuple[Bits, jax.Array]:
        flood, _ = carry
        expanded = bitboard.intersection(bitboard.neighbourhood(board, flood), free)
        has_grown = bitboard.intersects(bitboard.difference(expanded, flood), free)
        return expanded, has_grown & ~bitboard.intersects(expanded, goal)

    seed = bitboard.intersection(bitboard.single(view.food, board.num_words), free)
    start = seed, ~bitboard.intersects(seed, goal)
    return bounded_loop.while_loop(
        lambda carry: carry[1], grow, start, most_rounds=board.longest_path
    )[0]


def defensive(board: Board, view: View, greedy: jax.Array) -> jax.Array:
    """The move to most reachable cells if space or food is threatened, else the `greedy` one."""
    room = bitboard.count(reachable_cells(board, view))  # [3]
    most = jnp.max(room)
    is_cramped = 10 * most < CRAMPED * num_free(board, view)
    own_distance, other_distance = (
        distance(board, body.head, view.food) for body in (view.own, view.other)
    )
    is_late = view.other_lives & (view.food >= 0) & (other_distance < own_distance)
    return jnp.where(is_cramped | is_late, first_move(mask((room == most) & (room > 0))), greedy)


def first_move(moves: jax.Array) -> jax.Array:
    """The lowest move of a mask, int32; forward if it is empty."""
    return jnp.where(moves & 1 != 0, 0, jnp.where(moves & 2 != 0, 1, jnp.where(moves != 0, 2, 0)))
