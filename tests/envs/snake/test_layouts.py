"""Obstacles and several pieces of food: against the slow Snake, and gone where they are off."""

import random
from dataclasses import replace
from inspect import unwrap
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from envs.snake import bitboard, rules, scene
from envs.snake.bitboard import Board
from envs.snake.env import Snake
from envs.snake.observations import OBSERVATIONS
from envs.snake.rewards import Rewards
from envs.snake.rules import cells, food, movement, new_game
from envs.snake.starts import layouts
from tests.envs.snake import oracle
from tests.envs.snake.duel import assert_same, check_layout, duel
from tests.envs.snake.oracle import Cell, Game, neighbours, reachable_cells
from tests.envs.snake.oracle_views import observe
from tests.envs.snake.policies import follow_cycle, greedy, random_turn
from tests.envs.snake.random_bodies import random_game
from tests.envs.snake.stacked_boards import stack_states, unpack

# Weights that tell every event from every other.
WEIGHTS = Rewards(step=-0.013, food=3.0, death=-7.0, win=11.0, shaping=0.4, timeout=-0.9)
MODERN = oracle.Rules(False, True, "terminate", max_steps=100_000)


# Games


@pytest.mark.parametrize("pieces", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_games_with_obstacles(pieces):
    """Every start is a legal one, every move and observation that of the slow game."""
    env = Snake(6, 7, "planes", "modern", obstacles=3, foods=pieces)
    params = replace(env.default_params, rewards=WEIGHTS)
    tally = duel(env, params, MODERN, greedy, 250, 8)
    assert tally["meals"] > 100
    assert tally["entrapped"] > 10
    assert duel(env, params, MODERN, random_turn, 60, 8)["death_wall"] > 20


@pytest.mark.slow
def test_food_becomes_scarce_before_the_board_is_full():
    env = Snake(4, 6, "planes", "modern", foods=4)
    params = replace(env.default_params, rewards=WEIGHTS)
    tally = duel(env, params, MODERN, follow_cycle, 330, 8)
    assert tally["wins"] == tally["full boards"] > 3
    assert tally["longest"] == 24


@pytest.mark.slow
def test_a_board_is_full_with_its_obstacles():
    pictures = [f"{corner}*ab\nfedc\nghij\nnmlk" for corner in "#."]
    games = [oracle.parse(picture, oracle.LEFT, MODERN) for picture in pictures]
    move = lambda state: rules.move(Board(4, 4), rules.MODERN, state, state.heading, jnp.uint32(0))
    _, event = jax.vmap(move)(stack_states(games))
    assert event.ate.tolist() == [True, True]
    assert event.filled.tolist() == [True, False]
    reports = [
        game.step(oracle.FORWARD, food) for game, food in zip(games, (None, (0, 0)), strict=True)
    ]
    assert [report.won for report in reports] == [True, False]


@pytest.mark.slow
def test_every_observation_knows_obstacles_and_all_food():
    rng = random.Random(5)
    sizes = (6, 7, oracle.MODERN, rng)
    games = [random_game(*sizes, obstacles=rng.randint(1, 6), pieces=3) for _ in range(80)]
    envs = {name: Snake(6, 7, name, "modern") for name in OBSERVATIONS}

    @jax.jit
    def observe_all(states):
        return {name: jax.vmap(env.get_obs)(states) for name, env in envs.items()}

    for name, got in jax.device_get(observe_all(stack_states(games))).items():
        assert_same(name, got, [observe(game, name) for game in games], games, 1e-6)
        space = envs[name].observation_space()
        assert (got.min() >= space.low, got.max() <= space.high) == (True, True)


# Layouts


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("rows", "cols"), [(5, 5), (10, 10), pytest.param(32, 32, marks=pytest.mark.slow)]
)
def test_the_most_obstacles_always_fit_and_harm_nobody(rows, cols):
    most = layouts.most_obstacles(Board(rows, cols))
    env = Snake(rows, cols, "features", "modern", obstacles=most)
    keys = jax.random.split(jax.random.key(rows), 40)
    _, states = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, env.default_params)
    order = jax.jit(jax.vmap(lambda state: rules.order(env.board, state)))(states)
    for ranks, obstacles, heading in zip(
        np.asarray(order), unpack(states.obstacles, rows, cols), states.heading, strict=True
    ):
        body = [tuple(np.argwhere(ranks == rank)[0].tolist()) for rank in (3, 2, 1)]
        closed = frozenset((int(r), int(c)) for r, c in np.argwhere(obstacles))
        check_layout(env, Game(rows, cols, body, int(heading), None, obstacles=closed))


def test_an_obstacle_lies_anywhere_where_it_does_no_harm_and_equally_often():
    board = Board(5, 7)
    game = Game(5, 7, oracle.classic_body(5, 7), oracle.RIGHT, None)
    env = Snake(5, 7, "features", obstacles=1)
    keys = jax.random.split(jax.random.key(0), 20_000)
    _, states = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, env.default_params)
    places, times = np.unique(
        np.argmax(unpack(states.obstacles, 5, 7).reshape(-1, 35), axis=1), return_counts=True
    )
    expected = [
        board.cols * row + col for row, col in game.cells() if is_harmless(game, (row, col))
    ]
    assert 8 < len(expected) < 25
    assert places.tolist() == expected
    assert stats.chisquare(times).pvalue > 1e-3


