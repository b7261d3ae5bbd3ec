"""Actions that are repeated at random, so that no sequence of them can be learned by heart."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment

from envs.base import select
from envs.spaces import plain_value
from envs.wrappers.wrapper import Wrapper


@partial(jax.tree_util.register_dataclass, data_fields=("env", "probability"), meta_fields=())
@dataclass(frozen=True)
class StickyParams:
    """The numbers of `StickyActions`; a pytree that can be vmapped."""

    env: Any
    """Those of the wrapped environment."""
    probability: float = 0.25
    """Of repeating the action executed before."""

    @property
    def max_steps_in_episode(self) -> Any:
        """Steps after which the wrapped environment truncates."""
        return self.env.max_steps_in_episode

    def replace(self, **changes: Any) -> "StickyParams":
        """A copy with other numbers; those of `env` may be named directly."""
        own = {name: changes.pop(name) for name in ("env", "probability") if name in changes}
        params = replace(self, **own)
        return replace(params, env=params.env.replace(**changes)) if changes else params


class StickyActions(Wrapper):
    """Repeats the action executed before with a probability (Machado et al. 2018, section 5.2).

    The probability is a number of the params, `StickyParams`; the argument is its default. An
    episode's first action is always executed as chosen: which action would do nothing, with which
    the Arcade Learning Environment starts, is not known here.

    A step of the wrapped environment gets `jax.random.split(key)[1]`, also where the probability is
    0.

    Raises ValueError for a probability outside of 0 to 1, and TypeError for params that are not
    `StickyParams`.
    """

    def __init__(self, env: environment.Environment, probability: float = 0.25):
        super().__init__(env)
        if not 0 <= probability <= 1:
            raise ValueError(f"probability is {probability}; expected 0 to 1")
        self.probability = probability

    def identity(self) -> dict[str, Any]:
        """All but the probability, which is only a default parameter."""
        return {"env": self.env}

    @property
    def default_params(self) -> StickyParams:
        return StickyParams(self.env.default_params, self.probability)

    def inner(self, params: StickyParams) -> Any:
        if not isinstance(params, StickyParams):
            raise TypeError(
                f"StickyActions takes StickyParams, and was given {type(params).__name__}: use "
                "default_params of the wrapped environment, or StickyParams(params)"
            )
        return params.env

    def decide(
        self, key: jax.Array, memory: tuple[Any, jax.Array], action: Any, params: StickyParams
    ) -> tuple[jax.Array, Any]:
        sticky_key, key = jax.random.split(key)
        last, is_first = memory
        action = plain_value(self.action_space(params), action)
        action = jax.tree.map(lambda x, y: jnp.asarray(x, y.dtype), action, last)
        sticks = jax.random.bernoulli(sticky_key, params.probability) & ~is_first
        return key, select(sticks, last, action)

    def begin(self, obs: Any, params: StickyParams) -> tuple[Any, jax.Array]:
        """No action yet, and that there is none."""
        space = self.action_space(params)
        action = plain_value(space, jax.eval_shape(space.sample, jax.random.key(0)))
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), action), jnp.bool_(True)

    def remember(
        self, memory: Any, obs: Any, action: Any, reward: jax.Array, params: StickyParams
    ) -> tuple[Any, jax.Array]:
        return action, jnp.bool_(False)
