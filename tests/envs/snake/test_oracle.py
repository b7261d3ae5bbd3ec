"""The slow Snake itself, on boards small enough to check by eye.

In a picture `a` is the head and `b`, `c`, ... follow it to the tail; `*` is the food.
"""

import numpy as np
import pytest

from tests.envs.snake import oracle
from tests.envs.snake.oracle import (
    CLASSIC,
    DOWN,
    FORWARD,
    LEFT,
    MODERN,
    RIGHT,
    TO_LEFT,
    TO_RIGHT,
    UP,
)
from tests.envs.snake.oracle_views import VIEWS, observe

LOOP = """
    ....
    .ab.
    .dc.
    ...*
"""
CORNER = """
    bc..
    ad.*
    .e..
    ....
"""


def test_parse_and_draw_are_inverse():
    game = oracle.parse(CORNER, DOWN)
    assert game.body == [(1, 0), (0, 0), (0, 1), (1, 1), (2, 1)]
    assert game.food == (1, 3)
    assert oracle.draw(game) == "oo..\nHo.*\n.t..\n...."
    assert oracle.order(game).tolist() == [[4, 3, 0, 0], [5, 2, 0, 0], [0, 1, 0, 0], [0] * 4]


def test_the_classic_start():
    game = oracle.Game(4, 5, oracle.classic_body(4, 5), RIGHT, (0, 0))
    assert oracle.draw(game) == "*....\n.....\ntoH..\n....."


def test_straight_starts_are_all_distinct_and_fit():
    starts = oracle.straight_starts(3, 4)
    # Each of up and down has one fitting head row of 4 cells; each of left and right 2 of 3 rows.
    assert len(starts) == 2 * 4 + 2 * 2 * 3
    assert ([(0, 0), (1, 0), (2, 0)], UP) in starts
    assert ([(0, 3), (0, 2), (0, 1)], RIGHT) in starts


@pytest.mark.parametrize(
    ("action", "head"), [(FORWARD, (2, 0)), (TO_RIGHT, None), (TO_LEFT, (1, 1))]
)
def test_relative_moves_when_heading_down(action, head):
    game = oracle.parse("b..\na..\n...", DOWN)
    report = game.step(action, None)
    assert report.terminated == (head is None)
    assert game.head == (head or (1, 0))


def test_a_reversal_is_ignored():
    game = oracle.parse("cba.\n....", RIGHT)
    game.step(LEFT, None, absolute=True)
    assert game.body == [(0, 3), (0, 2), (0, 1)]
    game.step(DOWN, None, absolute=True)
    assert (game.head, game.heading) == ((1, 3), DOWN)


def test_the_tail_is_a_wall_in_classic_and_a_way_out_in_modern():
    classic, modern = oracle.parse(LOOP, LEFT), oracle.parse(LOOP, LEFT, MODERN)
    report = classic.step(TO_LEFT, None)
    assert (report.terminated, report.cause, report.reward) == (True, "death_self", -10.0)
    assert classic.body == [(1, 1), (1, 2), (2, 2), (2, 1)]
    report = modern.step(TO_LEFT, None)
    assert (report.terminated, report.cause) == (False, "")
    assert modern.body == [(2, 1), (1, 1), (1, 2), (2, 2)]


def test_a_meal_lengthens_and_resets_hunger():
    game = oracle.parse("cba*\n....", RIGHT)
    game.hunger = 7
    report = game.step(FORWARD, (1, 0))
    assert (report.reward, report.ate, game.score, game.hunger, game.time) == (10.0, True, 1, 0, 1)
    assert game.body == [(0, 3), (0, 2), (0, 1), (0, 0)]
    assert game.food == (1, 0)


def test_food_may_not_lie_under_the_new_head():
    with pytest.raises(AssertionError, match="free cells"):
        oracle.parse("cba*\n....", RIGHT).step(FORWARD, (0, 3))


def test_shaping_pays_for_coming_nearer():
    nearer, farther = oracle.parse("cba..*\n......", RIGHT), oracle.parse("cba...\n*.....", RIGHT)
    assert nearer.step(FORWARD, None).reward == pytest.approx(-0.01 + 0.5 / 6)
    assert farther.step(FORWARD, None).reward == pytest.approx(-0.01 - 0.5 / 6)


@pytest.mark.parametrize(("action", "cause"), [(FORWARD, "death_wall"), (TO_LEFT, "death_wall")])
def test_walls_kill(action, cause):
    report = oracle.parse("..cba\n.....", RIGHT).step(action, None)
    assert (report.reward, report.cause, report.terminated) == (-10.0, cause, True)


def test_entrapment_is_judged_before_the_turn():
    trapped = oracle.parse("ab...\ndc...", LEFT)  # walls ahead and right, the tail to the left
    assert trapped.is_entrapped()
    assert trapped.step(TO_LEFT, None).cause == "entrapped"
    # With one way out (forward), a fatal turn is not entrapment, though after the turn the neck,
    # the wall and the body surround the head.
    careless = oracle.parse("....\nabc.\n.ed.", UP)
    assert not careless.is_entrapped()
    assert careless.step(TO_LEFT, None).cause == "death_wall"
    assert not oracle.parse("ab...\ndc...", LEFT, MODERN).is_entrapped()


