"""Scripted players of Snake: baselines for learning, and teachers.

Each is a pure function of one game, `player(board, rules, state, key) -> heading`, an int32 scalar;
`vmap` plays many. Only the random ones look at the key. Of moves that are equally good, forward
comes before left and left before right; if every move kills, a player moves forward.

| name | how it plays |
|---|---|
| `random` | any move |
| `random_safe` | any move that does not kill at once |
| `direct` | to the column of the nearest food, then to its row, whatever is in the way |
| `shortest` | a shortest path to the food; if there is none, the first safe move |
| `lookahead` | the same, but never into a place from where it could not reach its tail |
| `hamiltonian` | along a Hamiltonian cycle; not if both sides are odd, nor with obstacles |
| `shortcuts` | along the same cycle, with shortcuts while the snake is short |
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from envs.snake import rules as game
from envs.snake.bitboard import Board
from envs.snake.cycles import cycle
from envs.snake.env import Snake
from envs.snake.moves import Moves, first_heading, leads_to_food, moves, prospect
from envs.snake.rules import Rules, State, turn_to

Player = Callable[[Board, Rules, State, jax.Array], jax.Array]

GROWTH = 3
"""Cells of the tour that shortcuts leave between head and tail, for food eaten on the way."""


def action_for(env: Snake, state: State, heading: jax.Array) -> jax.Array:
    """The action of `env` that takes `heading`; a reversal, which no snake can do, goes forward."""
    if env.actions == "absolute":
        return heading
    return turn_to(state.heading, heading)


def random(board: Board, rules: Rules, state: State, key: jax.Array) -> jax.Array:
    """Uniform over the three moves."""
    return _uniform(moves(board, rules, state), jnp.ones(3, bool), key)


def random_safe(board: Board, rules: Rules, state: State, key: jax.Array) -> jax.Array:
    """Uniform over the moves that do not kill at once."""
    options = moves(board, rules, state)
    return _uniform(options, options.is_safe, key)


def _uniform(options: Moves, is_allowed: jax.Array, key: jax.Array) -> jax.Array:
    """One of the allowed `[3]`; none is likelier than another by more than one in five million."""
    places = jnp.cumsum(is_allowed.astype(jnp.uint32))  # from 1 on
    rank = (((jax.random.bits(key) >> 8) * places[-1]) >> 24) + 1
    return options.heading[jnp.argmax(is_allowed & (places == rank))]


def direct(board: Board, rules: Rules, state: State, key: jax.Array) -> jax.Array:
    """Closes the distance in columns, then that in rows; goes forward instead of reversing."""
    right = board.col(state.food) - board.col(state.head)
    down = board.row(state.food) - board.row(state.head)
    across, along = jnp.where(right > 0, 1, 3), jnp.where(down > 0, 2, 0)
    direction = jnp.where(right != 0, across, along)
    is_possible = (state.food >= 0) & ((direction ^ state.heading) != 2)
    return jnp.where(is_possible, direction, state.heading).astype(jnp.int32)


def shortest(board: Board, rules: Rules, state: State, key: jax.Array) -> jax.Array:
    """A shortest path through cells that are free now; if there is none, the first safe move."""
    options = moves(board, rules, state)
    return first_heading(options, leads_to_food(board, rules, state, options))


def lookahead(board: Board, rules: Rules, state: State, key: jax.Array) -> jax.Array:
    """The start of a shortest path to the food, if a path to the tail remains after it.

    Else the safe move that leaves such a path, and of several the one that leaves the longest; that
    gives the body time to move away; else the safe move that leaves the most room. If the rules
    allow following the tail, a snake that can reach its tail can always do so again: it may starve,
    but never runs into itself.
    """
    options = moves(board, rules, state)
    prospects = jax.vmap(lambda heading: prospect(board, rules, state, heading))(options.heading)
    worth = jnp.where(prospects.is_sound, board.num_cells + prospects.path, prospects.room)
    worth = jnp.where(options.is_safe, worth, -1)
    reaches_food = leads_to_food(board, rules, state, options) & prospects.is_sound
    return first_heading(
        options, jnp.where(jnp.any(reaches_food), reaches_food, worth == jnp.max(worth))
    )


def hamiltonian(board: Board, rules: Rules, state: State, key: jax.Array) -> jax.Array:
    """The next cell of the tour; if that is not safe, the first safe move.

    Fills the board if the rules allow following the tail. Raises ValueError for odd sides, and for
    obstacles.
    """
    options = moves(board, rules, state)
    place = _places(board, state)
    return first_heading(
        options, options.is_safe & (place(options.target) == place(state.head) + 1)
    )


def shortcuts(board: Board, rules: Rules, state: State, key: jax.Array) -> jax.Array:
    """The move that gets farthest along the tour, beyond neither the food nor, nearly, the tail.

    Once it covers half of the board it takes no shortcuts. The body always lies in the order of the
    tour, so all cells from the head on to the tail are free: this player cannot die if the rules
    allow following the tail. Raises ValueError for odd sides, and for obstacles.
    """
    options = moves(board, rules, state)
    place = _places(board, state)
    head_place, target_places = place(state.head), place(options.target)
    limit = board.num_cells - 1 - GROWTH
    foods = state.food if state.foods is None else state.foods
    food = place(foods)
    limit = jnp.where((foods >= 0) & (food > head_place), jnp.minimum(food, limit), limit)
    limit = limit if state.foods is None else jnp.min(limit)
    limit = jnp.where(
        2 * state.length < board.num_cells, jnp.maximum(limit, head_place + 1), head_place + 1
    )
    is_allowed = options.is_safe & (head_place < target_places) & (target_places <= limit)
    return first_heading(
        options, is_allowed & (target_places == jnp.max(jnp.where(is_allowed, target_places, 0)))
    )


def _places(board: Board, state: State) -> Callable[[jax.Array], jax.Array]:
    """How many steps of the tour a cell is ahead of the tail, 1 to all; the tail itself is all.

    A tour has two directions, and a snake of three always lies in the order of one of them: the one
    in which, from the tail on, the neck comes before the head.
    """
    tour, size = cycle(board), board.num_cells
    if state.obstacles is not None:
        raise ValueError(
            "obstacles lie on the tour: let another player play, such as lookahead, or leave "
            "them out"
        )
    if not tour.is_closed:
        raise ValueError(
            f"a {board.rows}×{board.cols} board has no closed tour: players that follow one expect "
            "an even side; let another player play, such as lookahead"
        )
    rank = jnp.asarray(tour.rank)

    def steps_ahead(cell: jax.Array) -> jax.Array:
        return (rank.at[cell].get(mode="clip") - rank[state.tail] - 1) % size + 1

    neck = state.head - game.offset(board, state.heading)
    is_forward = steps_ahead(neck) < steps_ahead(state.head)

    def place(cell: jax.Array) -> jax.Array:
        steps = steps_ahead(cell)
        return jnp.where(is_forward | (steps == size), steps, size - steps)

    return place


PLAYERS: dict[str, Player] = {
    "random": random,
    "random_safe": random_safe,
    "direct": direct,
    "shortest": shortest,
    "lookahead": lookahead,
    "hamiltonian": hamiltonian,
    "shortcuts": shortcuts,
}


def able_players(board: Board, obstacles: int = 0) -> list[str]:
    """The names of the players that can play on a board.

    Two of them follow a tour of its cells, which is not there where both sides are odd, nor where
    obstacles lie on it.
    """
    follow_tours = ("hamiltonian", "shortcuts")
    has_tour = cycle(board).is_closed and not obstacles
    return [name for name in PLAYERS if has_tour or name not in follow_tours]
