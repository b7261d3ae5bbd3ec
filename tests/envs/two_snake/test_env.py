"""Two snakes against a slow game in lists, played side by side; chances; bad arguments."""

from dataclasses import replace
from importlib import import_module
from inspect import unwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.two_snake import rewards, rules, scene, views
from envs.two_snake.env import TwoSnake
from tests.envs.two_snake.duel import Match

SCRIPTS = ("static", "random", "greedy", "defensive")


def test_two_agents_play_the_slow_game():
    """Bodies, deaths, meals, endings, rewards and what both see, over some hundred games."""
    env = TwoSnake(5, 9, opponents=("rival",), rival=True)
    params = replace(env.default_params, target=3, max_steps_in_episode=17)
    params = replace(params, rewards=replace(params.rewards, opponent_food=-3.0, lose=-7.0))
    tally = Match(env, params, num_games=32, seed=0).play(70)
    for event in (
        "won",
        "lost",
        "both die at once",
        "time up",
        "wins after the other's death",
        "nobody is left",
        "side 0",
        "side 1",
        *(f"{player} dies of {death}" for player in (0, 1) for death in ("wall", "self", "other")),
    ):
        assert tally[event] >= 3, (event, tally)
    assert tally["games"] > 100


@pytest.mark.slow
def test_rivals_and_guests_are_moved_by_their_action_and_scripts_are_not():
    env = TwoSnake(5, 9, opponents=("greedy", "rival", "guest"), rival=True)
    params = replace(env.default_params, target=3, max_steps_in_episode=17)
    match = Match(env, params, num_games=24, seed=2)
    tally = match.play(30)
    assert min(tally[f"script {name}"] for name in env.opponents) >= 15, tally
    observations = jax.vmap(lambda state: env.get_obs(state, params))(match.state)
    np.testing.assert_array_equal(observations["guest"], np.asarray(match.state.opponent) == 2)


@pytest.mark.slow
def test_scripts_play_as_their_slow_twins():
    env = TwoSnake(6, 10, "planes", opponents=SCRIPTS)
    params = replace(env.default_params, target=5, max_steps_in_episode=60)
    tally = Match(env, params, num_games=24, seed=1).play(80)
    assert min(tally[f"script {name}"] for name in SCRIPTS) >= 6, tally
    assert min(tally["won"], tally["lost"], tally["nobody is left"]) >= 2, tally


@pytest.mark.slow
@pytest.mark.parametrize("snakes", [3, 4])
def test_several_agents_play_the_slow_game(snakes):
    observation = {3: "near", 4: "features"}[snakes]
    env = TwoSnake(7, 9, observation, opponents=("rival",), rival=True, snakes=snakes)
    params = replace(env.default_params, target=3, max_steps_in_episode=25)
    params = replace(params, rewards=replace(params.rewards, opponent_food=-3.0, lose=-7.0))
    tally = Match(env, params, num_games=24, seed=snakes).play(60)
    for event in (
        *("won", "lost", "several die at once", "time up", "wins after the other's death"),
        *(f"side {side}" for side in range(snakes)),
        *(f"{player} dies of {death}" for player in (0, 2) for death in ("wall", "other")),
    ):
        assert tally[event] >= 3, (event, tally)


