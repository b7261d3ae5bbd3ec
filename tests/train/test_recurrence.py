"""Games that go round in circles end sooner, and as they would have."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.env import Params, Snake
from jaxrl import evaluate
from jaxrl.evaluate import Watch
from jaxrl.types import Agent
from train.host.running.saved_runs import with_run_fields
from train.snake import config as snake
from train.snake.presets import PRESETS
from train.two_snake import agents as two_snake_agents
from train.two_snake import config as two_snake
from train.two_snake import tournament

GAMES, LIMIT = 24, 1_000


def fixed_agent(act) -> Agent:
    return Agent(lambda key, obs: (), lambda: (), act, lambda state, rollout, key: (state, {}))


def constant_agent(action: int) -> Agent:
    return fixed_agent(lambda state, memory, obs, key: (jnp.int32(action), memory, ()))


def play_games(env, params, agent, state, key, deterministic: bool, until: int):
    window = Watch(0, 0, until, True)

    def play(state, key):
        sizes = GAMES, 1, 0
        return evaluate.watch(env, params, agent, state, key, *sizes, window, deterministic)[0]

    return jax.jit(play)(state, jax.random.clone(key))


def assert_same_games(one, other):
    assert np.all(one.complete)
    for name in ("length", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in one.outcome:
        np.testing.assert_array_equal(one.outcome[name], other.outcome[name])
    # a round's reward times their number, and one by one, round differently
    np.testing.assert_allclose(one.return_, other.return_, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["ppo", "dqn", "rainbow", "board", "fill"])
def test_untrained_agents_play_the_same_games(preset):
    config = PRESETS[preset].config
    config = replace(config, env=replace(config.env, max_steps_in_episode=LIMIT))
    env, params = snake.make_env(config.env, training=False)
    agent = snake.make_agent(config, env.num_actions, greedy=True)
    key, init_key, reset_key = jax.random.split(jax.random.key(3), 3)
    obs, _ = env.reset(reset_key, params)
    state = agent.init(init_key, obs)
    games = [play_games(env, params, agent, state, key, x, LIMIT) for x in (True, False)]
    assert_same_games(*games)
    if preset == "ppo":
        assert np.sum(games[0].truncated) > 0  # or nothing was left out


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["classic", "modern"])
def test_a_circle_costs_no_time(rules):
    limit = 100_000
    env, params = Snake(8, 8, "tail", rules), Params(max_steps_in_episode=limit)
    agent, key = constant_agent(1), jax.random.key(0)  # left, left, left
    games = play_games(env, params, agent, (), key, True, 600)
    assert np.all(games.complete)
    if rules == "classic":
        circling = ~games.terminated  # the others met food on their way, grew and died
        assert circling.mean() > 0.5
        assert np.all(games.length[circling] == limit)
        assert np.all(games.truncated[circling])
        return
    assert_same_games(games, play_games(env, params, agent, (), key, False, limit))
    assert games.outcome["starved"].mean() > 0.5


def test_a_hunger_that_is_seen_is_waited_for():
    env = Snake(8, 8, "near", "modern")
    _, state = env.reset(jax.random.key(0))
    assert env.position(state, env.default_params) is None
    assert Snake(8, 8, "near").position(state, env.default_params) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "opponent",
    [
        "greedy",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("static", "random", "defensive", "rival")
        ),
    ],
)
def test_two_snakes_play_the_same_games(opponent):
    config = with_run_fields(two_snake.PRESETS["direct"].config, evaluation_games=GAMES)
    small = replace(config.env, rows=6, cols=9, max_steps_in_episode=300)
    config = replace(config, env=small, network=replace(config.network, hidden=(8,)))
    env, agent = tournament.make_env(config), tournament.make_agent(config)
    params = tournament.params_of(config, opponent, "left")
    network, key = two_snake_agents.make_network(config), jax.random.key(1)
    obs, _ = env.reset(jax.random.key(4), params)
    learned = network.init(jax.random.key(5), obs["own"])
    sides = tournament.Sides(learned, learned)
    games = [play_games(env, params, agent, sides, key, x, 300) for x in (True, False)]
    assert_same_games(*games)


@pytest.mark.slow
def test_what_follows_a_meal_by_chance_is_not_left_out():
    """A drawn food may come back to its place: only the whole position counts."""
    env, params = Snake(6, 6, "tail"), Params(max_steps_in_episode=400)

    def act(state, memory, obs, key):  # straight on, and away from what kills
        return jnp.argmin(obs[:3]).astype(jnp.int32), memory, ()

    games = [
        play_games(env, params, fixed_agent(act), (), jax.random.key(7), x, 400)
        for x in (True, False)
    ]
    assert_same_games(*games)
