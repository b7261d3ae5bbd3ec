"""Pictures of two snakes: the colour of every cell against what is on it, and the film."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.bitboard import Board
from envs.snake.pictures import drawing as single
from envs.snake.pictures import tiles
from envs.two_snake import drawing, rules
from envs.two_snake.rules import HIT_WALL
from tests.envs.test_gif import frames_of

BOARD = Board(5, 9)
UP, RIGHT, LEFT = 0, 1, 3


@pytest.fixture(scope="module")
def states() -> rules.State:
    """Three positions `[3, ...]`: both alive, the learner dead of the wall, and still dead."""
    first = rules.from_bodies(
        BOARD,
        ([(0, 2), (1, 2), (1, 1), (1, 0)], [(3, 5), (3, 6), (3, 7)]),
        (UP, LEFT),
        (4, 4),
    )
    gone = jnp.array([True, False])
    cause = jnp.where(gone, HIT_WALL, first.cause)
    order = tuple(jnp.where(gone, 0, word) for word in first.snakes.occupied)
    snakes = replace(first.snakes, occupied=order, length=jnp.where(gone, 0, first.snakes.length))
    dead = replace(first, snakes=snakes, cause=cause, time=jnp.int32(1))
    return jax.tree.map(lambda *x: np.stack(x), first, dead, replace(dead, time=jnp.int32(2)))


def kinds(picture: Any) -> list[str]:
    """A letter for the colour in the middle of each cell, a string for each row."""
    palette = {
        ".": [tiles.rgb(checker) for checker in tiles.CHECKERS],
        "a": tiles.gradient(drawing.COLOURS[0], single.SMOOTH),
        "b": tiles.gradient(drawing.COLOURS[1], single.SMOOTH),
        "x": tiles.gradient(single.ASHES, single.SMOOTH),
        "*": [tiles.rgb(tiles.APPLE)],
    }
    pixels, size = np.asarray(picture).astype(float), single.cell_size(BOARD)
    top, left = single.corner(BOARD)
    middles = pixels[top + size // 2 :: size, left + size // 2 :: size][: BOARD.rows, : BOARD.cols]
    near = lambda colour, mark: np.abs(np.array(palette[mark]) - colour).sum(-1).min()
    return ["".join(min(palette, key=lambda m: near(c, m)) for c in row) for row in middles]


def test_each_cell_has_the_colour_of_who_is_on_it(states):
    first = jax.tree.map(lambda x: x[0], states)
    rows = ["..a......", "aaa......", ".........", ".....bbb.", "....*...."]
    assert kinds(drawing.draw(BOARD, first)) == rows


def test_who_dies_is_grey_once_and_then_gone(states, tmp_path):
    drawing.film(BOARD, states, tmp_path / "film.gif", "lost", fps=10)
    pictures, _ = frames_of(tmp_path / "film.gif")
    letters = [kinds(picture) for picture in pictures]
    assert letters[1][:2] == ["..x......", "xxx......"]
    assert letters[2][:2] == ["........."] * 2
    assert all(rows[3] == ".....bbb." for rows in letters)
    np.testing.assert_array_equal(pictures[-1][0, 0], tiles.rgb(drawing.FRAMES["lost"]))


def test_an_ending_that_is_none_is_refused(states):
    with pytest.raises(ValueError, match=r"'crashed' is unknown; expected one of .*'won'"):
        drawing.draw(BOARD, jax.tree.map(lambda x: x[0], states), ending="crashed")
