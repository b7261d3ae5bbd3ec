"""A policy plays the environment as its author wrote it, whatever wrappers it learned in."""

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from gymnax.environments.classic_control.cartpole import CartPole

from envs.wrappers import FlattenObservation, LastAction, PlainActions
from jaxrl.types import Agent
from train.gymnax.players import player_inside

ACTIONS = spaces.Dict(
    {"turn": spaces.Box(-2, 3, (2,), jnp.int32), "push": spaces.Box(-1.0, 1.0, (1, 2), jnp.float32)}
)


class Parts(CartPole):
    """A pole that shows and takes dicts."""

    def observation_space(self, params=None):
        return spaces.Dict({"x": spaces.Box(-9.0, 9.0, (2,), jnp.float32), "k": spaces.Discrete(3)})

    def action_space(self, params=None):
        return ACTIONS


def act(state, memory, obs, key):
    """Turns by what it sees, as plain actions have it: from 0 on."""
    return {"turn": jnp.array([0, 5], jnp.int32), "push": obs[-2:] * state}, memory, ()


AGENT = Agent(lambda key, obs: (), lambda: (), act, lambda *x: x)
OBS = {"x": jnp.array([0.25, -0.5]), "k": jnp.int32(1)}


def test_it_sees_and_does_what_the_spaces_say():
    env = Parts()
    wrapped = FlattenObservation(PlainActions(env))
    player = player_inside(wrapped, env.default_params, AGENT)
    assert player.env is env
    action, memory, _ = player.agent.act(2.0, (), OBS, jax.random.key(0))
    np.testing.assert_array_equal(action["turn"], [-2, 3])
    np.testing.assert_array_equal(action["push"], [[0.5, -1.0]])
    assert action["turn"].dtype == jnp.int32
    assert bool(ACTIONS.spaces["push"].contains(action["push"]))
    assert memory == ()


def test_wrappers_that_remember_stay():
    wrapped = LastAction(CartPole())
    player = player_inside(wrapped, wrapped.default_params, AGENT)
    assert player.env is wrapped
    assert player.agent is AGENT