@pytest.mark.parametrize(
    "env",
    [
        TwoSnake(5, 9, "planes", opponents=("static", "rival"), rival=True, ends_with_learner=True),
        pytest.param(
            TwoSnake(5, 9, opponents=("random", "greedy"), last_standing_wins=True),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda env: env.observation,
)
def test_of_two_snakes_the_program_is_that_of_a_game_that_knows_no_more(env, monkeypatch):
    """The functions that join several others are replaced by those of a pair."""
    env_module = import_module("envs.two_snake.env")  # the package has an `env`, too
    ours = program_of(env)
    other = lambda values, join: values[rules.OTHER]
    reverse = lambda snakes: tuple(word[::-1] for word in snakes.occupied)
    either = lambda board, snakes: tuple(
        cells & ~(word[0] | word[1])
        for cells, word in zip(board.cells, snakes.occupied, strict=True)
    )
    for module in (rules, rewards, env_module):
        monkeypatch.setattr(module, "of_others", other)
    monkeypatch.setattr(rules, "cells_of_others", reverse)
    monkeypatch.setattr(rules, "empty_cells", either)
    monkeypatch.setattr(env_module, "is_last", lambda lives: lives & ~lives[::-1])
    for module in (views, scene):
        monkeypatch.setattr(module, "length_of_others", lambda view: view.other.length)
    assert program_of(env) == ours


def program_of(env: TwoSnake) -> str:
    """The program of a step, reset included."""
    key, params = jax.random.key(0), env.default_params
    _, state = jax.eval_shape(env.reset, key, params)
    action = jnp.zeros((env.snakes,) if env.rival else (), jnp.int32)
    step = lambda *arguments: unwrap(TwoSnake._step)(env, *arguments)  # traced anew
    return str(jax.make_jaxpr(step)(key, state, action, params))


@pytest.mark.slow
def test_scripts_play_several_snakes_as_their_slow_twins():
    env = TwoSnake(8, 10, "planes", opponents=SCRIPTS, snakes=3)
    params = replace(env.default_params, target=5, max_steps_in_episode=60)
    tally = Match(env, params, num_games=24, seed=1).play(80)
    assert min(tally[f"script {name}"] for name in SCRIPTS) >= 6, tally
    last = TwoSnake(8, 10, opponents=("greedy",), snakes=4, last_standing_wins=True)
    tally = Match(last, last.default_params, num_games=16, seed=2).play(60)
    assert tally["won"] + tally["lost"] >= 3, tally


@pytest.mark.slow
def test_the_largest_board():
    env = TwoSnake(32, 31, opponents=("greedy", "defensive"))
    params = replace(env.default_params, target=3)
    tally = Match(env, params, num_games=4, seed=3).play(80, look_every=20)
    assert min(tally["meals"], tally["won"] + tally["lost"]) >= 3, tally


def test_games_begin_by_their_probabilities():
    """Sides and opponents by their weights, one that weighs nothing never; rivals by number."""
    env = TwoSnake(opponents=(*SCRIPTS, "rival"), rival=True)
    params = replace(env.default_params, swap_sides=0.2, opponent_weights=(0.0, 1.0, 3.0, 0.0, 4.0))

    @jax.jit
    def begin(keys, params):
        return jax.vmap(lambda key: env.start(env.chances(key)[1], params))(keys)

    count = 8000
    game = begin(jax.random.split(jax.random.key(0), count), params)
    error = 5 * np.sqrt(0.25 / count)
    assert np.mean(game.side) == pytest.approx(0.2, abs=error)
    shares = np.bincount(game.opponent, minlength=5) / count
    np.testing.assert_allclose(shares, [0, 1 / 8, 3 / 8, 0, 1 / 2], atol=error)
    assert shares[0] == shares[3] == 0
    low, high = np.asarray(game.rival) % 2, np.asarray(game.rival) >> 31
    np.testing.assert_allclose([low.mean(), high.mean()], 0.5, atol=error)
    assert abs(np.corrcoef(game.side, game.opponent)[0, 1]) < 5 / np.sqrt(count)


def test_the_last_one_standing_wins_where_the_rules_say_so():
    env = TwoSnake(opponents=("rival",), rival=True, last_standing_wins=True)
    up = [(0, 4), (1, 4), (2, 4)], 0  # about to run into the wall
    also_up = [(0, 7), (1, 7), (2, 7)], 0
    left = [(5, 6), (5, 7), (5, 8)], 3

    @jax.jit
    def go_straight(key, state):
        chance = env.chances(key)[0]
        return env.transition(chance, state, jnp.zeros(2, jnp.int32), env.default_params)

    for pair, reward, result in (
        ((up, left), -50.0, "lost"),
        ((left, up), 100.0 - 0.1, "won"),  # and one cell farther from the food
        ((up, also_up), -50.0 - 10.0, "draw"),
    ):
        (mine, my_heading), (others, other_heading) = pair
        headings = my_heading, other_heading
        state = rules.from_bodies(env.board, (mine, others), headings, (9, 9))
        _, step_reward, is_over, info = go_straight(jax.random.key(0), state)
        assert bool(is_over)
        assert float(step_reward) == pytest.approx(reward)
        assert [name for name in ("won", "lost", "draw") if info["outcome"][name]] == [result]


def test_the_actions_and_views_of_two_have_spaces():
    env = TwoSnake(opponents=("greedy", "rival"), rival=True)
    actions = env.action_space().sample(jax.random.key(0))
    assert actions.shape == (2,)
    assert bool(env.action_space().contains(actions))
    assert not bool(env.action_space().contains(jnp.array([0, 3])))
    views: Any = env.observation_space()
    observation = {"own": jnp.zeros(33), "other": jnp.ones(33), "rival": jnp.uint32(2**32 - 1)}
    assert bool(views.contains(observation))
    assert not bool(views.contains({**observation, "other": 2 * observation["other"]}))
    guest: Any = TwoSnake(opponents=("guest",), rival=True).observation_space()
    assert bool(guest.contains({**observation, "guest": jnp.bool_(True)}))
    for one, shape in ((TwoSnake(), (33,)), (TwoSnake(7, 12, "planes"), (7, 12, 7))):
        space: Any = one.observation_space()
        assert space.shape == shape


def test_sizes_may_be_integers_of_numpy():
    nine: Any = np.int64(9)
    env = TwoSnake(nine, nine, snakes=nine // 3)
    assert all(type(x) is int for x in (env.board.rows, env.board.cols, env.snakes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 3}, "rows is 3; expected 4 to 32 cells"),
        ({"cols": 8}, "cols is 8; expected 9 to 32 cells"),
        ({"cols": 33}, "cols is 33; expected 9 to 32 cells"),
        ({"observation": "flood"}, "observation 'flood' is unknown; expected one of features"),
        ({"opponents": ("greedy", "rival")}, "opponent 'rival' is unknown"),
        ({"opponents": ("guest",)}, "opponent 'guest' is unknown"),
        ({"opponents": "greedy"}, "opponents is 'greedy'; expected a tuple"),
        ({"opponents": ()}, "expected a tuple of one name or more"),
        ({"snakes": 5}, "snakes is 5; expected 2 to 4"),
        ({"snakes": 1}, "snakes is 1; expected 2 to 4"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TwoSnake(**arguments)


def test_weights_of_other_opponents_are_refused():
    env = TwoSnake(opponents=("greedy", "random"))
    with pytest.raises(ValueError, match=r"shape \(1,\); expected one number for each of greedy"):
        env.reset(jax.random.key(0), replace(env.default_params, opponent_weights=(1.0,)))
