"""The game of Snake on arrays: no reward, no observation, no episode.

Headings and directions are 0 up, 1 right, 2 down, 3 left everywhere. The body is one set of
occupied cells and, for each of its cells, the direction in which the snake left it: the tail
advances by reading two bits, at a cost that does not depend on how long the snake is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs.snake import bitboard
from envs.snake.bitboard import Bits, Board

START_LENGTH = 3
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # (row, col) of up, right, down, left


@dataclass(frozen=True)
class Rules:
    """The switches in which versions of Snake differ."""

    tail_is_fatal: bool
    """Whether moving into the cell that the tail leaves in the same step kills."""
    full_board_wins: bool
    """Whether a full board ends the game as won; otherwise it continues without food."""
    random_start: bool
    """Whether the snake starts anywhere; otherwise in the middle, heading right."""
    starvation: Literal["off", "truncate", "terminate"]
    """What happens after too many steps without food."""


CLASSIC = Rules(tail_is_fatal=True, full_board_wins=False, random_start=False, starvation="off")
MODERN = Rules(tail_is_fatal=False, full_board_wins=True, random_start=True, starvation="terminate")


@struct.dataclass
class Body:
    """One snake. Cells are indices of `Board.index`; all integers are int32."""

    occupied: Bits  # head and tail included
    exits: tuple[Bits, Bits]  # low and high bit of the direction in which a body cell was left
    head: jax.Array
    tail: jax.Array
    heading: jax.Array
    length: jax.Array
    order: jax.Array | None  # int16 [cells]: 1 at the tail, rising to length at the head; or none


@struct.dataclass
class State(Body):
    """One game: its snake, and what lies around it."""

    food: jax.Array  # -1 when the board is full
    time: jax.Array  # steps since the start
    hunger: jax.Array  # steps since the last meal
    mirrored: jax.Array | None = None  # whether observations and actions are reflected
    foods: jax.Array | None = None  # [K] every piece, -1 for none, where there are several: `food`
    # is then the nearest of them, and of those the one in the first cell
    obstacles: Bits | None = None  # cells that no snake can enter, where there are any
    size: jax.Array | None = None  # [2] rows and columns that are played on, where games differ in
    # it: the cells beyond are among the obstacles
    reached: Bits | None = None  # words [3] of `scene.Regions`, where they are kept
    practice: Any = None  # `starts.late.Practice`, where games may begin late


AnyBody = TypeVar("AnyBody", bound=Body)


class Event(struct.PyTreeNode):
    """What a move did, each a bool scalar."""

    ate: jax.Array
    died: jax.Array
    filled: jax.Array  # the move ate the last food that fits


def starts(board: Board, rules: Rules) -> np.ndarray:
    """All (head row, head col, heading) a game may begin with: int32 `[S, 3]`."""
    if not rules.random_start:
        return np.array([[board.rows // 2, board.cols // 2, 1]], np.int32)
    back = START_LENGTH - 1

    def fits(row, col, heading):
        row, col = row - back * STEPS[heading][0], col - back * STEPS[heading][1]
        return 0 <= row < board.rows and 0 <= col < board.cols

    return np.array(
        [
            (row, col, heading)
            for row in range(board.rows)
            for col in range(board.cols)
            for heading in range(4)
            if fits(row, col, heading)
        ],
        np.int32,
    )


def start(
    board: Board,
    rules: Rules,
    random_words: jax.Array,
    keep_order: bool = False,
    place: tuple[jax.Array, jax.Array, jax.Array] | None = None,
) -> State:
    """A new game: a straight snake of three, and food. Consumes uint32 `[2]` random words.

    `keep_order` keeps the order of the body as a grid in the state, which costs time and memory,
    for observations that need it at every step; `order` computes it otherwise. `place` is row and
    column of the head, and the heading; None: one of `starts`.
    """
    row, col, heading = _draw_start(board, rules, random_words) if place is None else place
    head = row * board.stride + col
    step = offset(board, heading)
    cells = [head, head - step, head - 2 * step]
    occupied = bitboard.single(cells[0], board.num_words)
    for cell in cells[1:]:
        occupied = bitboard.union(occupied, bitboard.single(cell, board.num_words))
    no_cells = tuple(jnp.zeros_like(word) for word in occupied)
    zero = jnp.zeros_like(head)
    state = State(
        occupied=occupied,
        exits=(
            bitboard.where(heading & 1 != 0, occupied, no_cells),
            bitboard.where(heading & 2 != 0, occupied, no_cells),
        ),
        head=head,
        tail=cells[-1],
        food=zero,
        heading=heading,
        length=zero + START_LENGTH,
        time=zero,
        hunger=zero,
        order=order_of(board, cells) if keep_order else None,
    )
    return replace(state, food=draw_food(board, state, random_words[0]))


def _draw_start(board: Board, rules: Rules, random_words: jax.Array) -> list[jax.Array]:
    """One of `starts`, by the second random word where there are several."""
    choices = starts(board, rules)
    if len(choices) == 1:
        return [jnp.int32(x) for x in choices[0]]
    # 32 bits modulo a few thousand: uniform within one in a million
    choice = jnp.asarray(choices)[random_words[1] % np.uint32(len(choices))]
    return [choice[0], choice[1], choice[2]]


def turn(state: Body, action: jax.Array, relative: bool) -> jax.Array:
    """The heading an action asks for.

    Relative actions are 0 forward, 1 left, 2 right. Absolute actions are headings; the reverse of
    the present one is ignored.
    """
    if relative:
        quarter_turns = jnp.array([0, 3, 1], jnp.int32)
        return (state.heading + quarter_turns[action]) & 3
    reverses = (action ^ state.heading) == 2
    return jnp.where(reverses, state.heading, action).astype(jnp.int32)


def turn_to(heading: jax.Array, new_heading: jax.Array | int) -> jax.Array:
    """The relative action that `turn`s one heading into another; for the reverse 0, forward."""
    return jnp.array([0, 2, 0, 1], jnp.int32)[(new_heading - heading) & 3]


def offset(board: Board, heading: jax.Array) -> jax.Array:
    """How much one step changes the index of a cell."""
    distance = jnp.where(heading & 1 != 0, 1, board.stride)
    return jnp.where((heading == 0) | (heading == 3), -distance, distance)


def deadly_body(board: Board, rules: Rules, state: State) -> Bits:
    """The body cells that are deadly to move into now."""
    if rules.tail_is_fatal:
        return state.occupied
    return bitboard.difference(state.occupied, bitboard.single(state.tail, board.num_words))


def open_cells(board: Board, state: State) -> Bits:
    """The cells of the board that are no obstacles, the snake's among them."""
    if state.obstacles is None:
        return board.cells
    return bitboard.difference(board.cells, state.obstacles)


