"""Two snakes and one food on arrays: no reward, no observation, no episode.

Both move first; collisions are judged afterwards: with a wall, the own body, or the other's body
as it lies after the move. So a head may follow either tail, unless that snake eats and
its tail stays; heads that meet, or that change places, kill both. Two that reach the food in one
step have met on it: both die, and nobody has eaten. A dead snake vanishes; the other plays on.

Wherever there are two of something, the first axis counts the players: 0 the learner, 1 the other.
"""

from dataclasses import fields, replace
from functools import partial

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
LEFT_SIDE, RIGHT_SIDE = 0, 1
NOWHERE = -1


@struct.dataclass
class State:
    """One game. Cells are indices of `Board.index`; integers are int32 unless said otherwise."""

    snakes: Body  # leaves [2, ...]; a dead one covers nothing, its head and tail are at -1
    cause: jax.Array  # [2] ALIVE, or what each has died of
    score: jax.Array  # [2] food eaten
    hunger: jax.Array  # [2] steps since the last meal
    food: jax.Array  # -1 when there is no free cell
    time: jax.Array  # steps since the start
    side: jax.Array  # where the learner began: 0 left, 1 right
    opponent: jax.Array  # index of the environment's opponent that moves the other snake
    rival: jax.Array  # uint32, random, constant within an episode


class Event(struct.PyTreeNode):
    """What a move did, each a bool `[2]`."""

    ate: jax.Array
    died: jax.Array


def starts(board: Board) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The (row, col) cells of the left snake, which heads right, and of the right one; head first.

    Raises ValueError where the tails do not fit on the board behind the heads.
    """
    row, left, right = board.rows // 2, board.cols // 4, 3 * board.cols // 4
    bodies = (
        [(row, left - i) for i in range(START_LENGTH)],
        [(row, right + i) for i in range(START_LENGTH)],
    )
    if bodies[0][-1][1] < 0 or bodies[1][-1][1] >= board.cols:
        raise ValueError(
            f"two snakes do not fit on a board {board.cols} columns wide; use at least 9 columns"
        )
    return bodies


def start(
    board: Board,
    side: jax.Array,
    random_word: jax.Array,
    opponent: jax.Array | int = 0,
    rival: jax.Array | int = 0,
    keep_order: bool = False,
) -> State:
    """A new game with the learner on `side`; its food comes from one random word.

    `keep_order` makes the game carry the order of both bodies, for observations that show it.
    """
    left, right = starts(board)
    game = from_bodies(board, (left, right), (1, 3), None, keep_order)
    snakes = jax.tree.map(lambda x: jnp.where(side == LEFT_SIDE, x, x[::-1]), game.snakes)
    return replace(
        game,
        snakes=snakes,
        food=draw_food(board, snakes, random_word),
        side=jnp.asarray(side, jnp.int32),
        opponent=jnp.asarray(opponent, jnp.int32),
        rival=jnp.asarray(rival, jnp.uint32),
    )


def from_bodies(
    board: Board,
    bodies: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    headings: tuple[int, int],
    food: tuple[int, int] | None,
    keep_order: bool = False,
) -> State:
    """The game in which two snakes cover the (row, col) cells of `bodies`, head first.

    Raises ValueError if a cell is off the board, covered twice, or not beside the one before it.
    """
    shared = set(bodies[LEARNER]) & set(bodies[OTHER])
    if shared:
        raise ValueError(f"both snakes cover {sorted(shared)}; give them cells of their own")
    snakes = [
        body_of(positions.from_body(board, body, None, heading, keep_order))
        for body, heading in zip(bodies, headings, strict=True)
    ]
    zero, zeros = jnp.zeros((), jnp.int32), jnp.zeros(2, jnp.int32)
    return State(
        snakes=jax.tree.map(lambda *pair: jnp.stack(pair), *snakes),
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
    """Which snakes are alive, bool `[2]`."""
    return state.cause == ALIVE


def move(
    board: Board,
    state: State,
    headings: jax.Array,
    moving: jax.Array,
    random_word: jax.Array,
) -> tuple[State, Event]:
    """One step of both towards `headings` `[2]`.

    A snake that is not `moving`, bool `[2]`, stays in place: a snake that runs into it dies alone.
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
    """A uniform cell that neither snake covers; -1 if there is none."""
    free = empty_cells(board, snakes)
    return bitboard.draw(free, board.num_cells - jnp.sum(snakes.length), random_word)


def empty_cells(board: Board, snakes: Body) -> Bits:
    """The cells that neither snake covers."""
    return tuple(
        cells & ~(word[LEARNER] | word[OTHER])
        for cells, word in zip(board.cells, snakes.occupied, strict=True)
    )


def _collision(board: Board, before: Body, after: Body) -> jax.Array:
    """What each head has run into, int32 `[2]`: ALIVE, HIT_WALL, HIT_SELF or HIT_OTHER.

    The own tail has moved on: a snake that keeps its tail has its head on food, not on that tail.
    """
    body_without_tail = bitboard.difference(
        before.occupied, bitboard.single(before.tail, board.num_words)
    )
    theirs = tuple(word[::-1] for word in after.occupied)
    cause = jnp.where(bitboard.contains(theirs, after.head), HIT_OTHER, ALIVE)
    cause = jnp.where(bitboard.contains(body_without_tail, after.head), HIT_SELF, cause)
    return jnp.where(bitboard.contains(board.cells, after.head), cause, HIT_WALL)


def _remove_snakes(snakes: Body) -> Body:
    nowhere = jnp.full(2, NOWHERE, jnp.int32)
    return replace(
        snakes,
        occupied=tuple(jnp.zeros_like(word) for word in snakes.occupied),
        head=nowhere,
        tail=nowhere,
        length=jnp.zeros(2, jnp.int32),
        order=None if snakes.order is None else jnp.zeros_like(snakes.order),
    )


def _where_each(condition: jax.Array, a: Body, b: Body) -> Body:
    """`jnp.where` for each snake, by a condition `[2]`."""

    def choose(x, y):
        return jnp.where(condition.reshape(2, *[1] * (x.ndim - 1)), x, y)

    return jax.tree.map(choose, a, b)
