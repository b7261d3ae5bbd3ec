"""Games that begin with a long snake, to reach late positions early in training.

The snake lies on a stretch of the board's tour (see `envs.snake.cycles`), in either direction.
"""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard, rules
from envs.snake.bitboard import Bits, Board
from envs.snake.cycles import cycle, prefixes
from envs.snake.rules import START_LENGTH, STEPS, State

NUM_WORDS = 3
"""Random words that `start` consumes besides one for each piece of food."""


def start(board: Board, random_words: jax.Array, share: float | jax.Array, short: State) -> State:
    """`short` or, with probability `share`, a game whose snake has 3 to all but one cells.

    Length, place on the tour and direction are uniform. Consumes uint32 random words, `NUM_WORDS`
    and one for each piece of food.
    """
    tour, cells = cycle(board), board.num_cells
    length = START_LENGTH + (random_words[0] % np.uint32(cells - START_LENGTH)).astype(jnp.int32)
    places = jnp.where(tour.is_closed, cells, cells - length + 1).astype(jnp.uint32)
    first = (random_words[1] % places).astype(jnp.int32)
    backwards = random_words[2] & 1 != 0
    cell_at = lambda place: jnp.asarray(tour.order)[place % cells]
    ends = cell_at(first), cell_at(first + length - 1)
    head, tail = (jnp.where(backwards, a, b) for a, b in (ends, ends[::-1]))
    neck = jnp.where(backwards, cell_at(first + 1), cell_at(first + length - 2))
    heading = _heading(neck, head)
    occupied = _stretch(board, first, length)
    head_set = bitboard.single(head, board.num_words)
    long = State(
        occupied=occupied,
        exits=(
            _exits(board, occupied, backwards, head_set, heading, bit=0),
            _exits(board, occupied, backwards, head_set, heading, bit=1),
        ),
        head=head,
        tail=tail,
        heading=heading,
        length=length,
        order=None if short.order is None else _order(board, first, length, backwards),
        food=short.food,
        time=short.time,
        hunger=short.hunger,
        mirrored=short.mirrored,
        reached=short.reached,
    )
    food_words = [random_words[i] for i in range(NUM_WORDS, len(random_words))]
    long = rules.scatter_food(board, long, food_words)
    is_long = rules.uniform(random_words[2]) < share
    return jax.tree.map(lambda a, b: jnp.where(is_long, a, b), long, short)


def _stretch(board: Board, first: jax.Array, length: jax.Array) -> Bits:
    """The cells at `length` places of the tour from `first` on, which wraps around."""
    cells = board.num_cells
    prefix = lambda place: tuple(jnp.asarray(word)[place] for word in prefixes(board))
    end = first + length
    from_first = bitboard.difference(prefix(jnp.minimum(end, cells)), prefix(first))
    return bitboard.union(from_first, prefix(jnp.maximum(end - cells, 0)))


def _heading(cell: jax.Array, beside: jax.Array) -> jax.Array:
    """The direction from a cell to the one beside it."""
    step = beside - cell
    return jnp.where(
        jnp.abs(step) == 1, jnp.where(step > 0, 1, 3), jnp.where(step > 0, 2, 0)
    ).astype(jnp.int32)


def _exits(
    board: Board, occupied: Bits, backwards: jax.Array, head: Bits, heading: jax.Array, bit: int
) -> Bits:
    """One bit of the directions in which the cells were left; the head's is its heading."""
    forth, back = (bitboard.from_int(words[bit], board.num_words) for words in _tour_exits(board))
    exits = bitboard.intersection(occupied, bitboard.where(backwards, back, forth))
    with_head, without_head = bitboard.union(exits, head), bitboard.difference(exits, head)
    return bitboard.where((heading >> bit) & 1 != 0, with_head, without_head)


@lru_cache(maxsize=32)
def _tour_exits(board: Board) -> tuple[tuple[int, ...], ...]:
    """Cells of the tour and of its reverse whose exit direction has bit 0 or 1, as integers."""
    order = cycle(board).order
    return tuple(
        tuple(_cells_with_bit(board, order, np.roll(order, shift), bit) for bit in (0, 1))
        for shift in (-1, 1)
    )


def _cells_with_bit(board: Board, cells: np.ndarray, following: np.ndarray, bit: int) -> int:
    """The cells whose direction to the following one has this bit; none at ends of an open tour."""
    headings = {row * board.stride + col: heading for heading, (row, col) in enumerate(STEPS)}
    return sum(
        1 << int(cell)
        for cell, next_cell in zip(cells, following, strict=True)
        if headings.get(int(next_cell) - int(cell), 0) >> bit & 1
    )


def _order(board: Board, first: jax.Array, length: jax.Array, backwards: jax.Array) -> jax.Array:
    """`State.order` of a snake on the tour: int16 `[cells]`."""
    ranks = jnp.asarray(cycle(board).rank[board.indices])  # [cells], place on the tour
    place = (ranks - first) % board.num_cells
    order = jnp.where(backwards, length - place, place + 1)
    return jnp.where(place < length, order, 0).astype(jnp.int16)
