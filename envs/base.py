"""The base of our environments: gymnax's interface, with one simulation and one survey a step."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from gymnax.environments import environment


class Environment(environment.Environment):
    """A gymnax 1.0 environment whose `step` does no work twice.

    A subclass writes four pure functions of one instance,

    * `start(chance, params) -> state`: the first state of an episode; it carries `time = 0`,
    * `transition(chance, state, action, params) -> (state, reward, terminated, info)`,
    * `describe(state, survey, params) -> obs`: the observation of a state,
    * and the spaces and `num_actions` of gymnax.

    `chance` is a key of its own for each of the two, unless `chances` makes something cheaper.
    Where an observation rests on something dear (a flood fill, a graph), that part goes into
    `survey(state, params)`, and what is known of it at the start of an episode without computing
    into `first_survey`. `step` then surveys once, whether or not the episode ends, and the
    observation that `info["final_observation"]` holds costs nothing unless somebody reads it.

    The constructor takes shapes and switches, all hashable; numbers live in the `params` pytree.
    Two environments built alike are equal, so they share one compilation; `identity` says what
    alike means. Equal environments may have other default parameters, which are therefore looked
    up before anything is compiled.
    """

    def chances(self, key: jax.Array) -> tuple[Any, Any]:
        """The randomness of one step: what `transition` is given, and what `start` is given.

        Of every step only one of the two counts, but a transition that chance can end must not
        share its randomness with the start that follows.
        """
        transition_key, start_key = jax.random.split(key)
        return transition_key, start_key

    def start(self, chance: Any, params: Any) -> Any:
        """The first state of an episode."""
        raise NotImplementedError(f"{self.name} does not say how an episode starts")

    def transition(
        self, chance: Any, state: Any, action: jax.Array, params: Any
    ) -> tuple[Any, jax.Array, jax.Array, dict[str, Any]]:
        """The next state, the reward, whether the episode ended for good, and `info`."""
        raise NotImplementedError(f"{self.name} does not say what an action does")

    def survey(self, state: Any, params: Any) -> Any:
        """What the observation needs that is dear to compute; nothing, unless overridden."""
        return ()

    def first_survey(self, state: Any, params: Any) -> Any:
        """`survey` of a state that `start` returned; override it where that is known cheaply."""
        return self.survey(state, params)

    def describe(self, state: Any, survey: Any, params: Any) -> Any:
        """The observation of a state, given its survey."""
        raise NotImplementedError(f"{self.name} does not say what is observed")

    def observe(self, key: jax.Array, state: Any, action: Any, params: Any) -> Any:
        """gymnax's hook: the observation of a state."""
        return self.describe(state, self.survey(state, params), params)

    def get_obs(self, state: Any, params: Any = None, key: jax.Array | None = None) -> Any:
        """gymnax's older hook, for the wrappers and viewers that still call it."""
        params = self.default_params if params is None else params
        return self.describe(state, self.survey(state, params), params)

    def reset_env(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        """gymnax's hook: the first observation and state of an episode."""
        state = self.start(self.chances(key)[1], params)
        return self.describe(state, self.first_survey(state, params), params), state

    def step_env(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, dict[str, Any]]:
        """gymnax's hook: one transition, with neither time limit nor reset."""
        chance, _ = self.chances(key)
        state, reward, terminated, info = self.transition(chance, state, action, params)
        obs = self.describe(state, self.survey(state, params), params)
        return obs, state, reward, terminated, info

    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, Any]:
        """The first observation and state of an episode: `(obs, state)`."""
        return self._reset(key, self.default_params if params is None else params)

    def step(
        self, key: jax.Array, state: Any, action: Any, params: Any = None
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        """One step with auto-reset: `(obs, state, reward, terminated, truncated, info)`.

        The same distribution as gymnax's own `step`, which would build the reset, its observation
        and the survey of both on every step. `info` holds `terminated`, `truncated` and
        `final_observation`, always.
        """
        params = self.default_params if params is None else params
        return self._step(key, state, action, params)

    @partial(jax.jit, static_argnames=("self",))
    def _reset(self, key: jax.Array, params: Any) -> tuple[Any, Any]:
        return self.reset_env(key, params)

    @partial(jax.jit, static_argnames=("self",))
    def _step(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict[str, Any]]:
        chance, start_chance = self.chances(key)
        stepped, reward, terminated, info = self.transition(chance, state, action, params)
        truncated = self.is_truncated(stepped, params)
        started = self.start(start_chance, params)

        done = terminated | truncated
        final_survey = self.survey(stepped, params)
        survey = select(done, self.first_survey(started, params), final_survey)
        state = select(done, started, stepped)
        obs, state = self._apply_transition_gradient_policy(
            self.describe(state, survey, params), state
        )
        info = {
            **info,
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": self.describe(stepped, final_survey, params),
        }
        return obs, state, reward, terminated, truncated, info

    def identity(self) -> dict[str, Any]:
        """What the compiled program depends on; hashable values by name."""
        return vars(self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Environment)
            and type(self) is type(other)
            and self.identity() == other.identity()
        )

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.identity().items(), key=lambda item: item[0])))

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({fields})"


def select(condition: jax.Array, on_true: Any, on_false: Any) -> Any:
    """`jnp.where` over two trees of one instance, for a scalar condition."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), on_true, on_false)
