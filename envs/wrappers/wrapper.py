"""The base class of wrappers: an environment that decides, remembers and shows."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
from flax import struct
from gymnax.environments import environment

from envs.base import Environment, select
from envs.gymnax_corrections import observation_space


@struct.dataclass
class State:
    env: Any  # the state of the wrapped environment
    memory: Any  # what the wrapper remembers of the episode

    @property
    def time(self) -> jax.Array:
        """int32, steps of the innermost environment since the start of the episode."""
        return self.env.time


class Wrapper(Environment):
    """An environment around `env`; as it stands it changes nothing.

    A subclass overrides some of `decide`, `begin`, `remember`, `show` and `inner`.

    Raises ValueError for anything but an environment.
    """

    def __init__(self, env: environment.Environment):
        super().__init__()
        if not isinstance(env, environment.Environment):
            raise ValueError(
                f"env is a {type(env).__name__}; expected an environment, as envs.make(id)[0]"
            )
        self.env = env

    def decide(self, key: jax.Array, memory: Any, action: Any, params: Any) -> tuple[Any, Any]:
        """The key and the action of the wrapped environment's step. Consumes `key`."""
        return key, action

    def begin(self, obs: Any, params: Any) -> Any:
        """The memory at the start of an episode, which shows `obs`."""
        return ()

    def remember(self, memory: Any, obs: Any, action: Any, reward: jax.Array, params: Any) -> Any:
        """The memory after a step with `action`, as decided."""
        return memory

    def show(self, memory: Any, obs: Any) -> Any:
        """What an agent sees, given what the wrapped environment shows."""
        return obs

    def inner(self, params: Any) -> Any:
        """The params of the wrapped environment."""
        return params

    @partial(jax.jit, static_argnames=("self",))
    def _step(
        self, key: jax.Array, state: State, action: Any, params: Any
    ) -> tuple[Any, State, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        key, action = self.decide(key, state.memory, action, params)
        obs, env_state, reward, terminated, truncated, info = self.env.step(
            key, state.env, action, self.inner(params)
        )
        next_memory = lambda obs: self.remember(state.memory, obs, action, reward, params)
        memory = select(terminated | truncated, self.begin(obs, params), next_memory(obs))
        final_obs = info["final_observation"]
        info = {**info, "final_observation": self.show(next_memory(final_obs), final_obs)}
        obs, state = self._apply_transition_gradient_policy(
            self.show(memory, obs), State(env_state, memory)
        )
        return obs, state, reward, terminated, truncated, info

    def step_env(
        self, key: jax.Array, state: State, action: Any, params: Any
    ) -> tuple[Any, State, jax.Array, jax.Array, dict[str, Any]]:
        key, action = self.decide(key, state.memory, action, params)
        obs, env_state, reward, terminated, info = self.env.step_env(
            key, state.env, action, self.inner(params)
        )
        memory = self.remember(state.memory, obs, action, reward, params)
        return self.show(memory, obs), State(env_state, memory), reward, terminated, info

    def reset_env(self, key: jax.Array, params: Any) -> tuple[Any, State]:
        obs, env_state = self.env.reset(key, self.inner(params))
        memory = self.begin(obs, params)
        return self.show(memory, obs), State(env_state, memory)

    def observe(self, key: jax.Array, state: State, action: Any, params: Any) -> Any:
        obs = self.env.observe(key, state.env, action, self.inner(params))
        return self.show(state.memory, obs)

    def get_obs(self, state: State, params: Any = None, key: jax.Array | None = None) -> Any:
        params = self.default_params if params is None else params
        return self.show(state.memory, self.env.get_obs(state.env, self.inner(params), key))

    def is_truncated(self, state: State, params: Any) -> jax.Array:
        return self.env.is_truncated(state.env, self.inner(params))

    def is_terminated(self, state: State, params: Any) -> jax.Array:
        return self.env.is_terminated(state.env, self.inner(params))

    @property
    def transition_gradients_enabled(self) -> bool:
        return self.env.transition_gradients_enabled

    @property
    def outcome_kinds(self) -> Mapping[str, str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return getattr(self.env, "outcome_kinds", {})

    @property
    def default_params(self) -> Any:
        return self.env.default_params

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self.env.name})"

    @property
    def num_actions(self) -> int:
        return self.env.num_actions

    def action_space(self, params: Any = None) -> Any:
        return self.env.action_space(self._inner_or_default(params))

    def observation_space(self, params: Any = None) -> Any:
        return observation_space(self.env, self._inner_or_default(params))

    def _inner_or_default(self, params: Any) -> Any:
        return self.inner(self.default_params if params is None else params)
