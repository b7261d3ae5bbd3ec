"""The base class: gymnax's interface, with one transition and one feature computation a step."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import environment

from envs.arguments import Range as Range  # which environments of users import from here
from envs.arguments import check_action, check_key, check_params
from envs.arguments import check_name as check_name
from envs.arguments import is_key as is_key
from envs.arguments import is_traced as is_traced


def in_32_bits() -> AbstractContextManager[Any]:
    """A context for numbers of 32 bits, also where JAX has been told to use 64."""
    is_wide = jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    return jax.enable_x64(False) if is_wide else nullcontext()


def narrow(tree: Any) -> Any:
    """A tree with its arrays of JAX in 32 bits, for use within `in_32_bits`."""
    is_wide = lambda x: isinstance(x, jax.Array) and x.dtype in (np.int64, np.uint64, np.float64)
    to_32_bits = lambda x: x.astype(jax.dtypes.canonicalize_dtype(x.dtype)) if is_wide(x) else x
    return jax.tree.map(to_32_bits, tree)


class Environment(environment.Environment):
    """A gymnax 1.0 environment whose `step` computes nothing twice.

    A subclass writes four pure functions of one instance,

    * `start(chance, params) -> state`: the first state of an episode; it carries `time = 0`,
    * `transition(chance, state, action, params) -> (state, reward, terminated, info)`,
    * `describe(state, features, params) -> obs`: the observation of a state,
    * and the spaces and `num_actions` of gymnax.

    `chance` is a random key, a separate one for each of the two, unless `chances` is overridden.
    `features` is what `features(state, params)` returned: `()` unless overridden.
    Where an observation depends on something expensive (a flood fill, a graph), compute that in
    `features(state, params)`; `initial_features` is a cheaper equivalent for first states. `step`
    then computes the features once, whether or not the episode ends, and the observation in
    `info["final_observation"]` costs nothing unless it is read.

    The constructor takes shapes and switches, all hashable; numbers live in the `params` pytree.
    Environments with equal arguments are equal and share one compilation; `identity` defines
    equality. Equal environments may have different default parameters, which are therefore looked
    up outside of compiled code.
    """

    version: str = "0.1.0"
    """Changes only when behaviour does, and then voids published scores."""
    outcome_kinds: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What an episode reports of each entry of `info["outcome"]`: its "last" value, which it does
    unless this says otherwise, or the "sum" or "mean" of all, called `food_sum` or `food_mean`."""

    def chances(self, key: jax.Array) -> tuple[Any, Any]:
        """The randomness of one step, for `transition` and for `start`.

        They may share it only if no random number of the transition can end the episode.
        """
        transition_key, start_key = jax.random.split(key)
        return transition_key, start_key

    def start(self, chance: Any, params: Any) -> Any:
        """The first state of an episode."""
        raise NotImplementedError(f"{self.name} does not implement start")

    def start_after(self, last_state: Any, chance: Any, params: Any) -> Any:
        """The first state of the episode that follows one which ended in `last_state`."""
        return self.start(chance, params)

    def transition(
        self, chance: Any, state: Any, action: jax.Array, params: Any
    ) -> tuple[Any, jax.Array, jax.Array, dict[str, Any]]:
        """The next state, the reward, whether it is terminal, and `info`."""
        raise NotImplementedError(f"{self.name} does not implement transition")

    def position(self, state: Any, params: Any) -> tuple[Any, jax.Array] | None:
        """What decides all that follows, for a player that draws no random numbers.

        `(position, ahead)`: equal positions are followed by equal rewards and positions, for as
        long as actions are equal and no clock has run out; `ahead` is the number of steps until
        one may. None where clocks are seen, or chance may decide.
        """
        del state, params
        return None

    def advance_clocks(self, state: Any, steps: jax.Array) -> Any:
        """A state in the same position, with all clocks so many steps further."""
        raise NotImplementedError(f"{self.name} has no positions that come back")

    def features(self, state: Any, params: Any) -> Any:
        """The expensive part of an observation; empty unless overridden."""
        return ()

    def initial_features(self, state: Any, params: Any) -> Any:
        """`features` of a state that `start` returned; override it where there is a cheaper way."""
        return self.features(state, params)

    def describe(self, state: Any, features: Any, params: Any) -> Any:
        """The observation of a state, given its features."""
        raise NotImplementedError(f"{self.name} does not implement describe")

    def observe(self, key: jax.Array, state: Any, action: Any, params: Any) -> Any:
        """gymnax's hook: the observation of a state."""
        return self.describe(state, self.features(state, params), params)

    def get_obs(self, state: Any, params: Any = None, key: jax.Array | None = None) -> Any:
        """gymnax's older hook, for the wrappers and viewers that still call it."""
        params = self.default_params if params is None else params
        return self.describe(state, self.features(state, params), params)

    def reset_env(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """gymnax's hook: the first observation and state of an episode."""
        state = self.start(self.chances(key)[1], params)
        return self.describe(state, self.initial_features(state, params), params), state

    def step_env(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, dict[str, Any]]:
        """gymnax's hook: one transition, with neither time limit nor reset."""
        chance, _ = self.chances(key)
        state, reward, terminated, info = self.transition(chance, state, action, params)
        obs = self.describe(state, self.features(state, params), params)
        return obs, state, reward, terminated, info

    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, Any]:
        """The first observation and state of an episode: `(obs, state)`, in 32 bits.

        Raises TypeError where `key` is not one random key, or `params` is a class; so does `step`.
        """
        check_key(key)
        check_params(params)
        hash(self)  # jit says in many lines what this says in one
        with in_32_bits():
            return self._reset(key, self.default_params if params is None else params)

    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any = None
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """One step with auto-reset: `(obs, state, reward, terminated, truncated, info)`.

        The same distribution as gymnax's own `step`, which would build the reset, its observation
        and the features of both at every step. `info` holds `terminated`, `truncated` and
        `final_observation`, always. All numbers have 32 bits, also where JAX uses 64 elsewhere.

        Raises TypeError for an action that has not the shape or the kind of number of its space.
        """
        check_key(key)
        check_params(params)
        with in_32_bits():
            params = self.default_params if params is None else params
            return self._step(key, state, narrow(action), params)

    @partial(jax.jit, static_argnames=("self",))
    def _reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        return self.reset_env(key, params)

    @partial(jax.jit, static_argnames=("self",))
    def _step(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        check_action(self._action_space(), action)
        chance, start_chance = self.chances(key)
        next_state, reward, terminated, info = self.transition(chance, state, action, params)
        truncated = self.is_truncated(next_state, params)
        first_state = self.start_after(next_state, start_chance, params)

        done = terminated | truncated
        final_features = self.features(next_state, params)
        features = select(done, self.initial_features(first_state, params), final_features)
        state = select(done, first_state, next_state)
        obs, state = self._apply_transition_gradient_policy(
            self.describe(state, features, params), state
        )
        info = {
            **info,
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": self.describe(next_state, final_features, params),
        }
        return obs, state, reward, terminated, truncated, info

    def _action_space(self) -> Any:
        """The space of actions by default; None where an environment says nothing of it.

        Its bounds may depend on parameters, which compiled code does not know; its shape does not.
        """
        try:
            with jax.ensure_compile_time_eval():
                return self.action_space(self.default_params)
        except NotImplementedError:
            return None

    def identity(self) -> dict[str, Any]:
        """What the compiled program depends on: hashable values by name."""
        return vars(self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Environment)
            and type(self) is type(other)
            and self.identity() == other.identity()
        )

    def __hash__(self) -> int:
        items = sorted(self.identity().items(), key=lambda item: item[0])
        for name, value in items:
            try:
                hash(value)
            except TypeError:
                kind = type(value).__name__
                raise TypeError(
                    f"{type(self).__name__}.{name} is a {kind}, which cannot be hashed: make it a "
                    "tuple of numbers or an attribute of the class, or override identity"
                ) from None
        return hash((type(self), *items))

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({fields})"


def select(condition: jax.Array, on_true: Any, on_false: Any) -> Any:
    """`jnp.where` over two trees of one instance, for a scalar condition."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), on_true, on_false)
