"""Games of Snake from a list of cells, for pictures and tests."""

import jax.numpy as jnp

from envs.snake import bitboard, rules
from envs.snake.bitboard import Board


def from_body(
    board: Board,
    body: list[tuple[int, int]],
    food: tuple[int, int] | None,
    heading: int,
    keep_order: bool = False,
) -> rules.State:
    """The game in which the snake covers the (row, col) cells of `body`, head first.

    Raises ValueError if a cell is off the board, covered twice, or not beside the one before it.
    """
    occupied, low, high = 0, 0, 0
    for i, cell in enumerate(body):
        if not (0 <= cell[0] < board.rows and 0 <= cell[1] < board.cols) or cell in body[:i]:
            raise ValueError(f"body cell {cell} is off the board or covered twice")
        bit = 1 << board.index(*cell)
        exit_heading = heading if i == 0 else _heading_between(cell, body[i - 1])
        occupied |= bit
        low |= bit * (exit_heading & 1)
        high |= bit * (exit_heading >> 1)
    words = board.num_words
    cells = [jnp.int32(board.index(*cell)) for cell in body]
    return rules.State(
        occupied=bitboard.from_int(occupied, words),
        exits=(bitboard.from_int(low, words), bitboard.from_int(high, words)),
        head=cells[0],
        tail=cells[-1],
        food=jnp.int32(-1 if food is None else board.index(*food)),
        heading=jnp.int32(heading),
        length=jnp.int32(len(body)),
        time=jnp.int32(0),
        hunger=jnp.int32(0),
        order=rules.order_of(board, cells) if keep_order else None,
    )


def _heading_between(cell: tuple[int, int], successor: tuple[int, int]) -> int:
    step = (successor[0] - cell[0], successor[1] - cell[1])
    if step not in rules.STEPS:
        raise ValueError(f"body cells {successor} and {cell} are not neighbours")
    return rules.STEPS.index(step)
