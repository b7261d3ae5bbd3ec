"""Sets of cells as bits: a board of 10×10 cells is four 32-bit words, one of 32×32 is 33.

A set is a tuple of words, each an array of its own, so that under `vmap` over N games every word is
one contiguous `[N]` array. Cell (row, col) is bit `row * (cols + 1) + col`: each row ends with a
guard bit that is never a cell, so a step over any edge of the board lands on a bit that is in no
set, and "outside" needs no test of its own.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from envs import bounded_loop

Bits = tuple[jax.Array, ...]  # words of uint32, lowest cells first
WORD = 32


@dataclass(frozen=True)
class Board:
    """The size of a board, and what follows from it."""

    rows: int
    cols: int

    @property
    def stride(self) -> int:
        """The distance between two cells of one column."""
        return self.cols + 1

    @property
    def num_cells(self) -> int:
        return self.rows * self.cols

    @property
    def longest_path(self) -> int:
        """No shortest path within any set of cells has more cells, both ends included.

        A shortest path of L cells has no shortcut: they share L - 1 sides, and the other 2 L + 2
        face cells that are not on it, four sides each, or the edge of the board. So 2 L + 2 is at
        most 4 (rows * cols - L) + 2 (rows + cols).
        """
        return (2 * self.num_cells + self.rows + self.cols - 1) // 3

    @property
    def num_words(self) -> int:
        return -(-self.rows * self.stride // WORD)

    @property
    def cells(self) -> Bits:
        """All cells of the board."""
        row = (1 << self.cols) - 1
        all_bits = sum(row << (r * self.stride) for r in range(self.rows))
        return from_int(all_bits, self.num_words)

    @property
    def indices(self) -> np.ndarray:
        """The bit of every cell, int32 `[cells]`, row by row."""
        rows, cols = np.arange(self.rows, dtype=np.int32), np.arange(self.cols, dtype=np.int32)
        return (rows[:, None] * np.int32(self.stride) + cols[None, :]).reshape(-1)

    def index(self, row: int, col: int) -> int:
        """The bit of a cell."""
        return row * self.stride + col

    def row(self, index: jax.Array) -> jax.Array:
        return index // self.stride

    def col(self, index: jax.Array) -> jax.Array:
        return index % self.stride


def from_int(value: int, num_words: int) -> Bits:
    """The set whose bits are those of a Python integer."""
    mask = (1 << WORD) - 1
    return tuple(jnp.uint32(value >> (WORD * w) & mask) for w in range(num_words))


def single(index: jax.Array, num_words: int) -> Bits:
    """The set of one cell; empty for an index that is on no word, such as -1."""
    bit = jnp.uint32(1) << (index & (WORD - 1)).astype(jnp.uint32)
    word = index >> 5
    return tuple(jnp.where(word == w, bit, jnp.uint32(0)) for w in range(num_words))


def contains(bits: Bits, index: jax.Array) -> jax.Array:
    """Whether a cell is in the set; False for an index that is on no word."""
    word = index >> 5
    value = jnp.uint32(0)
    for w, candidate in enumerate(bits):
        value = jnp.where(word == w, candidate, value)
    return (value >> (index & (WORD - 1)).astype(jnp.uint32)) & 1 != 0


def union(a: Bits, b: Bits) -> Bits:
    """The cells of either."""
    return tuple(x | y for x, y in zip(a, b, strict=True))


def intersection(a: Bits, b: Bits) -> Bits:
    """The cells of both."""
    return tuple(x & y for x, y in zip(a, b, strict=True))


def difference(a: Bits, b: Bits) -> Bits:
    """The cells of `a` that are not of `b`."""
    return tuple(x & ~y for x, y in zip(a, b, strict=True))


def where(condition: jax.Array, a: Bits, b: Bits) -> Bits:
    """The cells of `a` where the condition, bool `[...]`, holds, else of `b`."""
    return tuple(jnp.where(condition, x, y) for x, y in zip(a, b, strict=True))


def intersects(a: Bits, b: Bits) -> jax.Array:
    """Whether two sets share a cell."""
    shared = jnp.uint32(0)
    for x, y in zip(a, b, strict=True):
        shared = shared | (x & y)
    return shared != 0


def count(bits: Bits) -> jax.Array:
    """The number of cells in the set, int32."""
    total = jnp.int32(0)
    for word in bits:
        total = total + jax.lax.population_count(word).astype(jnp.int32)
    return total


def select(bits: Bits, rank: jax.Array) -> jax.Array:
    """The cell with exactly `rank` smaller cells in the set; -1 if there is none."""
    word, base, is_found = jnp.uint32(0), jnp.int32(-1), jnp.bool_(False)
    for w, candidate in enumerate(bits):
        size = jax.lax.population_count(candidate).astype(jnp.int32)
        is_here = ~is_found & (rank < size)
        word = jnp.where(is_here, candidate, word)
        base = jnp.where(is_here, WORD * w, base)
        is_found = is_found | is_here
        rank = jnp.where(is_found, rank, rank - size)
    for width in (16, 8, 4, 2, 1):  # halve the word until one bit is left
        low = word & jnp.uint32((1 << width) - 1)
        size = jax.lax.population_count(low).astype(jnp.int32)
        upper = rank >= size
        rank = jnp.where(upper, rank - size, rank)
        word = jnp.where(upper, word >> width, low)
        base = jnp.where(is_found & upper, base + width, base)
    return base


def draw(bits: Bits, size: jax.Array, random_word: jax.Array) -> jax.Array:
    """A uniform cell of a set of `size` cells, from 32 random bits; -1 if the set is empty.

    Multiply and shift: 23 random bits times at most 511 cells fit a word, so that no cell is
    likelier than another by more than 1 in 16,000; on boards that need more than 15 words, 21 bits
    times at most 1,087 cells, and 1 in 1,900.
    """
    size_bits = max(9, (WORD * len(bits)).bit_length())  # of a set that fills all words
    rank = ((random_word >> size_bits) * size.astype(jnp.uint32)) >> (WORD - size_bits)
    return select(bits, rank.astype(jnp.int32))


def shift(bits: Bits, distance: int) -> Bits:
    """Every cell moved by `distance` bits, upwards if positive."""
    zero = jnp.uint32(0)
    num_words, num_bits = divmod(abs(distance), WORD)
    words = list(bits) if distance >= 0 else list(bits)[::-1]
    words = [zero] * num_words + words[: len(words) - num_words]
    if num_bits == 0:
        shifted_words = words
    elif distance >= 0:
        carry = [zero, *words[:-1]]
        shifted_words = [
            (w << num_bits) | (c >> (WORD - num_bits)) for w, c in zip(words, carry, strict=True)
        ]
    else:
        carry = [zero, *words[:-1]]
        shifted_words = [
            (w >> num_bits) | (c << (WORD - num_bits)) for w, c in zip(words, carry, strict=True)
        ]
    return tuple(shifted_words if distance >= 0 else shifted_words[::-1])


def distance(board: Board, a: jax.Array, b: jax.Array) -> jax.Array:
    """The Manhattan distance of two cells."""
    return jnp.abs(board.row(a) - board.row(b)) + jnp.abs(board.col(a) - board.col(b))


def neighbourhood(board: Board, bits: Bits) -> Bits:
    """The set together with the cells (and guards) beside it."""
    cells = bits
    for distance in (1, -1, board.stride, -board.stride):
        cells = union(cells, shift(bits, distance))
    return cells


def flood(board: Board, seeds: Bits, free: Bits) -> Bits:
    """All cells of `free` that a 4-connected path within `free` joins to a cell of `seeds`.

    On a CPU until nothing changes, on accelerators for as long as any flood may take.
    """

    def grow(carry: tuple[Bits, jax.Array]) -> tuple[Bits, jax.Array]:
        reached, _ = carry
        expanded = intersection(neighbourhood(board, reached), free)
        return expanded, intersects(difference(expanded, reached), free)

    seeds = intersection(seeds, free)
    return bounded_loop.while_loop(
        lambda carry: carry[1],
        grow,
        (seeds, jnp.bool_(True)),
        most_rounds=board.longest_path,
        to_fixed_point=True,
    )[0]
