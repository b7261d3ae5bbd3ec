"""The rules and rewards of Snake: thousands of games against the slow one, state for state.

The environment is played through its public `step`, resets included, and shows the whole board, so
that the state in which each game ended is compared as well.
"""

import random
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from envs.snake.bitboard import Board
from envs.snake.env import Params, Snake
from envs.snake.pictures import positions
from envs.snake.rewards import ENTRAPMENT_REWARDS, Rewards, cpu_rewards
from envs.snake.rules import CLASSIC, MODERN, Rules
from tests.envs.snake import oracle
from tests.envs.snake.duel import duel
from tests.envs.snake.policies import follow_cycle, greedy, idle, random_turn

# Weights that tell every event from every other.
WEIGHTS = Rewards(step=-0.013, food=3.0, death=-7.0, win=11.0, shaping=0.4, timeout=-0.9)


@pytest.fixture(params=[8, pytest.param(64, marks=pytest.mark.slow)], scope="module")
def num_games(request: pytest.FixtureRequest) -> int:
    """Games side by side; how often a case has to occur is a number for each of them."""
    return request.param


def test_the_two_sets_of_rules():
    assert vars(CLASSIC) == {
        "tail_is_fatal": True,
        "full_board_wins": False,
        "random_start": False,
        "starvation": "off",
    }
    assert (MODERN.tail_is_fatal, MODERN.full_board_wins, MODERN.random_start) == (
        False,
        True,
        True,
    )
    assert MODERN.starvation in ("truncate", "terminate")
    classic = Snake(rules="classic").default_params
    assert classic.max_steps_in_episode == 1000
    assert vars(classic.rewards) == vars(oracle.Rewards())
    assert (classic.starvation_base, classic.starvation_per_cell) == (80, 4)


@pytest.mark.slow
def test_random_games_under_classic_rules():
    env = Snake(10, 10, "planes")
    tally = duel(env, env.default_params, oracle.CLASSIC, random_turn, num_steps=800)
    assert tally["games"] > 2000
    assert min(tally["death_wall"], tally["death_self"], tally["meals"]) > 50


def test_greedy_games_under_classic_rules(num_games):
    env = Snake(10, 10, "planes")
    tally = duel(env, env.default_params, oracle.CLASSIC, greedy, 400, num_games)
    assert tally["longest"] > 30
    assert tally["entrapped"] > 1.5 * num_games


@pytest.mark.slow
def test_full_boards_under_classic_rules(num_games):
    """The last meal ends nothing: the game goes on without food until the next move kills."""
    env = Snake(4, 6, "planes")
    tally = duel(env, env.default_params, oracle.CLASSIC, follow_cycle, 330, num_games)
    assert min(tally["full boards"], tally["entrapped"]) > 0.6 * num_games
    assert (tally["longest"], tally["wins"]) == (24, 0)


def test_the_time_limit_under_classic_rules(num_games):
    """Also where the last step of the clock eats, or kills, which is then both."""
    env = Snake(4, 6, "planes")
    for limit, policy, least in ((4, random_turn, 0.3), (12, greedy, 0)):
        params = replace(env.default_params, max_steps_in_episode=limit)
        rules = oracle.Rules(max_steps=limit)
        tally = duel(env, params, rules, policy, 120, num_games)
        assert tally["truncated"] > 0.9 * num_games
        assert tally["both"] >= least * num_games
        assert tally["fed by the clock"] >= least * num_games


@pytest.fixture(scope="module")
def modern():
    """Environment, parameters and slow rules of a small board on which hunger kills."""
    env = Snake(4, 6, "planes", Rules(False, True, True, "terminate"))
    params = replace(env.default_params, rewards=WEIGHTS)
    return env, params, oracle.Rules(False, True, "terminate", max_steps=100_000)


def test_full_boards_win_under_modern_rules(modern, num_games):
    env, params, rules = modern
    tally = duel(env, params, rules, follow_cycle, 330, num_games)
    assert tally["wins"] > 0.6 * num_games
    assert (tally["wins"], tally["longest"]) == (tally["full boards"], 24)


def test_greedy_games_under_modern_rules(modern, num_games):
    env, params, rules = modern
    tally = duel(env, params, rules, greedy, 250, num_games)
    assert tally["longest"] > 15
    assert tally["into the tail's cell"] > 1.5 * num_games


