"""Two snakes in single positions: crowded ones against breadth-first search, mirrors, by eye."""

import random
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.bitboard import Board
from envs.two_snake import opponents, rules, views
from envs.two_snake.near import near, reflect
from envs.two_snake.observations import features
from envs.two_snake.rules import ALIVE, HIT_OTHER, HIT_WALL
from envs.two_snake.scene import Scene
from tests.envs.snake.oracle import Game
from tests.envs.snake.random_bodies import covering_path, heading_of
from tests.envs.snake.stacked_boards import stack_states
from tests.envs.two_snake import oracle
from tests.envs.two_snake.oracle import Duel

BOARD = Board(6, 10)
COUNT = 80  # positions that are looked at at once
UP, RIGHT, DOWN, LEFT = range(4)


def state_of(games: list[Duel]) -> rules.State:
    """Fast states `[N]`."""
    singles = [
        stack_states(
            [Game(g.rows, g.cols, g.bodies[p], g.headings[p], g.food, score=0) for g in games]
        )
        for p in (0, 1)
    ]
    snakes = [rules.body_of(single) for single in singles]
    snakes = jax.tree.map(lambda *pair: jnp.stack(pair, 1), *snakes)
    pairs = lambda name: jnp.array([getattr(game, name) for game in games], jnp.int32)
    zeros = jnp.zeros(len(games), jnp.int32)
    return rules.State(
        snakes=snakes,
        cause=jnp.zeros((len(games), 2), jnp.int32),
        score=pairs("scores"),
        hunger=pairs("hungers"),
        food=singles[0].food,
        time=zeros,
        side=zeros,
        opponent=zeros,
        rival=zeros.astype(jnp.uint32),
    )


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0))
def look(state: rules.State, turns: jax.Array, moving: jax.Array):
    """What both see and would do by script, and one step of both: leaves `[N, ...]`."""

    def describe_view(view):
        scene = Scene(BOARD, view, views.regions(BOARD, view), 10)
        chase = opponents.greedy(BOARD, view)
        return features(scene), near(scene), chase, opponents.defensive(BOARD, view, chase)

    headings = (state.snakes.heading + jnp.array([0, 3, 1])[turns]) & 3
    after, event = rules.move(BOARD, state, headings, moving, jnp.uint32(0))
    return *jax.vmap(describe_view)(views.all_views(BOARD, state)), after, event


def crowded_games(seed: int) -> list[Duel]:
    """Two pieces of one path that covers the board, and food between them."""
    rng = random.Random(seed)
    games = []
    while len(games) < COUNT:
        path = covering_path(BOARD.rows, BOARD.cols, rng)
        cuts = sorted(rng.sample(range(len(path) + 1), 4))
        bodies = [path[a:b][:: rng.choice((1, -1))] for a, b in (cuts[:2], cuts[2:])]
        if min(map(len, bodies)) < 3:
            continue
        rng.shuffle(bodies)
        headings = [heading_of(body) for body in bodies]
        game = Duel(BOARD.rows, BOARD.cols, bodies, headings, None)
        game.food = rng.choice([*sorted(game.empty_cells()), None])
        game.scores = [rng.randrange(11), rng.randrange(11)]
        game.hungers = [rng.randrange(200), rng.randrange(200)]
        games.append(game)
    return games


@pytest.fixture(scope="module")
def games() -> list[Duel]:
    return crowded_games(0)


@pytest.fixture(scope="module")
def turns() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 3, (COUNT, 2), np.int32)


ALL_MOVE = np.ones((COUNT, 2), bool)


@pytest.mark.slow
def test_crowded_boards_look_as_to_breadth_first_search(games, turns):
    looks = jax.device_get(look(state_of(games), turns, ALL_MOVE))
    observations, from_heads, greedy, defensive, *_ = looks
    differ = pathless = 0
    for i, game in enumerate(games):
        for player in (0, 1):
            expected = oracle.features(game, player)
            np.testing.assert_allclose(
                observations[i, player], expected, atol=1e-5, err_msg=str(game)
            )
            np.testing.assert_allclose(
                from_heads[i, player], oracle.near(game, player), atol=1e-5, err_msg=str(game)
            )
            assert greedy[i, player] == oracle.greedy(game, player), oracle.draw(game)
            assert defensive[i, player] == oracle.defensive(game, player), oracle.draw(game)
            differ += greedy[i, player] != defensive[i, player]
            pathless += game.food is not None and not expected[26]
    assert differ > 10
    assert pathless > 10


