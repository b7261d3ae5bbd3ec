"""Environments of two numbers, which compile in no time: for tests of what goes around one."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.base import Environment


@struct.dataclass
class Trace:
    executed: jax.Array  # int32, the last action
    time: jax.Array


@struct.dataclass
class Limits:
    max_steps_in_episode: int = 1000
    lifetime: int = 1000


class Recorder(Environment):
    """Shows the action that it was given and the time, which is also the reward."""

    @property
    def default_params(self) -> Limits:
        return Limits()

    def start(self, chance, params):
        return Trace(jnp.int32(-1), jnp.int32(0))

    def transition(self, chance, state, action, params):
        after = Trace(jnp.asarray(action, jnp.int32), state.time + 1)
        reward = after.time.astype(jnp.float32)
        info = {"components": jnp.stack([reward - 1, 1.0]), "outcome": {"clock": after.time}}
        return after, reward, after.time >= params.lifetime, info

    def describe(self, state, features, params) -> Any:
        return jnp.stack([state.executed, state.time]).astype(jnp.float32)

    @property
    def name(self) -> str:
        return "Recorder-v0"

    @property
    def num_actions(self) -> int:
        return 4

    def action_space(self, params=None) -> spaces.Space:
        return spaces.Discrete(4)

    def observation_space(self, params=None) -> spaces.Space:
        return spaces.Box(-1.0, jnp.inf, (2,), jnp.float32)


class Parts(Recorder):
    """Shows a dict of an image, an integer and a tuple."""

    def describe(self, state, features, params):
        time = state.time
        image = jnp.full((2, 3, 1), time, jnp.uint8)
        return {"image": image, "a": time % 5, "pair": (time / 7, jnp.stack([time % 2 == 0]))}

    def observation_space(self, params=None):
        pair = spaces.Tuple([spaces.Box(0.0, jnp.inf, ()), spaces.Box(0, 1, (1,), jnp.bool_)])
        image = spaces.Box(0, 255, (2, 3, 1), jnp.uint8)
        return spaces.Dict({"image": image, "a": spaces.Discrete(5), "pair": pair})