def test_the_clock_truncates_on_top_of_everything():
    game = oracle.parse("cba..\n*....", RIGHT)
    game.time = 998
    assert not game.step(FORWARD, None).truncated
    report = game.step(TO_RIGHT, None)
    assert (report.terminated, report.truncated) == (False, True)
    assert report.reward == pytest.approx(-0.01 + 0.5 / 5 - 5)


@pytest.mark.parametrize("way", ["truncate", "terminate"])
def test_hunger_ends_the_game(way):
    rules = oracle.Rules(starvation=way, starvation_base=0, starvation_per_cell=1)
    game = oracle.parse("cba...\n......\n*.....", RIGHT, rules)
    assert game.starvation_limit() == 36
    game.hunger = 34
    assert game.step(FORWARD, None).cause == ""
    report = game.step(TO_RIGHT, None)
    assert (report.cause, report.terminated) == ("starved", way == "terminate")
    assert report.truncated == (way == "truncate")


def test_a_full_board_wins_in_modern_only():
    for rules, wins in ((MODERN, True), (CLASSIC, False)):
        game = oracle.parse("bc\na*", DOWN, rules)
        report = game.step(TO_LEFT, None)
        assert (report.ate, report.won, report.terminated) == (True, wins, wins)
        assert game.food is None


def test_reachable_counts_an_origin_that_is_an_obstacle():
    cells = oracle.reachable_cells(2, 3, (0, 0), {(0, 0), (0, 1)})
    assert cells == {(0, 0), (1, 0), (1, 1), (1, 2), (0, 2)}


def test_features_and_flood_by_eye():
    game = oracle.parse(CORNER, DOWN)
    assert observe(game, "features").tolist() == [0, 1, 1, 0, 1, 0, 0, 0, 0, 1]
    # Forward (2, 0): 2,0 3,0 3,1 3,2 3,3 2,2 2,3 1,2 1,3 0,2 0,3 are 11 of 11 free cells.
    assert observe(game, "flood")[10:].tolist() == [1, 0, 0]


def test_selective_and_enhanced_by_eye():
    game = oracle.parse(CORNER, DOWN)
    assert observe(game, "selective")[13:].tolist() == [0, 1, 1, 0, 1]
    rest = [2 / 4, 0, 0, 0, 1, 1, 0, 1, 2 / 6, 5 / 16]
    # (2, 0) has neighbours (1, 0) head, (2, 1) tail, (3, 0) free and the wall: one of four.
    rest[0] = 1 / 4
    np.testing.assert_allclose(observe(game, "enhanced")[13:], rest)


def test_tail_by_eye():
    game = oracle.parse(CORNER, DOWN)
    expected = [0, 1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    # Heading down, right is to the west: food 3 columns east is 3 to the left.
    expected += [0, -3 / 3, 1 / 3, -1 / 3, 0, 0, 0, 1, 1, 0, 0, 1]
    expected += [2 / 3, 3 / 3, 0 / 3, 5 / 16]
    np.testing.assert_allclose(observe(game, "tail"), expected)


def test_a_closed_room_hides_food_and_tail():
    game = oracle.parse(".bc..\nhad..\ngfe.*", DOWN)
    observation = observe(game, "tail")
    assert observation[:12].tolist() == [1] * 3 + [0] * 9
    game.rules = MODERN  # now the tail's cell is free, and beyond it (0, 0), but not the food
    observation = observe(game, "tail")
    assert observation[:3].tolist() == [1, 1, 0]
    np.testing.assert_allclose(observation[3:6], [0, 0, 2 / 7])
    assert observation[6:12].tolist() == [0, 0, 1, 0, 0, 0]


def test_planes_by_eye():
    board = observe(oracle.parse("cba*", RIGHT), "planes")
    assert board.shape == (1, 4, 5)
    np.testing.assert_allclose(board[0, :, 4], [1 / 3, 2 / 3, 1, 0], rtol=1e-6)
    assert board[0, :, :4].tolist() == [[1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1]]


def test_without_food_its_entries_are_zero():
    game = oracle.parse("..\ncb\n.a", DOWN)
    game.food = None
    assert observe(game, "features")[3:7].tolist() == [0] * 4
    assert observe(game, "tail")[9:14].tolist() == [0] * 5
    assert observe(game, "planes")[..., 3].sum() == 0


@pytest.mark.parametrize(
    ("name", "size"),
    [("features", 10), ("flood", 13), ("selective", 18), ("enhanced", 23), ("tail", 28)],
)
def test_sizes(name, size):
    assert observe(oracle.parse(CORNER, DOWN), name).shape == (size,)
    assert name in VIEWS
