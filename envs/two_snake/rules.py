"""Two snakes, or up to four, and one food on arrays: no reward, no observation, no episode.

All move first; collisions are judged afterwards: with a wall, the own body, or another's body
as it lies after the move. So a head may follow any tail, unless that snake eats and
its tail stays; heads that meet, or that change places, kill both. Those that reach the food in one
step have met on it: all die, and nobody has eaten. A dead snake vanishes; the others play on.

P is the number of snakes. The first axis of what each of them has counts them: 0 the learner, and
then the others.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial, reduce
from itertools import combinations

import jax
import jax.numpy as jnp
from flax import struct

from envs.snake import bitboard
from envs.snake import rules as snake
from envs.snake.bitboard import Bits, Board
from envs.snake.pictures import positions
from envs.snake.rules import START_LENGTH, Body

LEARNER, OTHER = 0, 1
ALIVE, HIT_WALL, HIT_SELF, HIT_OTHER = range(4)
LEFT_SIDE = 0
NOWHERE = -1

Cells = list[tuple[int, int]]  # of one snake: (row, col), head first


@struct.dataclass
class State:
    """One game. Cells are indices of `Board.index`; integers are int32 unless said otherwise."""

    snakes: Body  # leaves [P, ...]; a dead one covers nothing, its head and tail are at -1
    cause: jax.Array  # [P] ALIVE, or what each has died of
    score: jax.Array  # [P] food eaten
    hunger: jax.Array  # [P] steps since the last meal
    food: jax.Array  # -1 when there is no free cell
    time: jax.Array  # steps since the start
    side: jax.Array  # where the learner began, a place in `starts`: 0 left, 1 right
    opponent: jax.Array  # index of the environment's opponent that moves the other snakes
    rival: jax.Array  # uint32, random, constant within an episode


class Event(struct.PyTreeNode):
    """What a move did, each a bool `[P]`."""

    ate: jax.Array
    died: jax.Array


def starts(board: Board, snakes: int = 2) -> list[Cells]:
    """The (row, col) cells of the left snake, which heads right, and of the right one; head first.

    Of more than two, the first two lie in an upper row, the others in a lower one.
    Raises ValueError where the tails do not fit on the board behind the heads.
    """
    left, right = board.cols // 4, 3 * board.cols // 4
    rows = (board.rows // 2,) if snakes == 2 else (board.rows // 4, 3 * board.rows // 4)
    bodies = []
    for row in rows:
        bodies.append([(row, left - i) for i in range(START_LENGTH)])
        bodies.append([(row, right + i) for i in range(START_LENGTH)])
    if bodies[0][-1][1] < 0 or bodies[1][-1][1] >= board.cols:
        raise ValueError(
            f"two snakes do not fit on a board {board.cols} columns wide; use at least 9 columns"
        )
    return bodies[:snakes]


def start(
    board: Board,
    side: jax.Array,
    random_word: jax.Array,
    opponent: jax.Array | int = 0,
    rival: jax.Array | int = 0,
    keep_order: bool = False,
    snakes: int = 2,
) -> State:
    """A new game with the learner on `side`; its food comes from one random word.

    `keep_order` makes the game carry the order of all bodies, for observations that show it.
    """
    bodies = starts(board, snakes)
    game = from_bodies(board, bodies, (1, 3, 1, 3)[:snakes], None, keep_order)
    if snakes == 2:
        bodies = jax.tree.map(lambda x: jnp.where(side == LEFT_SIDE, x, x[::-1]), game.snakes)
    else:
        places = (jnp.arange(snakes) + side) % snakes  # of the learner, and on from there
        bodies = jax.tree.map(lambda x: x[places], game.snakes)
    return replace(
        game,
        snakes=bodies,
        food=draw_food(board, bodies, random_word),
        side=jnp.asarray(side, jnp.int32),
        opponent=jnp.asarray(opponent, jnp.int32),
        rival=jnp.asarray(rival, jnp.uint32),
    )


def from_bodies(
    board: Board,
    bodies: Sequence[Cells],
    headings: Sequence[int],
    food: tuple[int, int] | None,
    keep_order: bool = False,
) -> State:
    """The game in which P snakes cover the (row, col) cells of `bodies`, head first.

    Raises ValueError if a cell is off the board, covered twice, or not beside the one before it.
    """
    shared = {cell for one, other in combinations(bodies, 2) for cell in {*one} & {*other}}
    if shared:
        raise ValueError(f"several snakes cover {sorted(shared)}; give them cells of their own")
    snakes = [
        body_of(positions.from_body(board, body, None, heading, keep_order))
        for body, heading in zip(bodies, headings, strict=True)
    ]
    zero, zeros = jnp.zeros((), jnp.int32), jnp.zeros(len(snakes), jnp.int32)
    return State(
        snakes=jax.tree.map(lambda *each: jnp.stack(each), *snakes),
        cause=zeros + ALIVE,
        score=zeros,
        hunger=zeros,
        food=jnp.int32(NOWHERE if food is None else board.index(*food)),
        time=zero,
        side=zero,
        opponent=zero,
        rival=jnp.zeros((), jnp.uint32),
    )


def body_of(state: Body) -> Body:
    """The snake alone of a game of one snake."""
    return Body(**{field.name: getattr(state, field.name) for field in fields(Body)})


def lives(state: State) -> jax.Array:
    """Which snakes are alive, bool `[P]`."""
    return state.cause == ALIVE


def of_others(values: jax.Array, join: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """The entry of `[P]` of the other snake; of several, what `join` makes of their entries."""
    return values[OTHER] if len(values) == 2 else join(values[OTHER:])


def move(
    board: Board,
    state: State,
    headings: jax.Array,
    moving: jax.Array,
    random_word: jax.Array,
) -> tuple[State, Event]:
    """One step of all towards `headings` `[P]`.

    A snake that is not `moving`, bool `[P]`, stays in place: a snake that runs into it dies alone.
    """
    before, moving = state.snakes, moving & lives(state)
    reaches = moving & (before.head + snake.offset(board, headings) == state.food)
    moved_snakes = jax.vmap(partial(snake.advance, board))(before, headings, reaches)
    snakes = _where_each(moving, moved_snakes, before)
    cause = jnp.where(moving, _collision(board, before, snakes), state.cause)
    died = moving & (cause != ALIVE)
    ate = reaches & ~died
    snakes = _where_each(died, _remove_snakes(snakes), snakes)
    needs_food = jnp.any(ate) | (state.food < 0)
    next_state = replace(
        state,
        snakes=snakes,
        cause=cause,
        score=state.score + ate,
        hunger=jnp.where(ate, 0, state.hunger + 1),
        food=jnp.where(needs_food, draw_food(board, snakes, random_word), state.food),
        time=state.time + 1,
    )
    return next_state, Event(ate, died)


def draw_food(board: Board, snakes: Body, random_word: jax.Array) -> jax.Array:
    """A uniform cell that no snake covers; -1 if there is none."""
    free = empty_cells(board, snakes)
    return bitboard.draw(free, board.num_cells - jnp.sum(snakes.length), random_word)


def empty_cells(board: Board, snakes: Body) -> Bits:
    """The cells that no snake covers."""
    return tuple(
        cells & ~reduce(operator.or_, [word[i] for i in range(len(word))])
        for cells, word in zip(board.cells, snakes.occupied, strict=True)
    )


def cells_of_others(snakes: Body) -> Bits:
    """The cells that all others cover, for each snake: words `[P]`."""
    if len(snakes.length) == 2:
        return tuple(word[::-1] for word in snakes.occupied)
    return tuple(
        jnp.stack(
            [
                reduce(operator.or_, [word[j] for j in range(len(word)) if j != i])
                for i in range(len(word))
            ]
        )
        for word in snakes.occupied
    )


def _collision(board: Board, before: Body, after: Body) -> jax.Array:
    """What each head has run into, int32 `[P]`: ALIVE, HIT_WALL, HIT_SELF or HIT_OTHER.

    The own tail has moved on: a snake that keeps its tail has its head on food, not on that tail.
    """
    body_without_tail = bitboard.difference(
        before.occupied, bitboard.single(before.tail, board.num_words)
    )
    theirs = cells_of_others(after)
    cause = jnp.where(bitboard.contains(theirs, after.head), HIT_OTHER, ALIVE)
    cause = jnp.where(bitboard.contains(body_without_tail, after.head), HIT_SELF, cause)
    return jnp.where(bitboard.contains(board.cells, after.head), cause, HIT_WALL)


def _remove_snakes(snakes: Body) -> Body:
    nowhere = jnp.full(len(snakes.length), NOWHERE, jnp.int32)
    return replace(
        snakes,
        occupied=tuple(jnp.zeros_like(word) for word in snakes.occupied),
        head=nowhere,
        tail=nowhere,
        length=jnp.zeros(len(snakes.length), jnp.int32),
        order=None if snakes.order is None else jnp.zeros_like(snakes.order),
    )


def _where_each(condition: jax.Array, a: Body, b: Body) -> Body:
    """`jnp.where` for each snake, by a condition `[P]`."""

    def choose(x, y):
        return jnp.where(condition.reshape(-1, *[1] * (x.ndim - 1)), x, y)

    return jax.tree.map(choose, a, b)
