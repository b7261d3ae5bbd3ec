"""A file of a user's own environments, good ones and broken ones."""

from dataclasses import replace
from functools import partial

from bench import flags
from train.gymnax.presets import PRESETS
from train.gymnax.program import PROGRAM
from train.host.command_line import command
from train.host.environments.environments import Game

main = partial(command.main, PROGRAM)
FILE = '''
from collections import namedtuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import environment, spaces
from gymnax.environments.classic_control.cartpole import CartPole, EnvParams

from envs.base import Environment

class Changed(CartPole):
    """CartPole with another last step of `step_env`."""
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done, info
    def push(self, action):
        return action
    def step_env(self, key, state, action, params):
        result = super().step_env(key, state, self.push(action), params)
        return self.change(*result, params)

class RewardVector(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, jnp.atleast_1d(reward), done, info
class FloatDone(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done.astype(jnp.float32), info
class IntegerDone(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done.astype(jnp.int32), info
class OtherDtype(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs.astype(jnp.float16), state, reward, done, info
class OtherState(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state.replace(x=state.x[None]), reward, done, info
class DiesOfTime(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done | (state.time >= params.max_steps_in_episode), info
class WantsVector(Changed):
    def push(self, action):
        return action[0]
class Branches(Changed):
    def push(self, action):
        return 0 if action == 1 else 1
class OldStep(Changed):
    def step(self, key, state, action, params=None):
        return super().step(key, state, action, params)[:5]
class OtherShape(Changed):
    def observation_space(self, params):
        return spaces.Box(-jnp.inf, jnp.inf, (5,))
class NoSpace(environment.Environment):
    default_params = EnvParams()
class Theirs(Changed):
    def action_space(self, params=None):
        return gymnasium.spaces.Discrete(2)
class UpsideDown(Changed):
    def action_space(self, params=None):
        return spaces.Box(1.0, -1.0, (1,))
class HoldsArray(Environment):
    def __init__(self, goals=(3, 7)):
        super().__init__()
        self.goals = np.array(goals)

class Pairs(Changed):
    def push(self, action):
        return (action[0] > 0).astype(int)
    def action_space(self, params=None):
        return spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)])
class Named(Changed):
    def push(self, action):
        return (action["b"] > 0).astype(int)
    def action_space(self, params=None):
        choice = spaces.Tuple([spaces.Discrete(2), spaces.Box(0.0, jnp.inf, (1,))])
        return spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Box(-1.0, 1.0, (2,)), "c": choice})
class Integers(Pairs):
    def action_space(self, params=None):
        return spaces.Box(0, jnp.array([1, 2]), (2,), jnp.int32)
class Bytes(Pairs):
    """Remembers the action, of a dtype of its own, in the state."""
    def action_space(self, params=None):
        return spaces.Box(1, 3, (2, 1), jnp.uint8)
    def push(self, action):
        assert (action.dtype, action.shape) == (jnp.uint8, (2, 1))
        return (action[0, 0] > 1).astype(int)
class NoChoice(Pairs):
    def action_space(self, params=None):
        space = spaces.Space()
        space.nvec = np.array([2, 0])
        return space
class Quits(Changed):
    def push(self, action):
        raise SystemExit(3)
class HalfOpen(Pairs):
    def action_space(self, params=None):
        return spaces.Box(jnp.array([0.0, -1.0]), jnp.array([jnp.inf, 1.0]), (2,))
class Enormous(Pairs):
    def action_space(self, params=None):
        return spaces.Box(jnp.finfo(jnp.float32).min, jnp.finfo(jnp.float32).max, (2,))

class Parts(Changed):
    """Observes a dict."""
    def change(self, obs, state, reward, done, info, params):
        return {"x": obs, "k": jnp.int32(1)}, state, reward, done, info
    def reset_env(self, key, params):
        obs, state = super().reset_env(key, params)
        return {"x": obs, "k": jnp.int32(1)}, state
    def observation_space(self, params):
        return spaces.Dict({"x": super().observation_space(params), "k": spaces.Discrete(3)})
class Sees(Parts):
    """Observes an image, too."""
    def image(self, obs):
        return {"a": jnp.full((3, 4, 1), 51, jnp.uint8), "k": jnp.int32(2), "x": obs}
    def change(self, obs, state, reward, done, info, params):
        return self.image(obs), state, reward, done, info
    def reset_env(self, key, params):
        obs, state = CartPole.reset_env(self, key, params)
        return self.image(obs), state
    def observation_space(self, params):
        image = spaces.Box(0, 255, (3, 4, 1), jnp.uint8)
        return spaces.Dict({"a": image, **super().observation_space(params).spaces})
class Counts(Parts):
    """Observes bytes in two rows, too."""
    def change(self, obs, state, reward, done, info, params):
        obs = {"b": jnp.full((2, 1), 51, jnp.uint8), "k": jnp.int32(2), "x": obs}
        return obs, state, reward, done, info
    def reset_env(self, key, params):
        obs, state = CartPole.reset_env(self, key, params)
        return self.change(obs, state, 0.0, False, {}, params)[:2]
    def observation_space(self, params):
        rows = spaces.Box(jnp.zeros((2, 1)), jnp.array([[255], [1]]), (2, 1), jnp.uint8)
        return spaces.Dict({"b": rows, **super().observation_space(params).spaces})
class ScaledImage(Sees):
    def image(self, obs):
        return {**super().image(obs), "a": jnp.full((3, 4, 1), 0.2)}
class LacksPart(Parts):
    def observation_space(self, params):
        return spaces.Dict({"x": Changed.observation_space(self, params), "y": spaces.Discrete(3)})

@struct.dataclass
class WithText(EnvParams):
    name: str = "pole"
@struct.dataclass
class Endless(EnvParams):
    max_steps_in_episode: float = jnp.inf
@struct.dataclass
class Limitless:
    tau: float = 0.02
class Plain:
    max_steps_in_episode = 9

InTuple = namedtuple("InTuple", vars(EnvParams()))

def in_tuple(): return CartPole(), InTuple(**vars(EnvParams()))
def text(): return CartPole(), WithText()
def endless(): return CartPole(), Endless()
def limitless(): return CartPole(), Limitless()
def plain(): return CartPole(), Plain()
def fails(): return [][3]
pole = CartPole()
'''


def small_config(preset: str, name: str):
    """A preset in an environment, with the smallest rollout."""
    return flags.shrink(replace(PRESETS[preset].config, env=Game(name)))
