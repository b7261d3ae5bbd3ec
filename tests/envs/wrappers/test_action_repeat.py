"""Repeated actions against a loop that adds up."""

from typing import ClassVar

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.wrappers import ActionRepeat, PlainActions, StickyActions
from tests.envs.recorder import Limits, Recorder
from tests.envs.wrappers.games import (
    BREAKOUT,
    CARTPOLE,
    SNAKE,
    T,
    assert_close,
    cases,
    keys_of,
    play,
    short,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "game", cases({"Breakout": BREAKOUT}, {"CartPole": CARTPOLE, "Snake": SNAKE})
)
def test_action_repeat_sums_rewards_until_the_end(game):
    params, env = short(game, steps=10), ActionRepeat(game, 4)  # 10 is 4 + 4 + 2
    _, steps = play(env, params)
    _, state = game.reset(keys_of(0)[T], params)
    for step, key in zip(steps, keys_of(0)[:T], strict=True):
        total = 0.0
        for _ in range(4):
            key, one = jax.random.split(key)
            obs, state, reward, *done, info = game.step(one, state, step.action, params)
            total += float(reward)
            if any(done):
                break
        assert_close(step[1:], (obs, np.float32(total), *done, info))
    assert any(step.truncated for step in steps)


def test_components_add_up_and_outcomes_pass_through():
    env = ActionRepeat(Recorder(), 3)
    params = Limits(lifetime=8)
    _, state = env.reset(jax.random.key(0), params)
    results = []
    for i in range(4):
        obs, state, reward, terminated, truncated, info = env.step(
            jax.random.key(i), state, 1, params
        )
        assert float(reward) == float(info["components"].sum())
        assert not truncated
        results.append((float(reward), bool(terminated), int(info["outcome"]["clock"])))
        final = info["final_observation"]
        assert (float(final[1]), float(obs[1])) == ((8, 0) if terminated else (float(obs[1]),) * 2)
    assert results == [(6, False, 3), (15, False, 6), (15, True, 8), (6, False, 3)]
    assert int(state.time) == 3


class PaysFlags(Recorder):
    """Rewards that are bools, and components that are small integers."""

    def transition(self, chance, state, action, params):
        state, _, terminated, info = super().transition(chance, state, action, params)
        parts = jnp.stack([jnp.int8(100), state.time.astype(jnp.int8)])
        return state, state.time != 2, terminated, info | {"components": parts}


@pytest.mark.parametrize("repeats", [1, 3])
def test_rewards_of_any_kind_of_number_add_up(repeats):
    env, params = ActionRepeat(PaysFlags(), repeats), Limits()
    _, state = env.reset(jax.random.key(0), params)
    _, _, reward, *_, info = env.step(jax.random.key(1), state, 1, params)
    times = np.arange(1, repeats + 1)
    assert (float(reward), reward.dtype) == (np.sum(times != 2), np.float32)
    np.testing.assert_array_equal(info["components"], [100 * repeats, times.sum()])


class Counts(Recorder):
    """Says of its times that they add up, or are to be averaged, over the steps of an episode."""

    outcome_kinds: ClassVar = {"total": "sum", "average": "mean"}

    def transition(self, chance, state, action, params):
        *before, info = super().transition(chance, state, action, params)
        names = ("total", "average", "clock")
        return *before, info | {"outcome": dict.fromkeys(names, info["outcome"]["clock"])}


def test_repeated_actions_add_up_outcomes_that_do():
    env = PlainActions(StickyActions(ActionRepeat(Counts(), 3), 0.0))
    assert env.outcome_kinds == Counts.outcome_kinds
    params = env.default_params.replace(lifetime=5)
    _, state = env.reset(jax.random.key(0), params)
    outcomes, step_env = [], jax.jit(env.step_env)
    for i in range(2):
        *_, info = env.step(jax.random.key(i), state, 1, params)
        *_, hook_info = step_env(jax.random.key(i), state, 1, params)
        state = env.step(jax.random.key(i), state, 1, params)[1]
        chex.assert_trees_all_equal(info["outcome"], hook_info["outcome"])
        outcomes.append(tuple(float(info["outcome"][x]) for x in ("total", "average", "clock")))
    assert outcomes == [(1 + 2 + 3, 2, 3), (4 + 5, 4.5, 5)]
