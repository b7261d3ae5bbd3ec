"""The last action, and the last reward, as parts of the observation."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment, spaces

from envs.wrappers.arrays import check_box, limits, with_channels
from envs.wrappers.wrapper import Wrapper


class LastAction(Wrapper):
    """Appends the last action to the observation, and with `reward` also the last reward.

    That is what an agent with a memory needs to learn within an episode (RL², Duan et al. 2016). A
    discrete action is one-hot, `[A]`; a continuous one is appended as it is, but clipped to its
    bounds and NaN taken as 0. At the start of an episode all these numbers are 0. They are joined
    along the last axis, in images `[H, W, C]` as constant planes. Inside of `StickyActions` the
    last action is the one that was executed, around it the one that the agent chose.

    Raises ValueError for observations that are not one array, and for actions that are neither
    discrete nor one array.
    """

    def __init__(self, env: environment.Environment, reward: bool = False):
        super().__init__(env)
        check_box(env)
        space = env.action_space(env.default_params)
        if not isinstance(space, spaces.Discrete | spaces.Box):
            raise ValueError(
                f"actions of {env.name} are a {type(space).__name__}; expected Discrete or Box"
            )
        self.reward = reward
        self.one_hot = isinstance(space, spaces.Discrete)

    def begin(self, obs: jax.Array, params: Any) -> jax.Array:
        return jnp.zeros_like(self._limits(params)[0])

    def remember(self, memory: Any, obs: Any, action: Any, reward: jax.Array, params: Any) -> Any:
        space = self.action_space(params)
        if self.one_hot:
            numbers = jax.nn.one_hot(action, space.n).ravel()
        else:
            numbers = jnp.nan_to_num(jnp.clip(action, space.low, space.high)).ravel()
        return jnp.append(numbers, reward) if self.reward else numbers

    def show(self, memory: jax.Array, obs: jax.Array) -> jax.Array:
        obs = with_channels(obs).astype(self._dtype(obs.dtype))
        numbers = jnp.broadcast_to(memory, (*obs.shape[:-1], memory.size))
        return jnp.concatenate([obs, numbers.astype(obs.dtype)], -1)

    def observation_space(self, params: Any = None) -> spaces.Box:
        params = self.default_params if params is None else params
        *ends, dtype = limits(super().observation_space(params))
        low, high = (
            jnp.concatenate([end, jnp.broadcast_to(extra, (*end.shape[:-1], extra.size))], -1)
            for end, extra in zip(ends, self._limits(params), strict=True)
        )
        return spaces.Box(low, high, low.shape, self._dtype(dtype))

    def _dtype(self, dtype: Any) -> Any:
        """Zeros and ones fit into every dtype, other numbers into floats only."""
        keeps = self.one_hot and not self.reward
        return dtype if keeps else jnp.promote_types(dtype, jnp.float32)

    def _limits(self, params: Any) -> tuple[jax.Array, jax.Array]:
        """The smallest and largest value of each appended number, float32 `[K]`."""
        space = self.action_space(params)
        if self.one_hot:
            low, high = jnp.zeros(space.n * math.prod(space.shape)), 1.0
        else:
            low, high, _ = limits(space)
            low, high = jnp.minimum(low.ravel(), 0.0), jnp.maximum(high.ravel(), 0.0)
        high = jnp.broadcast_to(high, low.shape)
        if self.reward:
            low, high = jnp.append(low, -jnp.inf), jnp.append(high, jnp.inf)
        return low, high