def num_open(board: Board, state: State) -> jax.Array | int:
    """The number of `open_cells`: the length of a snake that has filled the board."""
    if state.obstacles is None or state.size is not None:
        return num_cells(board, state)
    return board.num_cells - bitboard.count(state.obstacles)


def size_of(board: Board, state: State) -> tuple[int, int] | tuple[jax.Array, jax.Array]:
    """The rows and columns that are played on."""
    return (board.rows, board.cols) if state.size is None else (state.size[0], state.size[1])


def num_cells(board: Board, state: State) -> int | jax.Array:
    """The number of cells that are played on, obstacles among them."""
    rows, cols = size_of(board, state)
    return rows * cols


def longer_side(board: Board, state: State) -> int | jax.Array:
    """The larger number of the rows and columns that are played on."""
    return max(board.rows, board.cols) if state.size is None else jnp.max(state.size)


def free_cells(board: Board, rules: Rules, state: State) -> Bits:
    """The cells the head may move into."""
    return bitboard.difference(open_cells(board, state), deadly_body(board, rules, state))


def candidates(board: Board, state: Body) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The cells forward, left and right of the head; possibly off the board."""
    headings = (state.heading, (state.heading + 3) & 3, (state.heading + 1) & 3)
    ahead, left, right = (state.head + offset(board, heading) for heading in headings)
    return ahead, left, right


def exit_heading(body: Body, cell: jax.Array) -> jax.Array:
    """The direction in which the snake left a cell of its body."""
    low, high = (bitboard.contains(plane, cell).astype(jnp.int32) for plane in body.exits)
    return low + 2 * high


def is_entrapped(board: Board, rules: Rules, state: State) -> jax.Array:
    """Whether every move kills."""
    free = free_cells(board, rules, state)
    ahead, left, right = (bitboard.contains(free, cell) for cell in candidates(board, state))
    return ~(ahead | left | right)


def move(
    board: Board, rules: Rules, state: State, heading: jax.Array, random_word: jax.Array
) -> tuple[State, Event]:
    """One step towards `heading`. A deadly one advances only the time counters."""
    target = state.head + offset(board, heading)
    survives = bitboard.contains(free_cells(board, rules, state), target)
    ate = survives & _is_food(state, target)

    hunger = jnp.where(ate, -1, state.hunger)
    moved_state = replace(advance(board, state, heading, ate), hunger=hunger)
    state = jax.tree.map(lambda new, old: jnp.where(survives, new, old), moved_state, state)
    state = _replace_food(board, state, ate, random_word)
    state = replace(state, time=state.time + 1, hunger=state.hunger + 1)
    died, filled = ~survives, ate & (state.length == num_open(board, state))
    return state, Event(ate, died, filled)


def advance(board: Board, body: AnyBody, heading: jax.Array, grows: jax.Array) -> AnyBody:
    """The body one step towards `heading`, whatever is there; its tail stays where it `grows`."""
    target = body.head + offset(board, heading)
    tail_bit = bitboard.single(body.tail, board.num_words)
    head_bit = bitboard.single(body.head, board.num_words)
    kept_cells = bitboard.where(grows, body.occupied, bitboard.difference(body.occupied, tail_bit))
    low, high = body.exits
    tail_heading = exit_heading(body, body.tail)
    without_head = tuple(bitboard.difference(plane, head_bit) for plane in (low, high))
    return replace(
        body,
        occupied=bitboard.union(kept_cells, bitboard.single(target, board.num_words)),
        exits=(
            bitboard.where(heading & 1 != 0, bitboard.union(low, head_bit), without_head[0]),
            bitboard.where(heading & 2 != 0, bitboard.union(high, head_bit), without_head[1]),
        ),
        head=target,
        tail=jnp.where(grows, body.tail, body.tail + offset(board, tail_heading)),
        heading=heading,
        length=body.length + grows.astype(jnp.int32),
        order=_advance_order(board, body, target, grows),
    )


def draw_food(board: Board, state: State, random_word: jax.Array) -> jax.Array:
    """A uniform cell without snake, obstacle or other food; -1 if there is none."""
    empty = bitboard.difference(open_cells(board, state), state.occupied)
    if state.foods is None:
        return bitboard.draw(empty, num_open(board, state) - state.length, random_word)
    empty = bitboard.difference(empty, food_cells(board, state))
    return bitboard.draw(empty, bitboard.count(empty), random_word)


def scatter_food(board: Board, state: State, random_words: Sequence[jax.Array]) -> State:
    """A new game with as many pieces of food as random words."""
    if len(random_words) == 1:
        return replace(state, food=draw_food(board, state, random_words[0]))

    def add(foods: jax.Array, piece: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        place, random_word = piece
        cell = draw_food(board, replace(state, foods=foods), random_word)
        return jnp.where(places == place, cell, foods), None

    places = jnp.arange(len(random_words), dtype=jnp.int32)
    no_foods = jnp.full_like(places, -1)
    foods, _ = jax.lax.scan(add, no_foods, (places, jnp.stack(random_words)))
    return replace(state, foods=foods, food=nearest_food(board, state.head, foods))


def food_cells(board: Board, state: State) -> Bits:
    """The cells on which food lies."""
    if state.foods is None:
        return bitboard.single(state.food, board.num_words)
    pieces = bitboard.single(state.foods, board.num_words)  # words [K]
    no_cells = np.uint32(0)
    return tuple(jax.lax.reduce(word, no_cells, jax.lax.bitwise_or, (0,)) for word in pieces)


def nearest_food(board: Board, head: jax.Array, foods: jax.Array) -> jax.Array:
    """The nearest of `foods` `[K]`, of several the one in the first cell; -1 if there is none."""
    size, nowhere = board.rows * board.stride, np.iinfo(np.int32).max
    ranks = bitboard.distance(board, head, foods) * size + foods
    least = jnp.min(jnp.where(foods >= 0, ranks, nowhere))
    return jnp.where(least == nowhere, -1, least % size)


def _is_food(state: State, cell: jax.Array) -> jax.Array:
    """Whether food lies on a cell of the board."""
    return cell == state.food if state.foods is None else jnp.any(cell == state.foods)


def _replace_food(board: Board, state: State, ate: jax.Array, random_word: jax.Array) -> State:
    """The state in which food that the head has just eaten lies elsewhere."""
    food = draw_food(board, state, random_word)
    if state.foods is None:
        return replace(state, food=jnp.where(ate, food, state.food))
    foods = jnp.where(ate & (state.foods == state.head), food, state.foods)
    return replace(state, foods=foods, food=nearest_food(board, state.head, foods))


def uniform(random_word: jax.Array) -> jax.Array:
    """Float32 in [0, 1) from 32 random bits."""
    return (random_word >> 8).astype(jnp.float32) * 2**-24


def order(board: Board, state: Body) -> jax.Array:
    """Int32 `[rows, cols]`: 1 at the tail, rising along the body to `length` at the head, else 0.

    Walks the body, in time proportional to its length: for pictures and tests.
    """

    def walk(rank, carry):
        ranks, cell = carry
        ranks = ranks.at[board.row(cell), board.col(cell)].set(rank)
        return ranks, cell + offset(board, exit_heading(state, cell))

    no_ranks = jnp.zeros((board.rows, board.cols), jnp.int32)
    return jax.lax.fori_loop(1, state.length + 1, walk, (no_ranks, state.tail))[0]


def order_of(board: Board, cells: list[jax.Array]) -> jax.Array:
    """`Body.order` of a snake that covers `cells`, head first."""
    order = jnp.zeros(board.num_cells, jnp.int16)
    for rank, cell in enumerate(reversed(cells), start=1):
        order = jnp.where(board.indices == cell, jnp.int16(rank), order)
    return order


def _advance_order(
    board: Board, body: Body, target: jax.Array, grows: jax.Array
) -> jax.Array | None:
    """`Body.order` once the head is on `target`: all ranks fall by one unless the tail stays."""
    if body.order is None:
        return None
    lowered_ranks = jnp.maximum(body.order - (~grows).astype(jnp.int16), 0)
    length = (body.length + grows.astype(jnp.int32)).astype(jnp.int16)
    return jnp.where(board.indices == target, length, lowered_ranks)
