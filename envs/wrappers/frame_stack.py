"""The last observations as one."""

from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment, spaces

from envs.arguments import check_count
from envs.wrappers.arrays import check_box, limits, with_channels
from envs.wrappers.wrapper import Wrapper


class FrameStack(Wrapper):
    """The last `num_frames` observations as one array, the oldest first (Mnih et al. 2015).

    They are joined along the last axis: vectors `[D]` become `[num_frames * D]`, images `[H, W, C]`
    become `[H, W, num_frames * C]`, and images `[H, W]` and scalars get an axis of `num_frames`.
    Before an episode has that many observations, its first one fills the gap.

    Raises ValueError for observations that are not one array, and for less than one frame.
    """

    def __init__(self, env: environment.Environment, num_frames: int):
        super().__init__(env)
        check_box(env)
        check_count("num_frames", num_frames)
        self.num_frames = num_frames

    def begin(self, obs: jax.Array, params: Any) -> jax.Array:
        return jnp.concatenate([with_channels(obs)] * self.num_frames, -1)

    def remember(self, memory: Any, obs: Any, action: Any, reward: jax.Array, params: Any) -> Any:
        obs = with_channels(obs)
        return jnp.concatenate([memory[..., obs.shape[-1] :], obs], -1)

    def show(self, memory: jax.Array, obs: jax.Array) -> jax.Array:
        return memory

    def observation_space(self, params: Any = None) -> spaces.Box:
        low, high, dtype = limits(super().observation_space(params))
        low, high = (jnp.concatenate([end] * self.num_frames, -1) for end in (low, high))
        return spaces.Box(low, high, low.shape, dtype)
