"""Sets of cells as bits, and flood fill on them, against breadth-first search."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from envs.snake import bitboard
from envs.snake.bitboard import Board
from tests.envs.snake.oracle import reachable_cells
from tests.envs.snake.stacked_boards import pack, unpack

SIZES = (*range(4, 21), 26, 31, 32)
NUM_BOARDS = 10_000
SAME_BOARD = np.array(  # neighbours lie in the same board of a stack [N, rows, cols]
    [np.zeros((3, 3)), [[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.zeros((3, 3))], bool
)


def components(free: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """The free cells of each board `[N, rows, cols]` that are joined to a seed."""
    labels = np.zeros(free.shape, np.int32)
    count: Any = ndimage.label(free, SAME_BOARD, output=labels)
    is_reached = np.zeros(count + 1, bool)
    is_reached[labels[seeds]] = True
    is_reached[0] = False
    return is_reached[labels]


def random_boards(count: int, rows: int, cols: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Free cells at every density, and one or a few seeds, free or not."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (count, rows, cols), np.uint8)
    free = noise < rng.integers(0, 257, (count, 1, 1))
    seeds = np.zeros((count, rows * cols), bool)
    for _ in range(2):
        seeds[np.arange(count), rng.integers(0, rows * cols, count)] = True
    return free, seeds.reshape(count, rows, cols)


def test_the_stacked_search_is_breadth_first_search():
    """`components` is quick enough for millions of boards, and agrees with a queue."""
    for rows, cols in ((4, 4), (5, 11), (20, 7)):
        free, seeds = random_boards(300, rows, cols, seed=rows)
        reached = components(free, seeds)
        for board, starts, answer in zip(free, seeds, reached, strict=True):
            obstacles = {(int(r), int(c)) for r, c in np.argwhere(~board)}
            expected = set()
            for row, col in np.argwhere(starts & board):
                expected |= reachable_cells(rows, cols, (int(row), int(col)), obstacles)
            assert expected == {(int(r), int(c)) for r, c in np.argwhere(answer)}


@pytest.mark.slow
@pytest.mark.parametrize("cols", SIZES)
def test_flood_fill_on_random_boards_of_every_size(cols):
    boards = [Board(rows, cols) for rows in SIZES]
    cases = [random_boards(NUM_BOARDS, rows, cols, seed=100 * rows + cols) for rows in SIZES]

    @jax.jit  # all heights in one compilation, which is what takes the time
    def flood(seeds, free):
        return [
            jax.vmap(lambda s, f, board=board: bitboard.flood(board, s, f))(*case)
            for board, *case in zip(boards, seeds, free, strict=True)
        ]

    reached = flood([pack(seeds) for _, seeds in cases], [pack(free) for free, _ in cases])
    for board, (free, seeds), words in zip(boards, cases, reached, strict=True):
        expected = pack(components(free, seeds))
        np.testing.assert_array_equal(np.array(words), np.array(expected), err_msg=str(board))


@pytest.mark.parametrize("size", [20, 32])
def test_a_long_corridor_is_followed_to_its_end(size):
    free = np.ones((1, size, size), bool)
    free[0, 1::4, :-1] = False  # walls with one door each, at alternating ends
    free[0, 3::4, 1:] = False
    seeds = np.zeros_like(free)
    seeds[0, 0, 0] = True
    flood = jax.jit(jax.vmap(lambda s, f: bitboard.flood(Board(size, size), s, f)))
    np.testing.assert_array_equal(unpack(flood(pack(seeds), pack(free)), size, size), free)


def test_flood_fill_of_one_board_needs_no_batch():
    free, seeds = random_boards(20, 6, 9, seed=0)
    flood = jax.jit(lambda s, f: bitboard.flood(Board(6, 9), s, f))
    for i, expected in enumerate(components(free, seeds)):
        one = [tuple(jnp.asarray(word[i]) for word in pack(cells)) for cells in (seeds, free)]
        words = [word[None] for word in flood(*one)]
        np.testing.assert_array_equal(unpack(words, 6, 9)[0], expected)


# The arithmetic of sets, against Python's own


def random_sets(num_words: int, count: int = 64) -> tuple[list[int], tuple[Any, ...]]:
    """The same sets as Python integers and as words, sparse, dense, empty and full ones."""
    rng = np.random.default_rng(num_words)
    bits = rng.uniform(size=(count, 32 * num_words)) < rng.uniform(-0.1, 1.1, (count, 1))
    wholes = [sum(1 << int(i) for i in np.flatnonzero(row)) for row in bits]
    mask = 2**32 - 1
    words = [np.array([x >> 32 * w & mask for x in wholes], np.uint32) for w in range(num_words)]
    return wholes, tuple(words)


def whole(words, i: int) -> int:
    return sum(int(word[i]) << 32 * w for w, word in enumerate(words))


def test_cells_have_a_guard_after_each_row():
    board = Board(4, 5)
    assert (board.stride, board.num_cells, board.num_words) == (6, 20, 1)
    everywhere = pack(np.ones((1, 4, 5), bool))
    assert [int(word) for word in board.cells] == [int(word[0]) for word in everywhere]
    assert board.index(2, 3) == 15
    assert (board.row(jnp.int32(15)), board.col(jnp.int32(15))) == (2, 3)


@pytest.mark.parametrize("num_words", [1, 2, 33])
def test_sets_behave_like_integers(num_words):
    wholes, words = random_sets(num_words)
    others, other_words = wholes[::-1], tuple(word[::-1] for word in words)
    full = (1 << 32 * num_words) - 1
    results = {
        "union": (bitboard.union, lambda a, b: a | b),
        "intersection": (bitboard.intersection, lambda a, b: a & b),
        "difference": (bitboard.difference, lambda a, b: a & ~b),
    }
    for fast, slow in results.values():
        got = fast(words, other_words)
        expected = [slow(a, b) & full for a, b in zip(wholes, others, strict=True)]
        assert [whole(got, i) for i in range(len(wholes))] == expected
    counts, meet = bitboard.count(words), bitboard.intersects(words, other_words)
    assert counts.tolist() == [a.bit_count() for a in wholes]
    assert meet.tolist() == [a & b != 0 for a, b in zip(wholes, others, strict=True)]


@pytest.mark.parametrize("num_words", [1, 3])
@pytest.mark.parametrize("distance", [0, 1, -1, 5, -5, 21, -21, 31, -31])
def test_shifting_is_multiplying_by_powers_of_two(num_words, distance):
    wholes, words = random_sets(num_words)
    got = jax.vmap(lambda one: bitboard.shift(one, distance))(words)
    full = (1 << 32 * num_words) - 1
    expected = [(a << distance) & full if distance >= 0 else a >> -distance for a in wholes]
    assert [whole(got, i) for i in range(len(wholes))] == expected


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("num_words", [3, 1, 4])
def test_membership_and_selection_by_rank(num_words):
    wholes, words = random_sets(num_words)
    indices = np.arange(-33, 32 * num_words + 40, dtype=np.int32)
    ranks = np.arange(32 * num_words + 1, dtype=np.int32)
    each = lambda f, xs: jax.jit(jax.vmap(lambda s: jax.vmap(lambda x: f(s, x))(xs)))(words)
    contains, selected = each(bitboard.contains, indices), each(bitboard.select, ranks)
    for i, a in enumerate(wholes):
        members = [j for j in range(32 * num_words) if a >> j & 1]
        assert contains[i].tolist() == [j in members for j in indices]
        assert selected[i].tolist() == members + [-1] * (len(ranks) - len(members))
    single = jax.jit(jax.vmap(lambda x: bitboard.single(x, num_words)))(indices)
    inside = lambda j: 0 <= j < 32 * num_words
    assert [whole(single, k) for k in range(len(indices))] == [
        1 << int(j) if inside(j) else 0 for j in indices
    ]


@pytest.mark.parametrize(
    ("side", "size"), [(20, 1), (20, 3), (20, 97), (20, 400), (22, 484), (32, 1021), (32, 1024)]
)
def test_a_draw_reaches_every_member_from_the_least_word_to_the_greatest(side, size):
    board = Board(side, side)
    cells = np.sort(np.random.default_rng(size).permutation(side**2)[:size])
    members = np.zeros((1, side**2), bool)
    members[0, cells] = True
    words = tuple(word[0] for word in pack(members.reshape(1, side, side)))
    # Evenly spaced random words must fall on each member equally often, up to rounding.
    draws = np.linspace(0, 2**32 - 1, 400 * 256, dtype=np.uint64).astype(np.uint32)
    draw = jax.jit(jax.vmap(lambda word: bitboard.draw(words, jnp.int32(size), word)))
    got, times = np.unique(np.asarray(draw(draws)), return_counts=True)
    assert got.tolist() == [board.index(*divmod(int(cell), side)) for cell in cells]
    assert np.ptp(times) <= 2


def test_a_draw_from_nothing_is_nowhere():
    nothing = tuple(jnp.uint32(0) for _ in range(4))
    assert bitboard.draw(nothing, jnp.int32(0), jnp.uint32(2**32 - 1)) == -1
