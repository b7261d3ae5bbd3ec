"""Recorded episodes against plain stepping, and what is told of them."""

import jax
import numpy as np
import pytest

from tests.train import untrained
from train.host.showing import episodes
from train.snake.training import make_player

COUNT = 3


@pytest.fixture(scope="module")
def parts():
    run = untrained.snake()
    return *make_player(run.config), run.agents[0]


@pytest.fixture(scope="module")
def recordings(parts):
    env, params, agent, learned = parts
    return episodes.record(env, params, agent, learned, jax.random.key(3), COUNT, 2_000)


def play_step_by_step(env, params, agent, learned, key, limit):
    """The same games step by step: lists of (state, obs, action, reward, done) for each."""
    reset_key, key = jax.random.split(key)
    starts = [env.reset(k, params) for k in jax.random.split(reset_key, COUNT)]
    current, games, running = starts, [[] for _ in range(COUNT)], set(range(COUNT))
    for _ in range(limit):
        key, act_key, env_key = jax.random.split(key, 3)
        act_keys, env_keys = jax.random.split(act_key, COUNT), jax.random.split(env_key, COUNT)
        after = []
        for k, (obs, state) in enumerate(current):
            action, _, _ = agent.act(learned, (), obs, act_keys[k])
            out = env.step(env_keys[k], state, action, params)
            done = bool(out[3] | out[4])
            if k in running:
                games[k].append((state, obs, int(action), float(out[2]), done))
                running -= {k} if done else set()
            after.append(out[:2])
        current = after
        if not running:
            break
    return games


@pytest.mark.slow
def test_each_recording_is_the_game_played_step_by_step(parts, recordings):
    env, params, agent, learned = parts
    expected = play_step_by_step(env, params, agent, learned, jax.random.key(3), 120)
    for game, rows in zip(recordings, expected, strict=True):
        count = min(len(rows), game.steps)
        assert count == game.steps or count == 120
        for t in range(count):
            state, obs, action, reward, done = rows[t]
            np.testing.assert_array_equal(game.obs[t], obs)
            assert int(game.action[t]) == action
            assert game.reward[t] == pytest.approx(reward)
            assert int(game.state.head[t]) == int(state.head)
            assert done == (t == game.steps - 1 and (game.terminated or game.truncated))


def test_thoughts_are_those_before_each_action(parts, recordings):
    _, _, agent, learned = parts
    for game in recordings:
        assert len(game.state.head) == game.steps + 1
        for t in (0, game.steps - 1):
            thought = agent.explain(learned, (), game.obs[t])
            np.testing.assert_allclose(
                game.explained["probabilities"][t], thought["probabilities"], rtol=1e-5
            )
            assert game.action[t] == np.argmax(thought["probabilities"])


@pytest.mark.slow
def test_the_last_state_is_not_that_of_the_next_game(parts, recordings):
    env, params, *_ = parts
    for game in recordings:
        assert game.terminated or game.truncated
        last, action = jax.tree.map(lambda x: x[-2], game.state), game.action[-1]
        after = env.step_env(jax.random.key(1), last, action, params)[1]
        assert int(game.state.head[-1]) == int(after.head)
        assert int(game.state.time[-1]) == game.steps == int(game.outcome["length"])
        assert game.outcome["return"] == pytest.approx(game.reward.sum(), rel=1e-4, abs=1e-4)


def test_a_limit_cuts_games_and_changes_nothing_before(parts, recordings):
    env, params, agent, learned = parts
    cut = episodes.record(env, params, agent, learned, jax.random.key(3), COUNT, 2)
    for short, whole in zip(cut, recordings, strict=True):
        assert short.steps == min(2, whole.steps)
        np.testing.assert_array_equal(short.action, whole.action[:2])
        np.testing.assert_array_equal(short.state.head, whole.state.head[:3])
        assert whole.steps <= 2 or not (short.terminated or short.truncated)


def recording(**changes):
    whole = episodes.Recording(
        state=np.zeros(4),
        obs=np.arange(6.0).reshape(3, 2),
        action=np.array([0, 1, 1]),
        reward=np.array([1.0, 0.0, 2.0]),
        explained={},
        outcome={},
        terminated=True,
        truncated=False,
    )
    return whole._replace(**changes)


def test_lines_say_what_each_step_brought_at_the_moment_after_it():
    lines = episodes.lines(recording(explained={"value": np.array([5.0, 6.0, 7.0])}))
    np.testing.assert_array_equal(lines["value"], [5, 6, 7, np.nan])
    np.testing.assert_array_equal(lines["reward"], [np.nan, 1, 0, 2])
    np.testing.assert_array_equal(lines["return so far"], [0, 1, 1, 3])


def test_components_that_never_matter_are_left_out():
    components = np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
    value = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    lines = episodes.lines(
        recording(reward=components, explained={"value": value}), ["food", "idle_x"]
    )
    assert list(lines) == ["value", "reward", "return so far", "reward: food"]
    np.testing.assert_array_equal(lines["value"], [3, 7, 11, np.nan])
    np.testing.assert_array_equal(lines["reward: food"], [np.nan, 1, 0, 2])


def test_bars_name_the_actions_and_mark_the_one_taken():
    q = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    bars = episodes.bars(recording(explained={"q": q}), ["left", "right"])
    assert list(bars) == ["Q"]
    np.testing.assert_array_equal(bars["Q"].values[:3], q)
    assert np.isnan(bars["Q"].values[3]).all()
    np.testing.assert_array_equal(bars["Q"].chosen, [0, 1, 1, -1])
    assert episodes.bars(recording(explained={"q": q}), ["only one"]) == {}
    assert episodes.observation_bars(recording(), ["first"]).values.shape == (4, 1)
