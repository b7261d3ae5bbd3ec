"""Actions that stick execute what they draw, as often as they say."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.wrappers import StickyActions
from envs.wrappers.sticky_actions import StickyParams
from tests.envs.recorder import Recorder
from tests.envs.wrappers.games import (
    T,
    assert_close,
    keys_of,
    over_exact_games,
    over_games,
    play,
    short,
)


@pytest.mark.fast_cases(1)
@over_games
def test_sticky_actions_execute_what_they_draw(game):
    inner = short(game)
    env = StickyActions(game, 0.5)
    _, steps = play(env, env.default_params.replace(env=inner))
    _, state = game.reset(keys_of(0)[T], inner)
    last = None
    for step, key in zip(steps, keys_of(0)[:T], strict=True):
        sticky_key, env_key = jax.random.split(key)
        sticks = last is not None and bool(jax.random.bernoulli(sticky_key, 0.5))
        executed = last if sticks else step.action
        obs, state, *rest = game.step(env_key, state, executed, inner)
        assert_close(step[1:], (obs, *rest))
        last = None if rest[1] or rest[2] else executed


def test_actions_stick_with_the_probability_of_the_params():
    """Read from what the innermost environment says it was given."""
    env, steps, count = StickyActions(Recorder()), 300, 64
    probability = jnp.array([0.0, 0.25, 0.7, 1.0])

    @jax.jit
    def play_actions(probability, key):
        params = env.default_params.replace(probability=probability, max_steps_in_episode=steps + 1)
        reset_key, chosen_key, key = jax.random.split(key, 3)
        chosen = jax.random.randint(chosen_key, (steps,), 0, 4)
        _, state = env.reset(reset_key, params)

        def step(carry, action):
            key, state = carry
            key, step_key = jax.random.split(key)
            obs, state, *_ = env.step(step_key, state, action, params)
            return (key, state), obs[0].astype(jnp.int32)

        return chosen, jax.lax.scan(step, (key, state), chosen)[1]

    keys = jax.random.split(jax.random.key(0), count)
    of_keys = jax.vmap(play_actions, in_axes=(None, 0))
    action_pairs = jax.vmap(of_keys, in_axes=(0, None))(probability, keys)
    chosen, executed_actions = (np.asarray(x) for x in action_pairs)  # [4, count, steps]
    np.testing.assert_array_equal(executed_actions[..., 0], chosen[..., 0])
    np.testing.assert_array_equal(executed_actions[0], chosen[0])
    assert (executed_actions[3] == chosen[3, :, :1]).all()
    before, after, wish = executed_actions[..., :-1], executed_actions[..., 1:], chosen[..., 1:]
    assert ((after == wish) | (after == before)).all()
    differs = wish != before
    for i, p in ((1, 0.25), (2, 0.7)):
        stuck = (after == before)[i][differs[i]]
        assert abs(stuck.mean() - p) < 5 * np.sqrt(p * (1 - p) / stuck.size)


@over_exact_games
def test_actions_that_never_stick_change_nothing_but_keys(game):
    env, params = StickyActions(game, 0.0), short(game)
    actual = play(env, env.default_params.replace(env=params))
    expected = play(game, params, lambda key: jax.random.split(key)[1])
    assert jax.tree.all(jax.tree.map(np.array_equal, actual, expected))


def test_params_of_the_wrapped_environment_are_refused_in_one_line():
    env, params = gymnax.make("CartPole-v1")
    sticky = StickyActions(env)
    with pytest.raises(TypeError, match="takes StickyParams, and was given EnvParams: use"):
        sticky.reset(jax.random.key(0), params)
    sticky.reset(jax.random.key(0), StickyParams(params))
