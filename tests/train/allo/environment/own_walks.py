"""A file with environments of a user's own, and runs in them."""

from functools import partial

from train.allo.program import PROGRAM
from train.host.command_line import command

main = partial(command.main, PROGRAM)
MODULE = "own_walks_of_allo"
FILE = '''
import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.base import Environment


@struct.dataclass
class State:
    angle: jax.Array
    time: jax.Array


@struct.dataclass
class Params:
    max_steps_in_episode: int = 100


class Ring(Environment):
    """A point on a circle, moved by chance; action 1 halves the move. Observes both coordinates."""

    def __init__(self, size: float = 0.4, shows: str = "point"):
        super().__init__()
        self.size, self.shows = size, shows

    @property
    def default_params(self):
        return Params()

    def start(self, chance, params):
        angle = jax.random.uniform(chance, (), maxval=2 * jnp.pi)
        return State(angle, jnp.zeros((), jnp.int32))

    def transition(self, chance, state, action, params):
        move = self.size * jax.random.normal(chance) * jnp.where(action == 1, 0.5, 1.0)
        return State(state.angle + move, state.time + 1), jnp.zeros(()), jnp.zeros((), bool), {}

    def describe(self, state, features, params):
        if self.shows == "sector":
            return (state.angle / (2 * jnp.pi) * 12).astype(jnp.int32) % 12
        point = jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle)])
        if self.shows == "image":
            middles = jnp.linspace(-1, 1, 6)
            squares = (middles[:, None] - point[0]) ** 2 + (middles[None, :] - point[1]) ** 2
            return jnp.exp(-4 * squares)[:, :, None]
        return point

    @property
    def name(self):
        return "Ring"

    @property
    def num_actions(self):
        return 2

    def action_space(self, params=None):
        return spaces.Discrete(2)

    def observation_space(self, params=None):
        if self.shows == "sector":
            return spaces.Discrete(12)
        return spaces.Box(-1.0, 1.0, (6, 6, 1) if self.shows == "image" else (2,), jnp.float32)


class Steered(Ring):
    """Action 1 moves on, action 0 back."""

    def transition(self, chance, state, action, params):
        move = self.size * (2 * action - 1) * jax.random.uniform(chance, minval=0.5)
        return State(state.angle + move, state.time + 1), jnp.zeros(()), state.time > 60, {}


class DiesOfTime(Ring):
    def transition(self, chance, state, action, params):
        state, reward, _, info = super().transition(chance, state, action, params)
        return state, reward, state.time >= params.max_steps_in_episode, info


class Pairs(Steered):
    def transition(self, chance, state, action, params):
        return super().transition(chance, state, action[0], params)

    def action_space(self, params=None):
        return spaces.Box(0, 1, (2,), jnp.int32)


class Unbounded(Ring):
    def action_space(self, params=None):
        return spaces.Box(-jnp.inf, jnp.inf, (), jnp.float32)


class Table(Ring):
    def describe(self, state, features, params):
        return jnp.zeros((2, 3))

    def observation_space(self, params=None):
        return spaces.Box(-1.0, 1.0, (2, 3), jnp.float32)
'''