def is_harmless(game: Game, cell: Cell) -> bool:
    """Whether a cell may become an obstacle, by the conditions of `envs.snake.starts.layouts`."""
    free = set(game.free_cells())
    if cell not in free or cell in {game.candidate(turn) for turn in oracle.TURNS}:
        return False
    around = {(cell[0] + i, cell[1] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} - {cell}
    sides = [side for side in neighbours(cell) if side in free]
    outside = set(game.cells()) - (around & free)
    is_passable = set(sides) <= reachable_cells(game.rows, game.cols, sides[0], outside)
    is_open = lambda other: game.is_inside(other) and other not in game.obstacles
    widths = [sum(map(is_open, neighbours(side))) for side in neighbours(cell) if is_open(side)]
    return is_passable and min(widths) > 2


# Off


@pytest.mark.parametrize(
    "env",
    [
        Snake(5, 6, "tail"),
        pytest.param(Snake(5, 6, "planes", entrapment="judged"), marks=pytest.mark.slow),
        pytest.param(
            Snake(6, 7, "near", "modern", mirror=True, grown_starts=True), marks=pytest.mark.slow
        ),
        pytest.param(
            Snake(5, 6, "board", actions="absolute", crowding=True), marks=pytest.mark.slow
        ),
    ],
    ids=lambda env: env.observation,
)
def test_without_either_the_program_is_that_of_a_game_that_knows_neither(env, monkeypatch):
    """The functions that know obstacles and food are replaced by ones that do not."""
    ours = program_of(env)
    assert "None" in ours[1]
    plain_rules = {
        "open_cells": lambda board, state: board.cells,
        "num_open": lambda board, state: board.num_cells,
        "food_cells": lambda board, state: bitboard.single(state.food, board.num_words),
        "draw_food": draw_plain_food,
        "scatter_food": lambda board, state, words: replace(
            state, food=draw_plain_food(board, state, words[0])
        ),
        "is_food": lambda state, cell: cell == state.food,
        "replace_food": lambda board, state, ate, word: replace(
            state, food=jnp.where(ate, draw_plain_food(board, state, word), state.food)
        ),
    }
    modules = (rules, cells, food, movement, new_game)
    for module, (name, function) in product(modules, plain_rules.items()):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, function)
    monkeypatch.setattr(scene, "wall_distances", plain_wall_distances)
    monkeypatch.setattr("envs.snake.observations.vectors.wall_distances", plain_wall_distances)
    assert program_of(env) == ours


def program_of(env: Snake) -> tuple[str, str]:
    """The program of a step, reset included, and the structure of the state."""
    key, params = jax.random.key(0), env.default_params
    _, state = jax.eval_shape(env.reset, key, params)
    step = lambda *arguments: unwrap(Snake._step)(env, *arguments)  # traced anew
    program = jax.make_jaxpr(step)(key, state, jnp.int32(0), params)
    return str(program), str(jax.tree.structure(state))


def draw_plain_food(board, state, random_word):
    empty = bitboard.difference(board.cells, state.occupied)
    return bitboard.draw(empty, board.num_cells - state.length, random_word)


def plain_wall_distances(board, state, obstacles, size) -> list[jax.Array]:
    row, col = board.row(state.head), board.col(state.head)
    up, right, down, left = row, board.cols - 1 - col, board.rows - 1 - row, col
    return [
        scene._select_by_heading(state.heading, *ways)
        for ways in ((up, right, down, left), (left, up, right, down), (right, down, left, up))
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"obstacles": 10}, "obstacles is 10; a 10×10 board takes 0 to 9: more might cut it"),
        ({"rows": 4, "cols": 4, "obstacles": 1}, "a 4×4 board takes 0 to 0"),
        ({"obstacles": -1}, "obstacles is -1"),
        ({"foods": 0}, "foods is 0; a 10×10 board has room for 1 to 97"),
        ({"foods": 93, "obstacles": 5}, "foods is 93; a 10×10 board has room for 1 to 92"),
        ({"obstacles": 2, "grown_starts": True}, "lies on a tour of all cells"),
        ({"smallest_side": 3}, "smallest_side is 3; expected 4 to 10 cells"),
        ({"smallest_side": 9, "cols": 8}, "smallest_side is 9; expected 4 to 8 cells"),
        ({"square_boards": True}, "square_boards needs smallest_side"),
        ({"smallest_side": 6, "obstacles": 2}, "leave out smallest_side, or obstacles"),
        ({"smallest_side": 6, "grown_starts": True}, "leave out smallest_side, or obstacles"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        Snake(**arguments)
    assert "\n" not in str(caught.value)