def test_starving_under_modern_rules(modern, num_games):
    env, params, rules = modern
    tally = duel(env, params, rules, idle, 250, num_games)
    assert tally["starved"] > 0.6 * num_games
    assert tally["truncated"] == 0
    hungrier = replace(params, starvation_base=0, starvation_per_cell=30)  # 90 at the start
    rules = replace(rules, starvation_base=0, starvation_per_cell=30)
    assert duel(env, hungrier, rules, idle, 100, num_games)["starved"] > 0.6 * num_games


def test_absolute_actions_and_starving_as_truncation(num_games):
    """Random play asks for a reversal a quarter of the time."""
    env = Snake(4, 7, "planes", Rules(False, True, True, "truncate"), actions="absolute")
    params = Params(max_steps_in_episode=400, rewards=WEIGHTS)
    rules = oracle.Rules(False, True, "truncate", max_steps=400)
    tally = duel(env, params, rules, random_turn, 150, num_games)
    assert tally["games"] > 12 * num_games
    tally = duel(env, params, rules, idle, 250, num_games)
    assert min(tally["starved"], tally["truncated"]) > 0.15 * num_games
    assert duel(env, params, rules, greedy, 200, num_games)["meals"] > 4 * num_games


@pytest.mark.slow
def test_rules_can_be_mixed():
    env = Snake(4, 4, "planes", Rules(True, True, True, "truncate"), actions="absolute")
    params = Params(max_steps_in_episode=1000, rewards=WEIGHTS)
    rules = oracle.Rules(True, True, "truncate")
    tally = duel(env, params, rules, follow_cycle, num_steps=200)
    assert tally["wins"] > 50


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols"), [(20, 17), (32, 31)])
def test_a_large_board(rows, cols):
    env = Snake(rows, cols, "planes", "modern")
    rules = oracle.Rules(False, True, "terminate", max_steps=100_000)
    params = replace(env.default_params, rewards=WEIGHTS)
    num_games = 64 if rows == 20 else 16
    assert duel(env, params, rules, greedy, 400, num_games)["longest"] > (35 if rows == 20 else 20)


def test_a_wrong_rule_does_not_go_unnoticed(modern):
    env, params, rules = modern
    wrong = replace(rules, tail_is_fatal=True)
    with pytest.raises(AssertionError, match=" differs in "):
        duel(env, params, wrong, greedy, num_steps=100, num_games=8)


# Rewards


@pytest.mark.slow
def test_soft_entrapment_and_crowding_are_paid_for_and_seen(num_games):
    """Under the rewards of the 256-game system."""
    env = Snake(7, 6, "flood", entrapment="seen", crowding=True)
    params = replace(env.default_params, rewards=ENTRAPMENT_REWARDS)
    tally = duel(env, params, oracle.CLASSIC, greedy, 150, num_games)
    assert min(tally["softly entrapped"], tally["crowded"]) > 2 * num_games
    assert tally["meals in entrapment"] > 0.1 * num_games


@pytest.mark.slow
def test_soft_entrapment_is_judged_by_its_threshold(num_games):
    """Under weights that tell all events apart."""
    env = Snake(6, 6, "planes", "modern", entrapment="judged", crowding=True)
    weights = replace(WEIGHTS, length=0.17, crowding=-0.31, entrapment=0.53, entrapped_food=-1.9)
    params = replace(env.default_params, rewards=weights, entrapment_threshold=0.6)
    rules = oracle.Rules(False, True, "terminate", max_steps=100_000)
    if num_games == 64:  # which wins pay is proved above on smaller boards, too
        assert duel(env, params, rules, follow_cycle, 400, num_games)["wins"] > 20
    tally = duel(env, params, rules, greedy, 100, num_games)
    assert min(tally["softly entrapped"], tally["meals in entrapment"]) > 0.3 * num_games