def mirror_game(game: Duel) -> Duel:
    """The players exchanged, and left and right."""
    flip = lambda cell: (cell[0], game.cols - 1 - cell[1])
    bodies = [[flip(cell) for cell in body] for body in game.bodies[::-1]]
    headings = [-heading % 4 for heading in game.headings[::-1]]
    duel = Duel(game.rows, game.cols, bodies, headings, game.food and flip(game.food))
    duel.scores, duel.hungers = game.scores[::-1], game.hungers[::-1]
    return duel


def mirror_features(observations: np.ndarray) -> np.ndarray:
    """`[..., 33]` with left and right exchanged; a heading to the left is none of its three."""
    order = np.arange(33)
    for a, b in ((1, 2), (11, 12), (14, 15), (17, 19)):
        order[[a, b]] = b, a
    flipped = observations[..., order]
    flipped[..., 3] *= -1
    flipped[..., 8] = 1 - observations[..., 7:10].sum(-1)
    flipped[..., 21] = 1 - observations[..., 20:23].sum(-1)
    return flipped


def test_the_other_side_is_a_mirror(games, turns):
    """Players, left and right exchanged: the same views, deaths and meals, exchanged."""
    looks = jax.device_get(look(state_of(games), turns, ALL_MOVE))
    observations, from_heads, *_, after, event = looks
    mirror_turns = np.array([0, 2, 1], np.int32)[turns[:, ::-1]]
    theirs, their_heads, *_, other, other_event = jax.device_get(
        look(state_of([mirror_game(game) for game in games]), mirror_turns, ALL_MOVE)
    )
    np.testing.assert_allclose(theirs[:, ::-1], mirror_features(observations), atol=1e-6)
    reflected = jax.vmap(jax.vmap(reflect))(from_heads)
    np.testing.assert_allclose(their_heads[:, ::-1], reflected, atol=1e-6)
    np.testing.assert_array_equal(other.cause[:, ::-1], after.cause)
    np.testing.assert_array_equal(other.score[:, ::-1], after.score)
    np.testing.assert_array_equal(other_event.ate[:, ::-1], event.ate)
    row, col = after.snakes.head // BOARD.stride, after.snakes.head % BOARD.stride
    flipped = np.where(after.cause == ALIVE, row * BOARD.stride + BOARD.cols - 1 - col, -1)
    np.testing.assert_array_equal(other.snakes.head[:, ::-1], flipped)
    assert (after.cause == ALIVE).any()
    assert event.ate.any()


def line(row: int, head: int, tail: int) -> list[tuple[int, int]]:
    """A straight body in a row."""
    step = 1 if tail > head else -1
    return [(row, col) for col in range(head, tail + step, step)]


class Case(NamedTuple):
    """Two snakes, learner first, and what one step makes of them."""

    bodies: tuple[list[tuple[int, int]], list[tuple[int, int]]]
    headings: tuple[int, int]
    causes: tuple[int, int]
    turns: tuple[int, int] = (0, 0)
    food: tuple[int, int] | None = None
    ate: tuple[bool, bool] = (False, False)
    other_moves: bool = True


BOTH = (HIT_OTHER, HIT_OTHER)
CORNER = [(0, 9), (1, 9), (2, 9)]
LOOP = [(1, 1), (1, 2), (2, 2), (2, 1)]
BY_EYE = {
    "heads meet": Case((line(2, 3, 1), line(2, 5, 7)), (RIGHT, LEFT), BOTH),
    "heads change places": Case((line(2, 4, 2), line(2, 5, 7)), (RIGHT, LEFT), BOTH),
    "both reach the food": Case((line(2, 3, 1), line(2, 5, 7)), (RIGHT, LEFT), BOTH, food=(2, 4)),
    "a tail is followed": Case((line(2, 3, 1), line(2, 6, 4)), (RIGHT, RIGHT), (ALIVE, ALIVE)),
    "the tail of who eats stays": Case(
        (line(2, 3, 1), line(2, 6, 4)),
        (RIGHT, RIGHT),
        (HIT_OTHER, ALIVE),
        food=(2, 7),
        ate=(False, True),
    ),
    "into one that dies": Case((line(1, 8, 6), CORNER), (RIGHT, UP), (HIT_OTHER, HIT_WALL)),
    "round after the own tail": Case(
        (LOOP, line(4, 3, 5)), (LEFT, LEFT), (ALIVE, ALIVE), turns=(1, 0)
    ),
    "into one that lies still": Case(
        (line(2, 4, 2), line(2, 5, 7)), (RIGHT, LEFT), (HIT_OTHER, ALIVE), other_moves=False
    ),
}


