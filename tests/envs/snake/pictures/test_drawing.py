"""Pictures of Snake: the pixels of a picture against the body that it was drawn from."""

import random
from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake import rules
from envs.snake.bitboard import Board
from envs.snake.pictures import drawing, frames, positions, tiles
from tests.envs.snake.oracle import parse
from tests.envs.snake.random_bodies import covering_path, heading_of, random_body
from tests.envs.snake.stacked_boards import stack_states
from tests.envs.test_gif import frames_of

BOARDS = [Board(10, 10), Board(4, 20), Board(20, 4), Board(7, 5)]


def picture_of(board: Board, body, food, **options) -> np.ndarray:
    """uint8 `[H, W, 3]`."""
    state = positions.from_body(board, body, food, heading_of(body))
    return np.asarray(drawing.draw(board, state, **options))


def pixel(board: Board, picture: np.ndarray, row: float, col: float) -> np.ndarray:
    """The colour in the middle of a cell; halves lie on the edge between two."""
    top, left = drawing.corner(board)
    size = drawing.cell_size(board)
    return picture[int(top + (row + 0.5) * size), int(left + (col + 0.5) * size)]


def kind(colour: np.ndarray) -> str:
    """What a colour belongs to."""
    palette = {
        "board": [tiles.rgb(checker) for checker in tiles.CHECKERS],
        "snake": tiles.gradient(drawing.LOOKS[""].snake, drawing.SMOOTH),
        "food": [tiles.rgb(tiles.APPLE)],
        "obstacle": [tiles.rgb(tiles.STONE)],
    }
    return min(palette, key=lambda name: np.abs(palette[name] - colour.astype(float)).sum(1).min())


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: f"{board.rows}x{board.cols}")
def test_every_cell_shows_what_is_on_it(board):
    rng = random.Random(board.rows)
    for _ in range(8):
        body = random_body(board.rows, board.cols, rng)
        free = sorted(set(np.ndindex(board.rows, board.cols)) - set(body))
        food = rng.choice(free) if free else None
        picture = picture_of(board, body, food, ending="")
        for cell in np.ndindex(board.rows, board.cols):
            expected = "snake" if cell in body else "food" if cell == food else "board"
            assert kind(pixel(board, picture, *cell)) == expected, (body, cell)
        head = pixel(board, picture, *body[0])
        np.testing.assert_array_equal(head, tiles.rgb(drawing.LOOKS[""].snake[0]))


def test_obstacles_and_every_piece_of_food_are_shown():
    game = parse("cba#*\n..#..\n*...#\n.....", heading=1)
    board = Board(4, 5)
    state = jax.tree.map(lambda x: x[0], stack_states([game]))
    picture = np.asarray(drawing.draw(board, state))
    for cell in game.cells():
        expected = "food" if cell in game.food_cells else "board"
        expected = "obstacle" if cell in game.obstacles else expected
        expected = "snake" if cell in game.body else expected
        assert kind(pixel(board, picture, *cell)) == expected, cell
    arrays = frames.game_arrays(board, rules.CLASSIC, stack_states([game]))
    number = lambda cell: cell[0] * board.cols + cell[1]
    assert np.flatnonzero(arrays["obstacles"][0]).tolist() == sorted(map(number, game.obstacles))
    assert sorted(arrays["foods"][0].tolist()) == sorted(map(number, game.food_cells))
    assert arrays["food"][0] == number(game.food)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: f"{board.rows}x{board.cols}")
def test_the_body_joins_only_cells_that_follow_each_other(board):
    body = covering_path(board.rows, board.cols, random.Random(1))
    picture = picture_of(board, body, None, ending="")
    follows = {frozenset(pair) for pair in pairwise(body)}
    for row, col in np.ndindex(board.rows, board.cols):
        for other in ((row + 1, col), (row, col + 1)):
            if other[0] < board.rows and other[1] < board.cols:
                between = pixel(board, picture, (row + other[0]) / 2, (col + other[1]) / 2)
                joined = kind(between) == "snake"
                assert joined == (frozenset(((row, col), other)) in follows), (row, col, other)


def test_the_colour_goes_from_head_to_tail():
    board = Board(10, 10)
    body = covering_path(10, 10, random.Random(2))[:70]
    picture = picture_of(board, body, None)
    lightness = [pixel(board, picture, *cell).astype(int).sum() for cell in body]
    assert min(np.diff(lightness)) >= 0
    assert lightness[-1] - lightness[0] > 250


@pytest.mark.parametrize("heading", range(4))
def test_the_eyes_look_ahead(heading):
    board = Board(9, 9)
    step = np.array(rules.STEPS[heading])
    body = [tuple((np.array((4, 4)) - i * step).tolist()) for i in range(3)]
    picture = picture_of(board, body, (0, 0))
    top, left = drawing.corner(board)
    size = drawing.cell_size(board)
    tile = picture[top + 4 * size : top + 5 * size, left + 4 * size : left + 5 * size]
    for part, least in ((tiles.WHITE, 0.04), (tiles.INK, 0.08)):
        is_part = (tile == tiles.rgb(part)).all(-1)
        centre = np.argwhere(is_part).mean(0) / size - 0.5
        assert centre @ step > least
        assert abs(centre @ step[::-1]) < 0.03  # the two eyes balance


