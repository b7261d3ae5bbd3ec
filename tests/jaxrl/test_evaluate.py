"""Evaluation: complete episodes against a plain loop."""

from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import evaluate
from jaxrl.types import Agent
from tests.jaxrl import toy_environments as toy


def random_agent(num_actions):
    return Agent(
        init=lambda key, obs: (),
        memory=lambda: (),
        act=lambda state, memory, obs, key: (jax.random.randint(key, (), 0, num_actions), (), ()),
        update=lambda state, rollout, key: (state, {}),
    )


def test_episodes_equal_those_of_a_plain_loop():
    env, params = gymnax.make("CartPole-v1")
    agent = random_agent(2)
    episodes = jax.jit(
        lambda k: evaluate.evaluate(
            env, params, agent, (), k, num_envs=3, games_per_env=4, max_steps=999
        )
    )(jax.random.key(5))

    reset_key, key = jax.random.split(jax.random.key(5))
    _, states = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(reset_key, 3), params)
    games = [[], [], []]
    lengths = [0, 0, 0]
    while min(len(g) for g in games) < 4:
        key, act_key, env_key = jax.random.split(key, 3)
        actions = [jax.random.randint(k, (), 0, 2) for k in jax.random.split(act_key, 3)]
        out = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            jax.random.split(env_key, 3), states, jnp.stack(actions), params
        )
        states = out[1]
        for n in range(3):
            lengths[n] += 1
            if out[3][n] or out[4][n]:
                games[n].append(lengths[n])
                lengths[n] = 0
    np.testing.assert_array_equal(episodes.length, [g[:4] for g in games])
    np.testing.assert_allclose(episodes.return_, [g[:4] for g in games])
    assert np.all(np.asarray(episodes.complete))
    assert np.all(np.asarray(episodes.terminated))


@pytest.mark.slow
def test_a_watched_game_is_one_of_those_evaluated():
    """Its actions, replayed by hand, end it when the evaluation says; pieces join without a gap."""
    env, params = gymnax.make("CartPole-v1")
    sizes: dict[str, Any] = {"num_envs": 3, "games_per_env": 1}
    agent, key = random_agent(2), jax.random.key(5)
    episodes = evaluate.evaluate(
        env, params, agent, (), jax.random.clone(key), max_steps=500, **sizes
    )

    @jax.jit
    def watch(key, window):
        return evaluate.watch(env, params, agent, (), key, num_steps=4, window=window, **sizes)

    for which in range(3):
        length = int(episodes.length[which, 0])
        pieces = [
            jax.device_get(watch(jax.random.clone(key), evaluate.Watch(which, first, 500))[1])
            for first in range(0, length, 4)
        ]
        game = jax.tree.map(lambda *x, end=length: np.concatenate(x)[:end], *pieces)
        state = jax.tree.map(lambda x: x[0], game.state)
        for t in range(length):
            expected_state = jax.tree.map(lambda x, t=t: x[t], game.state)
            jax.tree.map(
                lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), state, expected_state
            )
            _, state, _, over, _ = env.step_env(key, state, game.action[t], params)
            assert bool(over) == (t == length - 1)


def test_unfinished_games_are_marked():
    episodes = evaluate.evaluate(
        toy.TruncatedStream(length=4), (), random_agent(2), (), jax.random.key(0), 2, 3, max_steps=9
    )
    np.testing.assert_array_equal(episodes.complete, [[True, True, False]] * 2)
    np.testing.assert_array_equal(episodes.length, [[4, 4, 0]] * 2)
    np.testing.assert_array_equal(episodes.truncated, [[True, True, False]] * 2)
    assert not np.any(np.asarray(episodes.terminated))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 1, 5), "num_envs is 0, expected a number at least 1"),
        ((2, 0, 5), "games_per_env is 0, expected a number at least 1"),
        ((2, 1, 0), "max_steps is 0, expected a number at least 1"),
        ((2.5, 1, 5), "num_envs is 2.5, expected an integer"),
    ],
)
def test_games_that_cannot_be_played_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        evaluate.evaluate(toy.ConstantReward(), (), random_agent(2), (), jax.random.key(0), *sizes)


@pytest.mark.parametrize(
    ("env", "agent", "message"),
    [
        (toy.ConstantReward, random_agent(2), "environment is the class ConstantReward, expected"),
        (toy.ConstantReward(), "PPO", "the agent is a str, expected an object with init, memory"),
    ],
)
def test_what_is_no_environment_or_agent_is_refused(env, agent, message):
    with pytest.raises(ValueError, match=message):
        evaluate.evaluate(env, (), agent, (), jax.random.key(0), 1, 1, 1)