def test_collisions_by_eye():
    cases = list(BY_EYE.values())
    cases += cases[:1] * (COUNT - len(cases))  # as many as are compiled for
    games = [Duel(6, 10, list(case.bodies), list(case.headings), case.food) for case in cases]
    turns = np.array([case.turns for case in cases], np.int32)
    moving = np.array([(True, case.other_moves) for case in cases])
    *_, after, event = jax.device_get(look(state_of(games), turns, moving))
    for i, (name, case) in enumerate(BY_EYE.items()):
        assert tuple(after.cause[i]) == case.causes, name
        assert tuple(event.ate[i]) == tuple(after.score[i]) == case.ate, name
    met_on_food = list(BY_EYE).index("both reach the food")
    assert divmod(int(after.food[met_on_food]), BOARD.stride) == (2, 4)


def test_three_that_meet_on_food_die_and_a_fourth_plays_on():
    bodies = [line(2, 3, 1), line(2, 5, 7), [(1, 4), (0, 4), (0, 5)], line(5, 3, 1)]
    headings = [RIGHT, LEFT, 2, RIGHT]
    state = rules.from_bodies(BOARD, bodies, headings, (2, 4))
    move = jax.jit(partial(rules.move, BOARD))
    after, event = move(state, jnp.array(headings), jnp.ones(4, bool), jnp.uint32(0))
    assert after.cause.tolist() == [HIT_OTHER, HIT_OTHER, HIT_OTHER, ALIVE]
    assert not event.ate.any()
    assert after.snakes.length.tolist() == [0, 0, 0, 3]
    assert divmod(int(after.food), BOARD.stride) == (2, 4)


@pytest.mark.parametrize("cols", [9, 10, 12, 15, 20, 32])
def test_what_is_known_of_a_start_is_what_a_search_finds(cols):
    board = Board(4, cols)
    bodies = oracle.first_cells(4, cols, 0)
    game = Duel(4, cols, bodies, [RIGHT, LEFT], None)
    state = rules.from_bodies(board, (bodies[0], bodies[1]), (RIGHT, LEFT), None)
    for player in (0, 1):
        regions = views.initial_regions(board, views.view(board, state, player))
        share = float(regions.mine) / len(game.empty_cells())
        assert share == pytest.approx(oracle.territory(game, player))
        free = oracle.free_for(game, player)
        assert oracle.regions(game, player) == [free] * 3


def test_a_random_way_is_uniform_among_the_open_ones():
    """The other snake heads left along the upper wall: forward and left are open."""
    bodies = (line(2, 3, 1), line(0, 6, 8))
    state = rules.from_bodies(BOARD, bodies, (RIGHT, LEFT), None)
    words = jax.random.bits(jax.random.key(3), (6000,))

    @jax.jit
    def turns(state, words):
        view = views.view(BOARD, state, rules.OTHER)
        return jax.vmap(lambda word: opponents.random_move(BOARD, view, word))(words)

    shares = np.bincount(turns(state, words), minlength=3) / len(words)
    np.testing.assert_allclose(shares, [0.5, 0.5, 0], atol=5 * 0.5 / np.sqrt(len(words)))


def test_bodies_that_overlap_are_refused():
    bodies = (line(2, 3, 1), line(2, 3, 5))
    with pytest.raises(ValueError, match=r"several snakes cover \[\(2, 3\)\]"):
        rules.from_bodies(BOARD, bodies, (RIGHT, LEFT), None)