@pytest.mark.slow
def test_the_rewards_of_the_dqn_for_cpus(num_games):
    """Added up from what its authors say, move by move."""
    env = Snake(8, 7, "compass", actions="absolute", crowding=True)
    params = replace(env.default_params, rewards=cpu_rewards(8, 7), max_steps_in_episode=128)
    tally = duel(env, params, oracle.Rules(max_steps=128), greedy, 200, num_games)
    assert min(tally["meals"], tally["crowded"], tally["terminated"]) > 0.8 * num_games
    weights = oracle.Rewards(**vars(cpu_rewards(8, 7)))
    rng = random.Random(0)
    for _ in range(12):
        body = oracle.classic_body(8, 7)
        game = oracle.Game(8, 7, body, oracle.RIGHT, (0, 0), rewards=weights)
        for _ in range(60):
            before, turn = game.distance(), greedy(game, rng)
            eats = game.candidate(turn) == game.food
            free = [cell for cell in game.free_cells() if cell != game.food]
            report = game.step(turn, rng.choice(free) if eats else None)
            if report.cause:
                assert report.reward == -10
                break
            progress = 10 if report.ate else 0.1 if game.distance() < before else -0.1
            blocked = sum(map(game.is_blocked, oracle.neighbours(game.head)))
            expected = progress + 0.01 + 0.01 * len(game.body) - 0.05 * (blocked >= 3)
            assert report.reward == pytest.approx(expected)


# Chance


def assert_uniform(cells, expected: list) -> None:
    """Only the expected outcomes, and equally often: chi-square at one in a thousand."""
    got, times = np.unique(np.asarray(cells), return_counts=True, axis=0)
    assert got.tolist() == sorted(expected)
    assert stats.chisquare(times).pvalue > 1e-3


def test_first_food_is_uniform_over_the_free_cells():
    env, board = Snake(5, 6), Board(5, 6)
    _, chances = jax.vmap(env.chances)(jax.random.split(jax.random.key(0), 30_000))
    state = jax.jit(jax.vmap(env.start, in_axes=(0, None)))(chances, env.default_params)
    free = set(range(30)) - {2 * 6 + col for col in (1, 2, 3)}
    assert_uniform(state.food, [board.index(*divmod(cell, 6)) for cell in free])


@pytest.mark.parametrize(
    "picture",
    [
        "cba*..\n......\n......\n......",
        "*abc..\n..ed..\n..fg..\n...h..",
        "*abc\ngfed\nhijk\n..ml",
        "*abc\ngfed\nhijk\nonml",
    ],
)
def test_next_food_is_uniform_over_what_the_fed_snake_leaves_free(picture):
    game = oracle.parse(picture, oracle.DOWN)
    game.heading = next(h for h in range(4) if oracle.neighbours(game.head)[h] == game.food)
    env, board = Snake(game.rows, game.cols, actions="absolute"), Board(game.rows, game.cols)
    state = positions.from_body(board, game.body, game.food, game.heading)
    key = jax.random.key(len(game.body))
    chances, _ = jax.vmap(env.chances)(jax.random.split(key, 20_000))
    after, *_ = jax.jit(jax.vmap(env.transition, in_axes=(0, None, None, None)))(
        chances, state, jnp.int32(game.heading), env.default_params
    )
    free = [cell for cell in game.free_cells() if cell != game.food]
    assert set(np.asarray(after.length)) == {len(game.body) + 1}
    if free:
        assert_uniform(after.food, [board.index(*cell) for cell in free])
    else:
        assert set(np.asarray(after.food)) == {-1}


def test_random_starts_are_uniform_over_all_that_fit():
    env, board = Snake(4, 5, rules="modern"), Board(4, 5)
    _, chances = jax.vmap(env.chances)(jax.random.split(jax.random.key(1), 30_000))
    state = jax.jit(jax.vmap(env.start, in_axes=(0, None)))(chances, env.default_params)
    starts = oracle.straight_starts(4, 5)
    drawn_starts = np.stack([state.head, state.tail, state.heading], axis=1)
    assert_uniform(
        drawn_starts, [[board.index(*body[0]), board.index(*body[2]), h] for body, h in starts]
    )


# What can be built, and what cannot


def test_sizes_may_be_integers_of_numpy():
    ten: Any = np.int64(10)
    env = Snake(ten, ten, obstacles=ten // 3, foods=ten // 5)
    assert all(type(x) is int for x in (env.board.rows, env.board.cols, env.obstacles, env.foods))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 3}, "rows is 3"),
        ({"cols": 33}, "cols is 33"),
        ({"rows": 10.0}, "rows is 10.0"),
        ({"rows": "10"}, "rows is '10'; expected 4 to 32 cells"),
        ({"observation": "radar"}, "radar"),
        ({"rules": "baroque"}, "baroque"),
        ({"actions": "both"}, "both"),
        ({"entrapment": "felt"}, "felt"),
        ({"observation": "planes", "entrapment": "seen"}, "planes is an image"),
    ],
)
def test_an_impossible_game_is_refused_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        Snake(**arguments)
    assert "\n" not in str(caught.value)