def test_the_frame_tells_the_end():
    board = Board(5, 6)
    body = covering_path(5, 6, random.Random(3))
    going = picture_of(board, body[:9], body[20])
    looks = {
        ending: picture_of(board, body[:9], body[20], ending=ending) for ending in drawing.LOOKS
    }
    np.testing.assert_array_equal(looks[""], going)
    full = picture_of(board, body, None)
    corners = {ending: tuple(picture[-1, 0].tolist()) for ending, picture in looks.items()}
    assert tuple(full[-1, 0].tolist()) == corners["board full"]
    assert len({corners[name] for name in ("", "time up", "crashed", "board full")}) == 4
    with pytest.raises(ValueError, match=r"'eaten'.*crashed"):
        picture_of(board, body, None, ending="eaten")


def test_a_title_that_is_too_long_is_cut():
    board = Board(20, 4)
    body = covering_path(20, 4, random.Random(4))[:9]
    plain = picture_of(board, body, None)
    titled = picture_of(board, body, None, title="a title much longer than this narrow board")
    changed = np.flatnonzero((plain != titled).any((0, 2)))
    score_and_step = np.flatnonzero((plain[: drawing.STRIP] == 255).all(-1).any(0))
    gap = np.diff(score_and_step).argmax()
    assert score_and_step[gap] < changed[0] < changed[-1] < score_and_step[gap + 1]


def slide(board: Board, path, length: int, food=None) -> rules.State:
    """The positions `[S, ...]` of a snake that slides along a path and at its end is stopped."""
    bodies = [path[i : i + length][::-1] for i in range(len(path) - length + 1)]
    states = [positions.from_body(board, body, food, heading_of(body)) for body in bodies]
    states.append(states[-1])
    states = [replace(state, time=jnp.int32(i)) for i, state in enumerate(states)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def test_a_film_shows_every_position(tmp_path):
    board, path = Board(5, 8), covering_path(5, 8, random.Random(5))[:20]
    states = slide(board, path, 6)
    drawing.film(board, states, tmp_path / "film.gif", fps=25, captions=list("abcdefghijklmnop"))
    read, seconds = frames_of(tmp_path / "film.gif")
    assert len(read) == 16
    assert seconds == pytest.approx([0.04] * 15 + [2.0])
    assert read[0].shape == (drawing.STRIP + 250 + drawing.MARGIN, 400 + 2 * drawing.MARGIN, 3)
    for i, frame in enumerate(read[:-1]):
        body = path[i : i + 6]
        for cell in np.ndindex(5, 8):
            assert (kind(pixel(board, frame, *cell)) == "snake") == (cell in body)
    state = jax.tree.map(lambda x: x[-1], states)
    crashed = np.asarray(drawing.draw(board, state, "p", "crashed"))
    away = np.abs(read[-1].astype(int) - crashed).max(-1)
    assert np.percentile(away, 98) < 40  # fewer colours, else the same
    assert tuple(read[-1][-1, 0].tolist()) == tuple(crashed[-1, 0].tolist())
    assert [entry.name for entry in tmp_path.iterdir()] == ["film.gif"]


@pytest.mark.slow
def test_a_film_of_a_long_snake_is_small(tmp_path):
    board = Board(10, 10)
    states = slide(board, covering_path(10, 10, random.Random(6)), 60)
    one = jax.tree.map(lambda x: x[:1], states)
    drawing.film(board, one, tmp_path / "one.gif")
    drawing.film(board, states, tmp_path / "all.gif")
    first, whole = ((tmp_path / name).stat().st_size for name in ("one.gif", "all.gif"))
    assert (whole - first) / (len(states.time) - 1) < 3000  # 3 MB for 1,000 steps


def test_a_film_of_a_long_game_hurries_to_its_end(tmp_path, monkeypatch):
    board, path = Board(5, 8), covering_path(5, 8, random.Random(5))[:20]
    states = slide(board, path, 6)
    drawing.film(board, states, tmp_path / "whole.gif")
    monkeypatch.setattr(drawing, "MOST_FRAMES", 4)
    drawing.film(board, states, tmp_path / "hurried.gif")
    (whole, _), (hurried, seconds) = (
        frames_of(tmp_path / f"{x}.gif") for x in ("whole", "hurried")
    )
    assert seconds == pytest.approx([0.05] * 3 + [2.0])
    for frame, place in zip(hurried, (0, 5, 10, 15), strict=True):
        np.testing.assert_array_equal(frame, whole[place])


def test_long_games_are_followed_in_chunks(monkeypatch):
    board, path = Board(4, 5), covering_path(4, 5, random.Random(7))[:14]
    states = slide(board, path, 5)
    states = jax.tree.map(np.asarray, states)
    whole = drawing.orders_of(board, states)
    monkeypatch.setattr(drawing, "CHUNK", 4)
    np.testing.assert_array_equal(whole, drawing.orders_of(board, states))


def test_what_cannot_be_filmed_is_refused(tmp_path):
    board, path = Board(4, 4), tmp_path / "film.gif"
    states = slide(board, covering_path(4, 4, random.Random(9))[:7], 5)
    with pytest.raises(ValueError, match="2 captions for 4 positions"):
        drawing.film(board, states, path, captions=("a", "b"))
    with pytest.raises(ValueError, match="fps is 100"):
        drawing.film(board, states, path, fps=100)
    with pytest.raises(ValueError, match="no positions"):
        drawing.film(board, jax.tree.map(lambda x: x[:0], states), path)
    assert not list(tmp_path.iterdir())
