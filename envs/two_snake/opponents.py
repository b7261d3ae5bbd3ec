"""Scripted players of the other snake. All see the board before the move; none plans ahead.

| name | what it does |
|---|---|
| `static` | never moves: it neither eats nor dies; a snake that runs into it dies |
| `random` | a uniform way among those that are open: into no wall, its own body or the other's |
| `greedy` | the first step of a shortest path to the food; without a path, the first open way |
| `defensive` | the way to most room where it can reach less than 0.3 of the free cells, or where the other's head is nearer to the food; otherwise as `greedy` |

Among equals the first of forward, left, right is taken; without an open way it is forward. The
other's tail counts as shut, as it stays if that snake eats; the own tail is open.
"""  # noqa: E501

import jax
import jax.numpy as jnp

from envs.snake import bitboard
from envs.snake.bitboard import Bits, Board, distance
from envs.two_snake.views import View, ahead, free_cells, mask, num_free, open_ways, reached

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
    ways = {}
    if "random" in names:
        assert random_word is not None
        ways["random"] = at_random(board, view, random_word)
    if "greedy" in names or "defensive" in names:
        ways["greedy"] = greedy(board, view)
    if "defensive" in names:
        ways["defensive"] = defensive(board, view, ways["greedy"])
    action = jnp.zeros((), jnp.int32)
    for i, name in enumerate(names):
        if name in ways:
            action = jnp.where(chosen == i, ways[name], action)
    return action


def at_random(board: Board, view: View, random_word: jax.Array) -> jax.Array:
    """A uniform open way, from 32 random bits."""
    ways = open_ways(board, view)
    count = jax.lax.population_count(ways)
    return jnp.maximum(bitboard.draw((ways,), count, random_word), 0)


def greedy(board: Board, view: View) -> jax.Array:
    """The first step of a shortest path to the food, or an open way."""
    shortest = mask(bitboard.intersects(ahead(board, view), flooded_from_food(board, view)))
    return first(jnp.where(shortest != 0, shortest, open_ways(board, view)))


def flooded_from_food(board: Board, view: View) -> Bits:
    """The free cells around the food, as far as the flood is when it first touches a way."""
    free = free_cells(board, view)
    ways = ahead(board, view)  # words [3]
    goal = bitboard.intersection(tuple(w[0] | w[1] | w[2] for w in ways), free)

    def grow(carry: tuple[Bits, jax.Array]) -> tuple[Bits, jax.Array]:
        flood, _ = carry
        grown = bitboard.intersection(bitboard.neighbourhood(board, flood), free)
        grew = bitboard.intersects(bitboard.difference(grown, flood), free)
        return grown, grew & ~bitboard.intersects(grown, goal)

    seed = bitboard.intersection(bitboard.single(view.food, board.num_words), free)
    searches = ~bitboard.intersects(seed, goal)
    return jax.lax.while_loop(lambda carry: carry[1], grow, (seed, searches))[0]


def defensive(board: Board, view: View, greedy: jax.Array) -> jax.Array:
    """To most room, where room is short or the food is the other's; else the `greedy` action."""
    room = bitboard.count(reached(board, view))  # [3]
    most = jnp.max(room)
    is_cramped = 10 * most < CRAMPED * num_free(board, view)
    away, theirs = (distance(board, body.head, view.food) for body in (view.own, view.other))
    is_late = view.other_lives & (view.food >= 0) & (theirs < away)
    return jnp.where(is_cramped | is_late, first(mask((room == most) & (room > 0))), greedy)


def first(ways: jax.Array) -> jax.Array:
    """The lowest way of a mask, int32; forward if it is empty."""
    return jnp.where(ways & 1 != 0, 0, jnp.where(ways & 2 != 0, 1, jnp.where(ways != 0, 2, 0)))
